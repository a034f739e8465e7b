// A Qwen3-family transformer: config, tokenizer, chat template, weights, forward and backward.

export { trainBpe } from "./bpe.ts";
export {
  CHATML_TEMPLATE,
  type ChatMessage,
  createTurnEncoder,
  renderChat,
  type Tool,
  type TurnEncoder,
} from "./chat.ts";
export { type ModelConfig, parseConfig } from "./config.ts";
export { type ModelFolder, openModelFolder, type ReadModelFile } from "./folder.ts";
export { Tokenizer, type TokenizerFiles } from "./tokenizer.ts";
