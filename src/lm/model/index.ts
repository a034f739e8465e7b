// A decoder-only transformer (Qwen2, Qwen3, Llama): config, tokenizer, chat template, weights, forward and backward.

export { type ModelConfig, parseConfig } from "./config.ts";
export { type ModelFolder, openModelFolder, type ReadModelFile } from "./formats/folder.ts";
export { loadWeights } from "./formats/load.ts";
export { createModel, freeModel, type Model } from "./parameters.ts";
export { trainBpe } from "./text/bpe-trainer.ts";
export {
  CHATML_TEMPLATE,
  type ChatMessage,
  createTurnEncoder,
  renderChat,
  type Tool,
  type TurnEncoder,
} from "./text/chat-template.ts";
export { Tokenizer, type TokenizerFiles } from "./text/tokenizer.ts";
