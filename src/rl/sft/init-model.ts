// A model that has learned nothing yet: a small vocabulary made from transcripts, and weights drawn from a seed.
import { parameterShapes } from "../../lm/model/config.ts";
import { CHATML_TEMPLATE, type ModelConfig, Tokenizer, type TokenizerFiles, trainBpe } from "../../lm/model/index.ts";
import { random } from "../../random.ts";
import type { Transcript } from "./transcripts.ts";

export interface FreshOptions {
  /** Seed of the weights. @default 0 */
  readonly seed?: number | string;
  /** Maximum size of the vocabulary; transcripts with few words give a smaller one. @default 640 */
  readonly vocab_size?: number;
  /** @default 96 */
  readonly hidden_size?: number;
  /** @default 3 */
  readonly num_hidden_layers?: number;
  /** @default 3 */
  readonly num_attention_heads?: number;
  /** @default 32 */
  readonly head_dim?: number;
  /** @default 256 */
  readonly intermediate_size?: number;
  /** @default 1024 */
  readonly max_position_embeddings?: number;
  /** See trainBpe. @default "attached" */
  readonly spaces?: "attached" | "apart";
}

/** All that a model folder holds. */
export interface FreshModel {
  readonly config: ModelConfig;
  readonly tokenizerFiles: TokenizerFiles;
  readonly chatTemplate: string;
  readonly tensors: readonly { readonly name: string; readonly data: Float32Array }[];
}

const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/** Makes a model whose vocabulary fits these transcripts; the same transcripts and options give the same model. */
export function freshModel(transcripts: Iterable<Transcript>, options: FreshOptions = {}): FreshModel {
  const { vocab_size: vocabSize = 640, hidden_size = 96, num_hidden_layers = 3, num_attention_heads = 3 } = options;
  const { seed = 0, head_dim = 32, intermediate_size = 256, max_position_embeddings = 1024, spaces } = options;
  const tokenizer = trainBpe(textsOf(transcripts), { vocabSize, specialTokens: SPECIAL, ...(spaces && { spaces }) });
  const tokenizerFiles = { tokenizer, config: { tokenizer_class: "PreTrainedTokenizerFast", eos_token: "<|im_end|>" } };
  const config: ModelConfig = {
    architecture: "Qwen3ForCausalLM",
    vocab_size: new Tokenizer(tokenizerFiles).vocabSize,
    hidden_size,
    intermediate_size,
    num_hidden_layers,
    num_attention_heads,
    num_key_value_heads: num_attention_heads,
    head_dim,
    rms_norm_eps: 1e-6,
    rope_theta: 1_000,
    rope_scaling: null,
    max_position_embeddings,
    tie_word_embeddings: true,
    qk_norm: true,
    qkv_bias: false,
    bos_token_id: null,
    eos_token_ids: [2],
    pad_token_id: 0,
  };
  return {
    config,
    tokenizerFiles,
    chatTemplate: CHATML_TEMPLATE,
    tensors: [...parameterShapes(config)].map(([name, shape]) => ({ name, data: initial(name, shape, config, seed) })),
  };
}

/** What the tokenizer learns from; roles and line ends are part of every turn. */
function* textsOf(transcripts: Iterable<Transcript>): Generator<string> {
  for (const { messages } of transcripts) for (const { role, content } of messages) yield `${role}\n${content}\n`;
}

/**
 * Initial values: ones for scales; normal for matrices, with a smaller deviation if they add to the residual stream.
 */
function initial(
  name: string,
  shape: readonly number[],
  { num_hidden_layers, hidden_size }: ModelConfig,
  seed: number | string,
) {
  const length = shape.reduce((product, size) => product * size, 1);
  if (shape.length === 1) return new Float32Array(length).fill(1);
  const wide = 1 / Math.sqrt(hidden_size); // the customary 0.02 is for widths of thousands: here it would cost hundreds of steps
  const deviation = /o_proj|down_proj/.test(name) ? wide / Math.sqrt(2 * num_hidden_layers) : wide;
  const r = random("fresh weights", seed, name);
  return Float32Array.from({ length }, () => r.normal(0, deviation));
}
