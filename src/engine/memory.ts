// What a model needs on the CPU, known before anything is loaded.
import { OOMError } from "../errors.ts";
import { type ModelConfig, parameterCount } from "../model/config.ts";
import { MAX_ROWS } from "./learner.ts";

/** A 32-bit WebAssembly memory ends here. */
export const CPU_MEMORY_LIMIT = 4 * 2 ** 30;

export interface MemoryEstimate {
  /** Bytes, part by part. */
  readonly weights: number;
  /** Copies of the weights in the forms that products read. */
  readonly packed: number;
  readonly gradients: number;
  readonly optimizer: number;
  readonly activations: number;
  readonly cache: number;
  readonly total: number;
}

export interface MemoryOptions {
  readonly trains: boolean;
  /** Rows computed together in training. @default MAX_ROWS */
  readonly rows?: number;
  /** Whether activations are computed again instead of kept. @default false */
  readonly recompute?: boolean;
  /** Tokens of context kept for sampling. @default 16384 */
  readonly cacheTokens?: number;
}

/** Bytes a model takes on the CPU. */
export function estimateMemory(
  config: ModelConfig,
  { trains, rows = MAX_ROWS, recompute = false, cacheTokens = 16_384 }: MemoryOptions,
): MemoryEstimate {
  const parameters = parameterCount(config);
  const { hidden_size: D, intermediate_size: F, num_hidden_layers: L, head_dim: d } = config;
  const [H, G] = [config.num_attention_heads, config.num_key_value_heads];
  // Per token and layer: what model/forward.ts keeps; then what one layer's backward holds beside it.
  const kept = 5 * D + (H + 2 * G) * d + 2 * H * d + 2 * G * d + 3 * F + 2 * H;
  const passing = 2 * D + 3 * F + 2 * (H + 2 * G) * d + 2 * G * d;
  const floats = {
    weights: parameters,
    packed: trains ? 2 * parameters : parameters,
    gradients: trains ? parameters : 0,
    optimizer: trains ? 2 * parameters : 0,
    activations: trains ? rows * ((recompute ? L * D + kept : L * kept) + passing + 4 * D) + LOGITS : LOGITS,
    cache: cacheTokens * 2 * G * d * L,
  };
  const bytes = Object.fromEntries(Object.entries(floats).map(([part, count]) => [part, 4 * count])) as Omit<
    MemoryEstimate,
    "total"
  >;
  return { ...bytes, total: Object.values(bytes).reduce((sum, part) => sum + part, 0) };
}

const LOGITS = 8_000_000; // floats: a chunk of logits and its packed copy

/** Refuses a model that cannot fit, before any of it is read. */
export function checkCpuMemory(name: string, config: ModelConfig, options: MemoryOptions): MemoryEstimate {
  const estimate = estimateMemory(config, options);
  if (estimate.total <= CPU_MEMORY_LIMIT) return estimate;
  const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  throw new OOMError({
    what: `${name} does not fit the CPU: ${options.trains ? "training" : "sampling"} needs`,
    value: `${gib(estimate.total)} of ${gib(CPU_MEMORY_LIMIT)}`,
    remedy: "use a smaller model (about 150M parameters train, 900M sample), or recompute activations",
  });
}
