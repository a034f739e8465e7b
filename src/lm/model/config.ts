// A model's architecture: config.json of the Hugging Face layout, reduced to what a Qwen2, Qwen3 or Llama decoder
// needs.
import { z } from "zod";
import { ModelLoadError } from "../../errors.ts";

/** Supported decoders by the name in `architectures`: Qwen3 normalizes queries and keys, Qwen2 adds biases to q, k and v. */
const ARCHITECTURES = {
  Qwen3ForCausalLM: { model_type: "qwen3", qk_norm: true, qkv_bias: false },
  Qwen2ForCausalLM: { model_type: "qwen2", qk_norm: false, qkv_bias: true },
  LlamaForCausalLM: { model_type: "llama", qk_norm: false, qkv_bias: false },
} as const;

export type Architecture = keyof typeof ARCHITECTURES;

// Limits above every published dense decoder; anything larger is a damaged or hostile file.
const MAX_VOCAB = 1_000_000;
const MAX_WIDTH = 131_072;
const MAX_LAYERS = 1_000;
const MAX_POSITIONS = 100_000_000;

/** Llama 3.1's scaling of rotary embeddings beyond the pretraining context; keys as in config.json. */
export interface RopeScaling {
  readonly rope_type: "llama3";
  readonly factor: number;
  readonly low_freq_factor: number;
  readonly high_freq_factor: number;
  readonly original_max_position_embeddings: number;
}

/** The sizes and constants of a decoder; keys as in config.json. */
export interface ModelConfig {
  readonly architecture: Architecture;
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly num_hidden_layers: number;
  readonly num_attention_heads: number;
  readonly num_key_value_heads: number;
  readonly head_dim: number;
  readonly rms_norm_eps: number;
  readonly rope_theta: number;
  /** Null means plain rotary embeddings. */
  readonly rope_scaling: RopeScaling | null;
  readonly max_position_embeddings: number;
  readonly tie_word_embeddings: boolean;
  /** Whether RMSNorm is applied to each head's query and key, as in Qwen3. */
  readonly qk_norm: boolean;
  /** Whether the q, k and v projections have biases, as in Qwen2. */
  readonly qkv_bias: boolean;
  readonly bos_token_id: number | null;
  readonly eos_token_ids: readonly number[];
  readonly pad_token_id: number | null;
}

const width = z.int().min(1).max(MAX_WIDTH);
const tokenId = z.int().min(0).max(MAX_VOCAB);
const rope = z.looseObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: z.number().positive().optional(),
});
const llama3Rope = z
  .object({
    factor: z.number().min(1),
    low_freq_factor: z.number().positive(),
    high_freq_factor: z.number().positive(),
    original_max_position_embeddings: z.int().min(1).max(MAX_POSITIONS),
  })
  .refine((rope) => rope.low_freq_factor < rope.high_freq_factor, {
    message: "must be below high_freq_factor",
    path: ["low_freq_factor"],
  });

/** The keys we read; others are ignored. */
const configFile = z.looseObject({
  architectures: z.array(z.string()).min(1),
  vocab_size: z.int().min(1).max(MAX_VOCAB),
  hidden_size: width,
  intermediate_size: width,
  num_hidden_layers: z.int().min(1).max(MAX_LAYERS),
  num_attention_heads: width,
  num_key_value_heads: width.nullish(),
  head_dim: width.nullish(),
  rms_norm_eps: z.number().positive().max(1).default(1e-6),
  rope_theta: z.number().positive().nullish(),
  rope_parameters: rope.nullish(),
  rope_scaling: rope.nullish(),
  max_position_embeddings: z.int().min(1).max(MAX_POSITIONS).default(2048),
  tie_word_embeddings: z.boolean().default(false),
  hidden_act: z.string().default("silu"),
  attention_bias: z.boolean().nullish(),
  mlp_bias: z.boolean().nullish(),
  use_sliding_window: z.boolean().nullish(),
  layer_types: z.array(z.string()).nullish(),
  partial_rotary_factor: z.number().nullish(),
  quantization_config: z.unknown().optional(),
  bos_token_id: tokenId.nullish(),
  eos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  pad_token_id: tokenId.nullish(),
});

type ConfigFile = z.infer<typeof configFile>;

/** Parses config.json; rejects every field value that this package would compute wrongly. */
export function parseConfig(json: unknown, file = "config.json"): ModelConfig {
  const read = configFile.safeParse(json);
  if (!read.success) {
    const issue = read.error.issues[0]!;
    const field = issue.path.join(".") || "(the whole file)";
    const value = issue.path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], json);
    throw new ModelLoadError({
      what: value === undefined ? `${file} has no` : `${file}: ${field} is not usable (${issue.message})`,
      value: value === undefined ? field : shown(value),
      remedy: "check that the file is a model's config.json and is whole",
      cause: read.error,
    });
  }
  const raw = read.data;
  const architecture = raw.architectures[0]!;
  if (!isArchitecture(architecture)) {
    throw refused(file, "architectures", architecture, `use a model of ${Object.keys(ARCHITECTURES).join(" or ")}`);
  }
  checkSupported(raw, file);
  const heads = raw.num_attention_heads;
  const kvHeads = raw.num_key_value_heads ?? heads;
  const headDim = raw.head_dim ?? raw.hidden_size / heads;
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    throw refused(file, "head_dim", headDim, "it must be whole and even, for rotary positions");
  }
  if (heads % kvHeads !== 0) {
    throw refused(file, "num_key_value_heads", kvHeads, `it must divide num_attention_heads, ${heads}`);
  }
  const eos = raw.eos_token_id ?? [];
  return {
    architecture,
    vocab_size: raw.vocab_size,
    hidden_size: raw.hidden_size,
    intermediate_size: raw.intermediate_size,
    num_hidden_layers: raw.num_hidden_layers,
    num_attention_heads: heads,
    num_key_value_heads: kvHeads,
    head_dim: headDim,
    rms_norm_eps: raw.rms_norm_eps,
    rope_theta: raw.rope_parameters?.rope_theta ?? raw.rope_theta ?? raw.rope_scaling?.rope_theta ?? 10_000,
    rope_scaling: readRopeScaling(raw, file),
    max_position_embeddings: raw.max_position_embeddings,
    tie_word_embeddings: raw.tie_word_embeddings,
    qk_norm: ARCHITECTURES[architecture].qk_norm,
    qkv_bias: ARCHITECTURES[architecture].qkv_bias,
    bos_token_id: raw.bos_token_id ?? null,
    eos_token_ids: Array.isArray(eos) ? eos : [eos],
    pad_token_id: raw.pad_token_id ?? null,
  };
}

function isArchitecture(name: string): name is Architecture {
  return Object.hasOwn(ARCHITECTURES, name);
}

/** Reads `rope_parameters` (transformers 5) or `rope_scaling` (before it). */
function readRopeScaling(raw: ConfigFile, file: string): RopeScaling | null {
  for (const key of ["rope_parameters", "rope_scaling"] as const) {
    const type = raw[key]?.rope_type ?? raw[key]?.type ?? "default";
    if (type === "default") continue;
    if (type !== "llama3") throw refused(file, `${key}.rope_type`, type, "only default and llama3 are computed");
    const read = llama3Rope.safeParse(raw[key]);
    if (!read.success) {
      const { path, message } = read.error.issues[0]!;
      const field = String(path[0]);
      throw new ModelLoadError({
        what: `${file}: ${key}.${field} is not usable (${message})`,
        value: shown(raw[key]?.[field]),
        remedy: "check that the file is a model's config.json and is whole",
      });
    }
    return { rope_type: "llama3", ...read.data };
  }
  return null;
}

/** Rejects decoder variants that would otherwise be silently ignored. */
function checkSupported(raw: ConfigFile, file: string): void {
  const plain = "use a model without it";
  if (raw.hidden_act !== "silu") throw refused(file, "hidden_act", raw.hidden_act, "only silu is computed");
  if (raw.attention_bias) throw refused(file, "attention_bias", true, plain);
  if (raw.mlp_bias) throw refused(file, "mlp_bias", true, plain);
  if (raw.use_sliding_window) throw refused(file, "use_sliding_window", true, plain);
  const layer = raw.layer_types?.find((type) => type !== "full_attention");
  if (layer !== undefined) throw refused(file, "layer_types", layer, "only full_attention is computed");
  if ((raw.partial_rotary_factor ?? 1) !== 1) {
    throw refused(file, "partial_rotary_factor", raw.partial_rotary_factor, plain);
  }
  if (raw.quantization_config) {
    throw refused(file, "quantization_config", raw.quantization_config, "use the model's unquantized weights");
  }
}

function refused(file: string, field: string, value: unknown, remedy: string): ModelLoadError {
  return new ModelLoadError({ what: `${file}: ${field} is not supported`, value: shown(value), remedy });
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}

/** Builds the config.json to save, with what `transformers` needs to load the same model. */
export function configToJson(config: ModelConfig, dtype: "float32" | "bfloat16" = "float32"): Record<string, unknown> {
  const { architecture, qk_norm: _, qkv_bias, rope_scaling, eos_token_ids, ...sizes } = config;
  return {
    architectures: [architecture],
    model_type: ARCHITECTURES[architecture].model_type,
    ...sizes,
    eos_token_id: eos_token_ids.length > 1 ? eos_token_ids : (eos_token_ids[0] ?? null),
    hidden_act: "silu",
    ...(qkv_bias ? { use_sliding_window: false } : { attention_bias: false }), // Qwen2 implies its biases
    attention_dropout: 0,
    ...(architecture === "LlamaForCausalLM" && { mlp_bias: false }),
    rope_scaling,
    initializer_range: 0.02,
    use_cache: true,
    dtype,
    torch_dtype: dtype, // older name of `dtype`
  };
}

/**
 * Maps every weight's name in a Hugging Face file to its shape, in the order of computation; a tied head has no entry.
 */
export function parameterShapes(config: ModelConfig): ReadonlyMap<string, readonly number[]> {
  const { hidden_size: d, intermediate_size: f, head_dim: h, vocab_size: v } = config;
  const q = config.num_attention_heads * h;
  const kv = config.num_key_value_heads * h;
  const shapes = new Map<string, readonly number[]>([["model.embed_tokens.weight", [v, d]]]);
  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const at = `model.layers.${layer}`;
    shapes.set(`${at}.input_layernorm.weight`, [d]);
    shapes.set(`${at}.self_attn.q_proj.weight`, [q, d]);
    if (config.qkv_bias) shapes.set(`${at}.self_attn.q_proj.bias`, [q]);
    shapes.set(`${at}.self_attn.k_proj.weight`, [kv, d]);
    if (config.qkv_bias) shapes.set(`${at}.self_attn.k_proj.bias`, [kv]);
    shapes.set(`${at}.self_attn.v_proj.weight`, [kv, d]);
    if (config.qkv_bias) shapes.set(`${at}.self_attn.v_proj.bias`, [kv]);
    if (config.qk_norm) {
      shapes.set(`${at}.self_attn.q_norm.weight`, [h]);
      shapes.set(`${at}.self_attn.k_norm.weight`, [h]);
    }
    shapes.set(`${at}.self_attn.o_proj.weight`, [d, q]);
    shapes.set(`${at}.post_attention_layernorm.weight`, [d]);
    shapes.set(`${at}.mlp.gate_proj.weight`, [f, d]);
    shapes.set(`${at}.mlp.up_proj.weight`, [f, d]);
    shapes.set(`${at}.mlp.down_proj.weight`, [d, f]);
  }
  shapes.set("model.norm.weight", [d]);
  if (!config.tie_word_embeddings) shapes.set("lm_head.weight", [v, d]);
  return shapes;
}

/** Number of parameters. */
export function parameterCount(config: ModelConfig): number {
  let count = 0;
  for (const shape of parameterShapes(config).values()) count += shape.reduce((product, size) => product * size, 1);
  return count;
}

/** Radians per position for each pair of a head's dimensions, fastest first. */
export function inverseFrequencies(config: Pick<ModelConfig, "head_dim" | "rope_theta" | "rope_scaling">): number[] {
  const half = config.head_dim / 2;
  const plain = Array.from({ length: half }, (_, i) => config.rope_theta ** (-i / half));
  const scaling = config.rope_scaling;
  return scaling ? plain.map((frequency) => llama3Frequency(frequency, scaling)) : plain;
}

/** Divides low frequencies by `factor`, keeps high ones, and interpolates in between. */
function llama3Frequency(frequency: number, scaling: RopeScaling): number {
  const { factor, low_freq_factor: low, high_freq_factor: high, original_max_position_embeddings: original } = scaling;
  const turns = (original * frequency) / (2 * Math.PI); // rotations within the original context
  if (turns < low) return frequency / factor;
  if (turns > high) return frequency;
  const share = (turns - low) / (high - low);
  return (1 - share) * (frequency / factor) + share * frequency;
}
