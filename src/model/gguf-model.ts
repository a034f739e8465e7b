// A model in GGUF's words: what llama.cpp calls its tensors, its sizes and its tokens.
import { ModelLoadError } from "../errors.ts";
import { type ModelConfig, parameterShapes } from "./config.ts";
import type { GgufType, GgufValue } from "./gguf.ts";
import type { Tokenizer } from "./tokenizer.ts";

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

/** A tensor's name there. */
export function ggufName(name: string): string {
  const layer = /^model\.layers\.(\d+)\.(.+)\.weight$/.exec(name);
  if (layer) return `blk.${layer[1]}.${LAYER_NAMES[layer[2]!]!}.weight`;
  if (name === "model.embed_tokens.weight") return "token_embd.weight";
  return name === "model.norm.weight" ? "output_norm.weight" : "output.weight";
}

/** Every tensor of a model, by its name in our files. */
export function ggufShapes(config: ModelConfig): { name: string; shape: readonly number[] }[] {
  return [...parameterShapes(config)].map(([name, shape]) => ({ name, shape }));
}

/** llama.cpp turns neighbours among a Llama head's numbers, files of transformers halves: rows of q and k change places. */
export function forLlamaRotary(config: ModelConfig, name: string, data: Float32Array): Float32Array {
  const part = /self_attn\.([qk])_proj\.weight$/.exec(name)?.[1];
  if (config.architecture !== "LlamaForCausalLM" || part === undefined) return data;
  const heads = part === "q" ? config.num_attention_heads : config.num_key_value_heads;
  const [columns, half] = [config.hidden_size, config.head_dim / 2];
  const out = new Float32Array(data.length);
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < config.head_dim; i++) {
      const from = head * config.head_dim + (i % 2) * half + Math.floor(i / 2);
      out.set(data.subarray(from * columns, (from + 1) * columns), (head * config.head_dim + i) * columns);
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
}

/** The header's facts. */
export function ggufFacts({ config, tokenizer, chatTemplate, name, type }: GgufModel): Map<string, GgufValue> {
  const arch = config.architecture === "Qwen3ForCausalLM" ? "qwen3" : "llama";
  const u32 = (value: number): GgufValue => ({ u32: value });
  const facts = new Map<string, GgufValue>([
    ["general.architecture", { text: arch }],
    ["general.type", { text: "model" }],
    ["general.name", { text: name }],
    ["general.file_type", u32(type === "f16" ? 1 : 7)],
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
  const { tokens, types, merges, pre } = vocabularyOf(tokenizer, config.vocab_size);
  facts.set("tokenizer.ggml.model", { text: "gpt2" });
  facts.set("tokenizer.ggml.pre", { text: pre });
  facts.set("tokenizer.ggml.tokens", { texts: tokens });
  facts.set("tokenizer.ggml.token_type", { ints: types });
  facts.set("tokenizer.ggml.merges", { texts: merges });
  facts.set("tokenizer.ggml.add_bos_token", { bool: false });
  if (config.bos_token_id !== null) facts.set("tokenizer.ggml.bos_token_id", u32(config.bos_token_id));
  if (config.eos_token_ids.length > 0) facts.set("tokenizer.ggml.eos_token_id", u32(config.eos_token_ids[0]!));
  if (config.pad_token_id !== null) facts.set("tokenizer.ggml.padding_token_id", u32(config.pad_token_id));
  if (chatTemplate !== undefined) facts.set("tokenizer.chat_template", { text: chatTemplate });
  return facts;
}

const NORMAL = 1;
const CONTROL = 3;
const USER_DEFINED = 4;
const UNUSED = 5;

/** Tokens by id, what kind each is, and how pieces merge. */
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
  const types = new Array<number>(size).fill(UNUSED);
  for (const [token, id] of Object.entries(json.model.vocab)) {
    tokens[id] = token;
    types[id] = NORMAL;
  }
  for (const { id, content, special } of json.added_tokens ?? []) {
    tokens[id] = content;
    types[id] = special ? CONTROL : USER_DEFINED;
  }
  const merges = json.model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" ")));
  return { tokens, types, merges, pre: splitterName(json.pre_tokenizer) };
}

interface PreTokenizer {
  readonly type: string;
  readonly use_regex?: boolean;
  readonly pattern?: { readonly Regex?: string };
  readonly pretokenizers?: readonly PreTokenizer[];
}

/** Qwen's words: letters with one character before them, digits one by one. */
const QWEN_WORDS = String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;

/** llama.cpp knows ways to cut a text into words by name only; one it does not know cannot be written down. */
function splitterName(given: unknown): string {
  const pre = given as PreTokenizer | null | undefined;
  const parts = pre?.type === "Sequence" ? (pre.pretokenizers ?? []) : pre ? [pre] : [];
  const pattern = parts.find(({ type }) => type === "Split")?.pattern?.Regex;
  if (pattern === QWEN_WORDS) return "qwen2";
  if (pattern === undefined && parts.some(({ type, use_regex }) => type === "ByteLevel" && use_regex !== false))
    return "gpt-2";
  throw new ModelLoadError({
    what: "llama.cpp has no name for the way this tokenizer cuts words",
    value: pattern ?? JSON.stringify(given),
    remedy: "export a model with the tokenizer of Qwen3 or GPT-2's way of cutting",
  });
}
