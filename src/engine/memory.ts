// What a model needs on a device, known before anything is loaded.
import type { CudaDevice } from "../devices/cuda/device.ts";
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

const CUDA_SPARE = 0.9; // of the card's memory: cuBLAS, fragments and other programs need some
const LOGITS_SHARE = 8; // of the card's memory: logits and their gradients, as the device cuts them
const ROWS = [16_384, 8_192, 4_096, 2_048, 1_024] as const;

/** How much of a card to use: rows computed together, and tokens of context kept. A model that cannot fit is refused. */
export function cudaLimits(
  name: string,
  config: ModelConfig,
  { card, precision }: Pick<CudaDevice, "card" | "precision">,
  { trains, recompute = false }: MemoryOptions,
): { maxRows: number; maxCachedTokens: number } {
  const a = precision === "bf16" ? 2 : 4; // bytes of an activation
  const parameters = parameterCount(config);
  const { hidden_size: D, intermediate_size: F, num_hidden_layers: L, head_dim: d } = config;
  const [H, G] = [config.num_attention_heads, config.num_key_value_heads];
  const room = CUDA_SPARE * card.memory;
  const weights = parameters * ((trains ? 16 : 4) + (precision === "bf16" ? 2 : 0));
  const inside = 2 * 4 * D + a * (4 * D + (H + 2 * G) * d + 2 * H * d + 2 * G * d + 3 * F); // of a layer, a row
  const row = (recompute ? 4 * D * L + inside : inside * L) + inside + 6 * 4 * D;
  const context = a * 2 * G * d * L; // of a token kept
  const need = (rows: number, tokens: number) =>
    weights + (trains ? rows * row : 0) + card.memory / LOGITS_SHARE + tokens * context;
  const [least, leastTokens] = [ROWS.at(-1)!, 8_192];
  if (need(least, leastTokens) > room) {
    const gib = (bytes: number) => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
    throw new OOMError({
      what: `${name} does not fit the GPU: ${trains ? "training" : "sampling"} needs`,
      value: `${gib(need(least, leastTokens))} of ${gib(room)}`,
      remedy: "recompute activations, use bf16, a smaller model, or a larger card",
    });
  }
  const maxRows = ROWS.find((rows) => need(rows, 2 * leastTokens) <= room) ?? least;
  const left = room - need(maxRows, 0);
  return {
    maxRows,
    maxCachedTokens: Math.min(262_144, Math.max(leastTokens, Math.floor(left / 2 / context / 1024) * 1024)),
  };
}
