// Small models with random weights, for tests of devices and engines.
import { createCpu } from "../../src/lm/devices/cpu/start.node.ts";
import type { Device } from "../../src/lm/devices/index.ts";
import type { ModelConfig } from "../../src/lm/model/config.ts";
import { createModel, type Model, parametersChanged } from "../../src/lm/model/parameters.ts";
import { random } from "../../src/random.ts";

/** Two layers, three query heads on each of two key-value heads, an odd vocabulary. */
export const TINY: ModelConfig = {
  architecture: "Qwen3ForCausalLM",
  vocab_size: 61,
  hidden_size: 24,
  intermediate_size: 40,
  num_hidden_layers: 2,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  head_dim: 8,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  rope_scaling: null,
  max_position_embeddings: 256,
  tie_word_embeddings: true,
  qk_norm: true,
  qkv_bias: false,
  bos_token_id: null,
  eos_token_ids: [1],
  pad_token_id: null,
};

/** Config differences of each model family. */
export const FAMILIES = {
  qwen3: {},
  qwen2: { architecture: "Qwen2ForCausalLM", qk_norm: false, qkv_bias: true },
  llama3: {
    ...{ architecture: "LlamaForCausalLM", qk_norm: false },
    rope_scaling: {
      ...{ rope_type: "llama3", factor: 8, low_freq_factor: 1, high_freq_factor: 4 },
      original_max_position_embeddings: 32,
    },
  },
} as const satisfies Readonly<Record<string, Partial<ModelConfig>>>;

export interface TinyOptions {
  readonly config?: Partial<ModelConfig>;
  /** @default a new one with one thread */
  readonly device?: Device;
  readonly seed?: string;
  /** Standard deviation of the matrices; larger values give lower entropy. @default 0.3 */
  readonly deviation?: number;
}

/** A model with random weights; the same seed gives the same weights. */
export function tinyModel({ config, device, seed = "tiny", deviation = 0.3 }: TinyOptions = {}): Model {
  const on = device ?? createCpu({ threads: 1 });
  const model = createModel(on, { ...TINY, ...config }, { trains: true });
  const r = random(seed);
  for (const { name, shape, value } of model.tensors) {
    const isBias = name.endsWith(".bias");
    const [around, width] = isBias ? [0, 0.5] : [shape.length === 1 ? 1 : 0, deviation];
    on.write(
      value,
      Float32Array.from({ length: value.length }, () => r.normal(around, width)),
    );
  }
  parametersChanged(model);
  return model;
}

/** Random token ids. */
export function tokens(length: number, ...key: readonly (string | number)[]): number[] {
  const r = random("tokens", ...key);
  return Array.from({ length }, () => r.int(0, TINY.vocab_size - 1));
}

/** The largest difference relative to the largest value. */
export function difference(got: ArrayLike<number>, want: ArrayLike<number>): number {
  let [worst, largest] = [0, 0];
  for (let i = 0; i < want.length; i++) {
    const off = Math.abs(got[i]! - want[i]!);
    worst = off > worst || Number.isNaN(off) ? off : worst;
    largest = Math.max(largest, Math.abs(want[i]!));
  }
  return got.length === want.length ? worst / (largest || 1) : Number.NaN;
}
