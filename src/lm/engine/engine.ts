// The interface between algorithm and arithmetic: a model that can sample and learn. Token ids in, token ids out.
import type { BatchTotals, LossSpec } from "./learning/loss.ts";
import type { TextStop } from "./sampling/token-stop.ts";

export interface SampleRequest {
  /** The whole context so far. A prefix that is cached, from whichever request, is not computed again. */
  readonly prompt: readonly number[];
  readonly max_new_tokens: number;
  /** Sampling ends after one of these, which is part of the sample. */
  readonly stop_ids: readonly number[];
  /** Sampling also ends where this rule ends the text; tokens after that are not part of the sample. */
  readonly stop?: TextStop;
  /** 0 takes the likeliest token. @default 1 */
  readonly temperature?: number;
  /** Keep the k likeliest tokens; 0 keeps all. @default 0 */
  readonly top_k?: number;
  /** Keep the likeliest tokens that together have this probability. @default 1 */
  readonly top_p?: number;
  /** Keep tokens at least this likely, relative to the likeliest. @default 0 */
  readonly min_p?: number;
  /** Names this sample's random numbers, such as [seed, "rollout", step, episode]; each token's follows from its position. */
  readonly key: readonly (string | number)[];
  readonly signal?: AbortSignal;
  readonly onToken?: (token: number) => void;
}

export interface Sample {
  readonly tokens: readonly number[];
  /** log π of each, from logits divided by the temperature, as training computes it; top-k, top-p and min-p are ignored. */
  readonly logprobs: readonly number[];
  readonly finish_reason: "stop" | "length" | "aborted";
  /** Tokens of the prompt that were cached. */
  readonly cached_tokens: number;
}

/** One context to learn from. Arrays are as long as `tokens`; entry i is about predicting tokens[i] from those before it. */
export interface Datum {
  readonly tokens: readonly number[];
  /** 0 where nothing is learned: the prompt, the environment's turns. */
  readonly weights: ArrayLike<number>;
  /** Data with the same number are one sequence in the loss: the segments of an episode. @default one of its own */
  readonly sequence?: number;
  /** One number, or one for each token; those of tokens with weight 0 are not read. */
  readonly advantage?: number | ArrayLike<number>;
  readonly old_logp?: ArrayLike<number> | null;
  readonly ref_logp?: ArrayLike<number> | null;
}

export interface ForwardBackwardOutput {
  readonly loss: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** log π of each datum's tokens; 0 where its weight is 0. */
  readonly logprobs: readonly Float32Array[];
  /** Tokens computed, and how many there would have been without sharing prefixes. */
  readonly computed_tokens: number;
  readonly tokens: number;
}

export interface AdamParams {
  readonly learning_rate: number;
  /** @default 0.9 */
  readonly beta1?: number;
  /** @default 0.999 */
  readonly beta2?: number;
  /** @default 1e-8 */
  readonly eps?: number;
  /** @default 0 */
  readonly weight_decay?: number;
  /** The gradient is scaled down to this norm. @default no limit */
  readonly max_grad_norm?: number;
}

export interface OptimOutput {
  readonly grad_norm: number;
  /** Set when the gradient or a loss was not finite: the weights are unchanged. */
  readonly skipped: boolean;
  readonly step: number;
}

export interface LogprobOptions {
  /** @default 1 */
  readonly temperature?: number;
  /** The current weights, or those that were loaded, which an engine keeps with `reference: true`. @default "current" */
  readonly weights?: "current" | "reference";
}

export interface ForwardBackwardOptions {
  /** @default 1 */
  readonly temperature?: number;
  /** A loss that the engine has, by name, with its options. */
  readonly loss: LossSpec;
  /** Totals of the whole batch, when this is a part of it: losses and gradients of the parts then add up. @default the batch's own */
  readonly totals?: BatchTotals;
}

export interface Engine {
  /** Requests are batched inside; each joins and leaves at any time. */
  sample(request: SampleRequest): Promise<Sample>;
  /** Adds to the gradient. */
  forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput>;
  /** Updates the weights, and clears gradients and the prefix cache. */
  optimStep(adam: AdamParams): Promise<OptimOutput>;
  /** log π of every token of each datum given those before it; entry 0 is 0. */
  logprobs(batch: readonly Datum[], options?: LogprobOptions): Promise<Float32Array[]>;
  close(): Promise<void>;
}
