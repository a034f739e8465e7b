// Converts a GGUF header's metadata to the config.json of the same model, which is checked like any other.
import { inverseFrequencies, type ModelConfig, parseConfig, type RopeScaling } from "../config.ts";
import type { GgufFacts } from "./gguf-metadata.ts";

/** Maps supported architectures from their names in GGUF files to those in config.json. */
export const GGUF_ARCHITECTURES: Readonly<Record<string, ModelConfig["architecture"]>> = {
  llama: "LlamaForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
};

/** Name of the tensor with divisors of the rotary frequencies; Llama 3.1 and later have it. */
export const ROPE_FACTORS = "rope_freqs.weight";

/** Metadata for unsupported computations. It is harmless if absent or 0, or if a factor is 1. */
const UNSUPPORTED = ["attention.scale", "attention.clamp_kqv", "attention.max_alibi_bias"];
const UNSUPPORTED_FACTORS = ["expert_count", "logit_scale", "embedding_scale", "residual_scale", "rope.scale_linear"];

/** Facts known from the tensors and the tokenizer, not from this metadata. */
export interface GgufSizes {
  /** Number of rows of the embedding. */
  readonly rows: number;
  /** Whether the embedding is also the output matrix. */
  readonly tied: boolean;
  readonly bos: number | null;
  readonly eos: readonly number[];
  readonly pad: number | null;
  /** Values of ROPE_FACTORS, if the file has it. */
  readonly ropeFactors: Float32Array | undefined;
}

/** Reads the architecture's name; rejects unsupported ones. */
export function architectureOf(facts: GgufFacts): string {
  const arch = facts.needed("general.architecture", facts.text("general.architecture"));
  const parts = facts.whole("split.count") ?? 1;
  if (parts > 1) {
    throw facts.bad("the model is split into several files", parts, "merge them with llama.cpp's gguf-split --merge");
  }
  if (Object.hasOwn(GGUF_ARCHITECTURES, arch)) return arch;
  const known = Object.keys(GGUF_ARCHITECTURES).join(", ");
  throw facts.bad("its general.architecture is not supported", arch, `use a model of ${known}`);
}

/** Builds the model's configuration. */
export function ggufConfig(facts: GgufFacts, { rows, tied, bos, eos, pad, ropeFactors }: GgufSizes): ModelConfig {
  const arch = architectureOf(facts);
  const whole = (key: string) => facts.needed(`${arch}.${key}`, facts.whole(`${arch}.${key}`));
  const heads = whole("attention.head_count");
  const width = whole("embedding_length");
  const headDim = facts.whole(`${arch}.attention.key_length`) ?? width / heads;
  checkComputed(facts, arch, headDim);
  const vocabulary = facts.whole(`${arch}.vocab_size`) ?? rows;
  if (vocabulary !== rows) {
    throw facts.bad(`${arch}.vocab_size is not the number of rows of token_embd.weight, ${rows}`, vocabulary);
  }
  const epsilon = `${arch}.attention.layer_norm_rms_epsilon`;
  const base = facts.number(`${arch}.rope.freq_base`);
  const json = {
    architectures: [GGUF_ARCHITECTURES[arch]],
    vocab_size: rows,
    hidden_size: width,
    intermediate_size: whole("feed_forward_length"),
    num_hidden_layers: whole("block_count"),
    num_attention_heads: heads,
    num_key_value_heads: facts.whole(`${arch}.attention.head_count_kv`) ?? heads,
    head_dim: headDim,
    rms_norm_eps: shortest(facts.needed(epsilon, facts.number(epsilon))),
    rope_theta: base === undefined ? 10_000 : shortest(base),
    max_position_embeddings: whole("context_length"),
    tie_word_embeddings: tied,
    bos_token_id: bos,
    eos_token_id: eos,
    pad_token_id: pad,
  };
  const config = parseConfig(json, facts.file);
  const scaling = ropeFactors && scalingOf(config, ropeFactors, facts);
  return scaling ? parseConfig({ ...json, rope_scaling: scaling }, facts.file) : config;
}

/** The divisors of rotary frequencies, one per pair of a head's dimensions; undefined if frequencies are not scaled. */
export function ropeFactorsOf(config: ModelConfig): Float32Array | undefined {
  if (config.rope_scaling === null) return undefined;
  const plain = inverseFrequencies({ ...config, rope_scaling: null });
  return Float32Array.from(inverseFrequencies(config), (frequency, i) => plain[i]! / frequency);
}

/**
 * Derives Llama 3's settings from the divisors: the largest is `factor`; the other settings are the same in every Llama
 * since 3.1.
 */
function scalingOf(config: ModelConfig, factors: Float32Array, facts: GgufFacts): RopeScaling | undefined {
  const factor = shortest(factors.reduce((most, each) => Math.max(most, each), 0));
  if (factors.every((each) => each === 1)) return undefined;
  const fixed = { low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 8192 };
  const rope_scaling: RopeScaling = { rope_type: "llama3", factor, ...fixed };
  const expected = factor >= 1 ? ropeFactorsOf({ ...config, rope_scaling }) : undefined;
  const isSame = (each: number, i: number) => Math.abs(each - expected![i]!) <= 1e-5 * expected![i]!;
  if (expected?.length === factors.length && factors.every(isSame)) return rope_scaling;
  const remedy = "use a Llama 3.1, 3.2 or 3.3, or a model without it";
  throw facts.bad(`its ${ROPE_FACTORS} is not Llama 3's way to scale rotary positions`, undefined, remedy);
}

/** Rejects metadata that we would compute wrongly. */
function checkComputed(facts: GgufFacts, arch: string, headDim: number): void {
  for (const name of [...UNSUPPORTED, ...UNSUPPORTED_FACTORS]) {
    const value = facts.number(`${arch}.${name}`) ?? 0;
    if (value !== 0 && !(value === 1 && UNSUPPORTED_FACTORS.includes(name)))
      throw facts.bad(`${arch}.${name} is not supported`, value, "use a model without it");
  }
  for (const name of ["attention.value_length", "rope.dimension_count"]) {
    const value = facts.whole(`${arch}.${name}`) ?? headDim;
    if (value !== headDim) {
      throw facts.bad(`${arch}.${name} other than the length of a head, ${headDim}, is not supported`, value);
    }
  }
  const scaling = facts.text(`${arch}.rope.scaling.type`) ?? "none";
  if (scaling !== "none" && (facts.number(`${arch}.rope.scaling.factor`) ?? 1) !== 1) {
    throw facts.bad(
      `${arch}.rope.scaling.type is not supported`,
      scaling,
      "use a model with unscaled rotary positions",
    );
  }
  const window = facts.whole(`${arch}.attention.sliding_window`) ?? 0;
  if (window > 0 && window < (facts.whole(`${arch}.context_length`) ?? 0)) {
    throw facts.bad(`${arch}.attention.sliding_window is not supported`, window, "use a model with full attention");
  }
}

/** The shortest decimal with the same 32-bit float: 0.00001, not 0.000009999999747378752. */
export function shortest(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}
