// Estimates a model's memory before anything is loaded, by adding up the buffers that model/, engine/ and the device
// allocate in each phase. `sqlenv bench memory` compares the estimate with measurements.

import { OOMError } from "../../errors.ts";
import type { Precision } from "../devices/cuda/device.ts";
import { CPU_CHUNK_LOGITS, CUDA_CHUNK_SHARE, CUDA_SAVED_SHARE } from "../devices/lm-head.ts";
import { roundedSize } from "../devices/pool.ts";
import { type ModelConfig, parameterCount } from "../model/config.ts";
import { KNOWN_MODELS } from "../model/formats/known.ts";
import { adaptedLength, LORA_MODULES, type LoraSpec, loraLength } from "../model/lora.ts";
import { windowOf } from "../model/parameters.ts";
import { MAX_ROWS } from "./learning/learner.ts";
import { DECODE_SIZES } from "./sampling/graph-decoder.ts";
import { MAX_CACHED_TOKENS } from "./sampling/prefix-cache.ts";

/** The size limit of a 32-bit WebAssembly memory. */
export const CPU_MEMORY_LIMIT = 4 * 2 ** 30;

/** Where a model runs: the CPU, or a GPU with its memory in bytes. */
export type MemoryPlace =
  | { readonly device: "cpu" }
  | { readonly device: "cuda"; readonly precision: Precision; readonly memory: number };

export interface MemoryEstimate {
  /** All sizes are in bytes. */
  readonly weights: number;
  /** Copies of weights in the layouts that matmuls read, and of weights that LoRA adapts. */
  readonly copies: number;
  readonly gradients: number;
  readonly optimizer: number;
  /** The reference weights of the KL term. */
  readonly reference: number;
  /** Activations of the phase that needs the most: sampling, training, or reference log-probs. */
  readonly activations: number;
  /** The KV cache. */
  readonly cache: number;
  readonly total: number;
}

export interface MemoryOptions {
  readonly trains: boolean;
  /** @default the CPU */
  readonly place?: MemoryPlace;
  /** Rows computed together in training. @default MAX_ROWS */
  readonly rows?: number;
  /** Number of these rows whose next token is trained on. @default all */
  readonly learned?: number;
  /** Whether activations are recomputed in backward instead of saved. @default false */
  readonly recompute?: boolean;
  /** LoRA adapters to train instead of the weights. */
  readonly lora?: LoraSpec | undefined;
  /** Whether the KL term needs reference weights. @default false */
  readonly reference?: boolean | undefined;
  /** Tokens in the KV cache. @default 16384 */
  readonly cacheTokens?: number;
  /** Prompt tokens computed together in sampling. @default rows */
  readonly promptRows?: number;
  /** Contexts sampled at once. @default 64 */
  readonly contexts?: number;
}

/**
 * Computes an upper bound of a model's memory.
 *
 * @example
 * const { total } = estimateMemory(model.config, { trains: true });
 * console.log(`${(total / 2 ** 30).toFixed(1)} GiB`);
 */
export function estimateMemory(config: ModelConfig, options: MemoryOptions): MemoryEstimate {
  const { trains, place = { device: "cpu" }, lora, reference = false, cacheTokens = 16_384 } = options;
  const isCpu = place.device === "cpu";
  const round = isCpu ? (bytes: number) => bytes : roundedSize;
  const isBf16 = !isCpu && place.precision === "bf16";
  const a = isBf16 ? 2 : 4;
  const { num_hidden_layers: L, head_dim: d, num_key_value_heads: G } = config;
  const parameters = parameterCount(config);
  const learned = lora ? loraLength(config, lora) : parameters;
  const frozen16 = isBf16 && trains && lora !== undefined;
  const rotary = 4 * windowOf(config) * d;
  const weights = round(parameters * (frozen16 ? 2 : 4)) + round(rotary) + (trains && lora ? round(4 * learned) : 0);

  // The CPU packs each weight matrix once for forward and once for backward.
  const embedding = config.vocab_size * config.hidden_size;
  const packed = (parameters - (config.tie_word_embeddings ? 0 : embedding)) * 4 * (trains ? 2 : 1);
  const shadow = isBf16 ? (frozen16 ? 0 : round(round(4 * parameters) / 2)) + (lora ? round(2 * learned) : 0) : 0;
  const kept = trains && lora ? round(adaptedLength(config, lora) * (isCpu ? 4 : 2)) + 2 * 4 * learned : 0;
  const copies = (isCpu ? packed : shadow) + kept;

  const parts = {
    weights,
    copies,
    gradients: trains ? round(4 * learned) : 0,
    optimizer: trains ? 2 * round(4 * learned) : 0,
    reference: reference && trains ? round(4 * learned) : 0,
    activations: activationBytes(config, options, { place, round, a }),
    cache: L * round(a * cacheTokens * 2 * G * d),
  };
  return { ...parts, total: Object.values(parts).reduce((sum, part) => sum + part, 0) };
}

/** The place, its allocation granularity, and the bytes per activation. */
interface Allocation {
  readonly place: MemoryPlace;
  readonly round: (bytes: number) => number;
  readonly a: number;
}

/** Activations of the phase that needs the most. */
function activationBytes(config: ModelConfig, options: MemoryOptions, { place, round, a }: Allocation): number {
  const { trains, rows: T = MAX_ROWS, recompute = false, lora, reference = false, contexts = 64 } = options;
  const { learned: N = T, promptRows: S = T } = options;
  const isCpu = place.device === "cpu";
  const { hidden_size: D, intermediate_size: F, num_hidden_layers: L, head_dim: d, vocab_size } = config;
  const [H, G] = [config.num_attention_heads, config.num_key_value_heads];
  const qkv = (H + 2 * G) * d;
  const V = (vocab_size + 7) & ~7;
  const sum = (...sizes: readonly number[]) => sizes.reduce((total, size) => total + round(size), 0);
  // After the last attention, only the wanted rows are computed, if activations are fp32: see `skipsRows` in
  // lm/model/decoder.ts.
  const isCut = a === 4;
  const R = isCut ? Math.min(N, T) : T;

  const inside = (rows: number, cut: boolean): number =>
    sum(a * T * D, 4 * T, a * T * qkv, a * T * H * d, 4 * T * (H + G), a * T * 2 * G * d, a * T * H * d, 4 * T * H) +
    (cut ? sum(a * rows * H * d, 4 * rows * D) : 0) +
    sum(a * rows * D, 4 * rows * D, a * rows * D, 4 * rows, 2 * a * rows * F, a * rows * F, a * rows * D);
  const stream = L * round(4 * T * D);
  const forward = recompute ? stream + round(4 * R * D) : stream + (L - 1) * inside(T, false) + inside(R, isCut);
  const ends = sum(4 * R * D, a * R * D, 4 * R, a * N * D, 4 * N, 4 * N, 4 * N, 4 * N, 4 * N) + 6 * round(4 * T);

  const cutLogits = isCpu ? CPU_CHUNK_LOGITS : place.memory / CUDA_CHUNK_SHARE / 4;
  const keptLogits = isCpu ? CPU_CHUNK_LOGITS : place.memory / CUDA_SAVED_SHARE / 4;
  const chunkOf = (items: number) => Math.max(1, Math.min(items, Math.floor(cutLogits / V)));
  const logitsOf = (items: number) => round(4 * (items * V <= keptLogits ? items : chunkOf(items)) * V);
  const chunk = chunkOf(N);
  const isWhole = N * V <= keptLogits;
  const logits = logitsOf(N);

  const n = (modules: number) => modules * ((lora ? lora.r + 7 : 0) & ~7);
  const adapters = lora ? 2 * round(a * T * n(2)) + (isCpu ? 4 * T * (2 * F + n(2)) : 0) : 0;
  // Packed copies of both factors of a weight gradient.
  const packs = isCpu && !lora ? 4 * T * (D + Math.max(2 * F, qkv)) : 0;
  const attention = round(4 * T * H) + (isCpu ? 4 * T * 2 * G * d : 0);
  const casts = isCpu || a === 4 ? 0 : round(a * T * D);
  const layer = (rows: number, cut: boolean): number =>
    (recompute ? inside(rows, cut) : 0) +
    sum(a * rows * F, 2 * a * rows * F, a * rows * D, a * rows * H * d, a * T * qkv) +
    (cut ? sum(a * T * H * d, a * T * D) : 0) +
    Math.max(attention, packs, adapters, casts);
  const backward = sum(a * N * D, a * R * D, 4 * R * D) + (isCut ? round(4 * T * D) : 0);
  const layers = backward + Math.max(L > 1 ? layer(T, false) : 0, layer(R, isCut));
  const head =
    round(a * N * D) + (isCpu ? (lora ? 0 : 4 * (isWhole ? N : chunk) * (D + V)) : a === 2 ? round(2 * chunk * V) : 0);
  const learning = forward + ends + (isWhole ? logits + Math.max(head, layers) : Math.max(logits + head, layers));

  const passing = (rows: number, all: number): number =>
    sum(a * rows * D, 4 * rows * D, a * rows * H * d, a * rows * D, a * rows * D, a * rows * qkv, a * rows * H * d) +
    sum(2 * a * rows * F, a * rows * F, 4 * rows * (H + G), 4 * rows) +
    6 * round(4 * rows) +
    round(4 * all * V);
  const graphs = isCpu ? 0 : DECODE_SIZES.filter((size) => size <= 2 * contexts);
  const sampling =
    passing(S, contexts) + (graphs === 0 ? 0 : graphs.reduce((all, size) => all + round(4 * size * V), 0));
  const inference =
    passing(T, 0) + logitsOf(T) + sum(a * T * D, a * T * 2 * G * d) + (lora ? 0 : round(4 * parameterCount(config)));
  return Math.max(sampling, trains ? learning : 0, trains && reference ? inference : 0);
}

/**
 * Rejects a model that does not fit, before any weights are read. `limit` is the number of bytes the engine may use.
 */
export function checkCpuMemory(
  name: string,
  config: ModelConfig,
  options: MemoryOptions,
  limit = CPU_MEMORY_LIMIT,
): MemoryEstimate {
  const estimate = estimateMemory(config, options);
  if (estimate.total <= limit) return estimate;
  const other = waysToTrain(options).find(([, way]) => estimateMemory(config, { ...options, ...way }).total <= limit);
  const samples = options.trains && estimateMemory(config, { ...options, trains: false }).total <= limit;
  const remedy = [
    ...(other ? [`it fits with ${other[0]}`] : samples ? ["it can be sampled here, but not trained"] : []),
    `use a smaller model (${capacityText(cpuCapacity(limit))}) or a GPU`,
  ];
  throw new OOMError({
    what: `${name} does not fit the CPU: ${options.trains ? "training" : "sampling"} needs`,
    value: `${gib(estimate.total)} of ${gib(limit)} (${largest(estimate)})`,
    remedy: remedy.join("; or "),
  });
}

/** Parameters of the largest models that fit the CPU, for sampling and for training with LoRA and recomputed activations. */
export interface CpuCapacity {
  readonly samples: number;
  readonly trains: number;
}

/** Finds the capacity with `estimateMemory`, for models like SmolLM2-135M with more or fewer layers; rounds down to 10M. */
export function cpuCapacity(limit = CPU_MEMORY_LIMIT): CpuCapacity {
  const shape = KNOWN_MODELS["HuggingFaceTB/SmolLM2-135M-Instruct"]!.config;
  const largest = (options: MemoryOptions) => {
    const model = (layers: number) => ({ ...shape, num_hidden_layers: layers });
    let [layers, tooMany] = [0, 512];
    while (tooMany - layers > 1) {
      const middle = Math.floor((layers + tooMany) / 2);
      if (estimateMemory(model(middle), options).total <= limit) layers = middle;
      else tooMany = middle;
    }
    return layers === 0 ? 0 : Math.floor(parameterCount(model(layers)) / 1e7) * 1e7;
  };
  const lora = { r: 16, alpha: 32, targets: LORA_MODULES };
  return { samples: largest({ trains: false }), trains: largest({ trains: true, recompute: true, lora }) };
}

/** Formats a capacity: "at most about 150M parameters train, with use_peft and gradient_checkpointing; 280M sample" */
export function capacityText({ samples, trains }: CpuCapacity): string {
  return `at most about ${trains / 1e6}M parameters train here, with use_peft and gradient_checkpointing; ${samples / 1e6}M sample`;
}

/** Settings, by name, that reduce the memory of training; none for sampling. */
function waysToTrain({ trains, recompute, lora }: MemoryOptions): [string, Partial<MemoryOptions>][] {
  const adapters = { lora: { r: 16, alpha: 32, targets: LORA_MODULES } };
  const ways: [string, Partial<MemoryOptions>][] = [
    ["gradient_checkpointing", { recompute: true }],
    ["use_peft", adapters],
    ["use_peft and gradient_checkpointing", { ...adapters, recompute: true }],
  ];
  return trains ? ways.filter(([, way]) => !(way.lora && lora) && !(way.recompute && recompute)) : [];
}

const CUDA_SPARE = 0.94; // usable share of GPU memory: cuBLAS, fragmentation and other programs need the rest
const ROWS = [16_384, 8_192, 4_096, 2_048, 1_024] as const;
const MIN_CACHE = 8_192; // tokens; with fewer, every turn would recompute its whole context
const MAX_CACHE = 262_144;

export interface CudaLimits {
  readonly maxRows: number;
  readonly maxCachedTokens: number;
}

/**
 * Plans the use of a GPU's memory: rows computed together, and tokens in the KV cache. Rejects a model that does not
 * fit.
 */
export function cudaLimits(
  name: string,
  config: ModelConfig,
  { gpu, precision }: { readonly gpu: { readonly memory: number }; readonly precision: Precision },
  options: MemoryOptions,
): CudaLimits {
  const place = { device: "cuda", precision, memory: gpu.memory } as const;
  const room = CUDA_SPARE * gpu.memory;
  const need = (rows: number, cacheTokens: number) =>
    estimateMemory(config, { ...options, place, rows, cacheTokens, promptRows: Math.min(rows, 8_192) });
  const least = need(ROWS.at(-1)!, MIN_CACHE);
  if (least.total > room) {
    const helps = [
      ...(options.trains && !options.recompute ? ["recompute activations (gradient_checkpointing)"] : []),
      ...(options.trains && !options.lora ? ["learn adapters (use_peft)"] : []),
      ...(precision === "fp32" ? ["use a GPU with bf16"] : []),
    ];
    throw new OOMError({
      what: `${name} does not fit the GPU: ${options.trains ? "training" : "sampling"} needs`,
      value: `${gib(least.total)} of ${gib(room)} (${largest(least)})`,
      remedy: [...helps, "use a smaller model or a larger GPU"].join(", "),
    });
  }
  const maxRows = ROWS.find((rows) => need(rows, 2 * MIN_CACHE).total <= room) ?? ROWS.at(-1)!;
  const left = room - need(maxRows, 0).total;
  const context = need(maxRows, 1_024).cache / 1_024;
  // Growing holds the old and the new cache at once.
  const maxCachedTokens = Math.floor(left / 1.5 / context / 1024) * 1024;
  return { maxRows, maxCachedTokens: Math.min(MAX_CACHE, Math.max(MIN_CACHE, maxCachedTokens)) };
}

/** Share of the CPU's memory for the KV cache of a model that only samples; growing needs half as much again. */
const CPU_CACHE_SHARE = 1 / 4;

/** Tokens in the KV cache of a model that only samples on the CPU, where `limit` bytes may be used. */
export function cpuCacheTokens(config: ModelConfig, limit = CPU_MEMORY_LIMIT): number {
  const without = estimateMemory(config, { trains: false, cacheTokens: 0 }).total;
  const perToken = estimateMemory(config, { trains: false, cacheTokens: 1_024 }).cache / 1_024;
  const room = Math.min(CPU_CACHE_SHARE * limit, (limit - without) / 1.5);
  const tokens = Math.floor(room / perToken / 1_024) * 1_024;
  return Math.min(MAX_CACHED_TOKENS, Math.max(MIN_CACHE, tokens));
}

/** Describes the three largest parts in words. */
function largest({ total: _, ...parts }: MemoryEstimate): string {
  const shown = Object.entries(parts).sort(([, x], [, y]) => y - x);
  return shown
    .slice(0, 3)
    .map(([part, bytes]) => `${part} ${gib(bytes)}`)
    .join(", ");
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
