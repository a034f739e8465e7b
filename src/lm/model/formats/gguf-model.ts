// Describes a model as GGUF: llama.cpp's names for its tensors, sizes and tokens.
import { type ModelConfig, parameterShapes } from "../config.ts";
import type { Tokenizer } from "../text/tokenizer.ts";
import type { GgufType, GgufValue } from "./gguf.ts";
import { GGUF_ARCHITECTURES } from "./gguf-config.ts";
import { preTokenizerName } from "./gguf-pretokenizer.ts";
import { TOKEN_TYPE } from "./gguf-tokenizer.ts";

const LAYER_NAMES: Readonly<Record<string, string>> = {
  input_layernorm: "attn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "self_attn.o_proj": "attn_output",
  post_attention_layernorm: "ffn_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
};

/** Converts a tensor's name to its GGUF name. */
export function ggufName(name: string): string {
  const layer = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name);
  if (layer) return `blk.${layer[1]}.${LAYER_NAMES[layer[2]!]!}.${layer[3]}`;
  if (name === "model.embed_tokens.weight") return "token_embd.weight";
  return name === "model.norm.weight" ? "output_norm.weight" : "output.weight";
}

/** Every tensor of a model by its Hugging Face name, with its shape. */
export function ggufShapes(config: ModelConfig): { name: string; shape: readonly number[] }[] {
  return [...parameterShapes(config)].map(([name, shape]) => ({ name, shape }));
}

/**
 * Permutes rows of q and k for llama.cpp, which rotates neighbouring dims of a Llama's head where `transformers`
 * rotates its halves.
 */
export function forLlamaRotary(config: ModelConfig, name: string, data: Float32Array): Float32Array {
  return rowsMoved(config, name, data, (row, half) => [(row % 2) * half + Math.floor(row / 2), row]);
}

/** The inverse: puts rows of q and k in the order of `transformers`. */
export function fromLlamaRotary<T extends Float32Array>(config: ModelConfig, name: string, data: T): T {
  return rowsMoved(config, name, data, (row, half) => [row, (row % 2) * half + Math.floor(row / 2)]);
}

/** Permutes the rows of every head in a Llama's q and k; returns other tensors unchanged. */
function rowsMoved<T extends Float32Array>(
  config: ModelConfig,
  name: string,
  data: T,
  permute: (row: number, half: number) => readonly [from: number, to: number],
): T {
  const part = /self_attn\.([qk])_proj\.weight$/.exec(name)?.[1];
  if (config.architecture !== "LlamaForCausalLM" || part === undefined) return data;
  const heads = part === "q" ? config.num_attention_heads : config.num_key_value_heads;
  const { hidden_size: columns, head_dim } = config;
  const out = new Float32Array(data.length) as T;
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < head_dim; row++) {
      const [from, to] = permute(row, head_dim / 2).map((index) => (head * head_dim + index) * columns) as [
        number,
        number,
      ];
      out.set(data.subarray(from, from + columns), to);
    }
  }
  return out;
}

export interface GgufModel {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  readonly chatTemplate: string | undefined;
  readonly name: string;
  readonly type: GgufType;
  /** Metadata of the file the model came from; author, license and similar keys are kept. @default {} */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Metadata that is still true for a model trained from it. */
const KEPT = ["basename", "size_label", "organization", "author", "license", "license.name", "license.link"];

/** Builds the header's metadata. */
export function ggufFacts({
  config,
  tokenizer,
  chatTemplate,
  name,
  type,
  metadata = {},
}: GgufModel): Map<string, GgufValue> {
  const arch = Object.keys(GGUF_ARCHITECTURES).find((name) => GGUF_ARCHITECTURES[name] === config.architecture)!;
  const u32 = (value: number): GgufValue => ({ u32: value });
  const facts = new Map<string, GgufValue>([
    ["general.architecture", { text: arch }],
    ["general.type", { text: "model" }],
    ["general.name", { text: name }],
    ["general.file_type", u32({ f32: 0, f16: 1, q8_0: 7 }[type])],
    ["general.quantization_version", u32(2)],
    [`${arch}.block_count`, u32(config.num_hidden_layers)],
    [`${arch}.context_length`, u32(config.max_position_embeddings)],
    [`${arch}.embedding_length`, u32(config.hidden_size)],
    [`${arch}.feed_forward_length`, u32(config.intermediate_size)],
    [`${arch}.attention.head_count`, u32(config.num_attention_heads)],
    [`${arch}.attention.head_count_kv`, u32(config.num_key_value_heads)],
    [`${arch}.attention.key_length`, u32(config.head_dim)],
    [`${arch}.attention.value_length`, u32(config.head_dim)],
    [`${arch}.attention.layer_norm_rms_epsilon`, { f32: config.rms_norm_eps }],
    [`${arch}.rope.freq_base`, { f32: config.rope_theta }],
    [`${arch}.rope.dimension_count`, u32(config.head_dim)],
    [`${arch}.vocab_size`, u32(config.vocab_size)],
  ]);
  for (const key of KEPT.map((name) => `general.${name}`)) {
    if (metadata[key] !== undefined) facts.set(key, { text: metadata[key] });
  }
  const { tokens, types, merges, pre } = vocabularyOf(tokenizer, config.vocab_size);
  facts.set("tokenizer.ggml.model", { text: "gpt2" });
  facts.set("tokenizer.ggml.pre", { text: pre });
  facts.set("tokenizer.ggml.tokens", { texts: tokens });
  facts.set("tokenizer.ggml.token_type", { ints: types });
  facts.set("tokenizer.ggml.merges", { texts: merges });
  facts.set("tokenizer.ggml.add_bos_token", { bool: tokenizer.files.config.add_bos_token === true });
  const [eos, ...others] = config.eos_token_ids;
  const isMessageEnd = (id: number) => tokenizer.tokenOf(id) === "<|eom_id|>";
  const ids = {
    bos: config.bos_token_id,
    eos,
    eot: others.find((id) => !isMessageEnd(id)),
    eom: others.find(isMessageEnd),
    padding: config.pad_token_id,
  };
  for (const [name, id] of Object.entries(ids)) {
    if (id !== null && id !== undefined) facts.set(`tokenizer.ggml.${name}_token_id`, u32(id));
  }
  if (chatTemplate !== undefined) facts.set("tokenizer.chat_template", { text: chatTemplate });
  return facts;
}

/** The tokens by id, their kinds, and the merges. */
function vocabularyOf({ files }: Tokenizer, size: number) {
  const json = files.tokenizer as {
    readonly added_tokens?: readonly { id: number; content: string; special?: boolean }[];
    readonly pre_tokenizer?: unknown;
    readonly model: {
      readonly vocab: Readonly<Record<string, number>>;
      readonly merges: readonly (string | readonly [string, string])[];
    };
  };
  const tokens = Array.from({ length: size }, (_, id) => `[PAD${id}]`);
  const types = new Array<number>(size).fill(TOKEN_TYPE.unused);
  for (const [token, id] of Object.entries(json.model.vocab)) {
    tokens[id] = token;
    types[id] = TOKEN_TYPE.normal;
  }
  for (const { id, content, special } of json.added_tokens ?? []) {
    tokens[id] = content;
    types[id] = special ? TOKEN_TYPE.control : TOKEN_TYPE.userDefined;
  }
  const merges = json.model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" ")));
  return { tokens, types, merges, pre: preTokenizerName(json.pre_tokenizer) };
}
