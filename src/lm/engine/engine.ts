// The interface between algorithm and arithmetic: a model that can sample and learn. Token ids in, token ids out.
import type { BatchTotals, LossSpec } from "./learning/loss.ts";
import type { TextStop } from "./sampling/token-stop.ts";

export interface SampleRequest {
  /** The whole context so far. A prefix cached by any earlier request is not computed again. */
  readonly prompt: readonly number[];
  readonly max_new_tokens: number;
  /** Sampling ends after one of these ids, which is included in the sample. */
  readonly stop_ids: readonly number[];
  /** Sampling also ends when this rule ends the text; later tokens are not part of the sample. */
  readonly stop?: TextStop;
  /** 0 picks the likeliest token. @default 1 */
  readonly temperature?: number;
  /** Keep the k likeliest tokens; 0 keeps all. @default 0 */
  readonly top_k?: number;
  /** Keep the likeliest tokens whose probabilities add up to this. @default 1 */
  readonly top_p?: number;
  /** Keep tokens whose probability is at least this fraction of the highest. @default 0 */
  readonly min_p?: number;
  /**
   * Key of this sample's random numbers, such as [seed, "rollout", step, episode]; each token's number depends on its
   * position.
   */
  readonly key: readonly (string | number)[];
  readonly signal?: AbortSignal;
  /** Called with each token and its log-prob as it is sampled. */
  readonly onToken?: (token: number, logprob: number) => void;
}

export interface Sample {
  readonly tokens: readonly number[];
  /**
   * log π of each token, from logits divided by the temperature, as training computes it; top-k, top-p and min-p are
   * ignored.
   */
  readonly logprobs: readonly number[];
  readonly finish_reason: "stop" | "length" | "aborted";
  /** Number of prompt tokens that were cached. */
  readonly cached_tokens: number;
}

/**
 * One context to learn from. Arrays are as long as `tokens`; entry i is about predicting tokens[i] from the tokens
 * before it.
 */
export interface Datum {
  readonly tokens: readonly number[];
  /** 0 for tokens that are not trained on: the prompt, the environment's turns. */
  readonly weights: ArrayLike<number>;
  /**
   * Data with the same number form one sequence in the loss, such as the segments of an episode. @default a sequence of
   * its own
   */
  readonly sequence?: number;
  /** One number, or one per token; values of tokens with weight 0 are not read. */
  readonly advantage?: number | ArrayLike<number>;
  readonly old_logp?: ArrayLike<number> | null;
  readonly ref_logp?: ArrayLike<number> | null;
}

export interface ForwardBackwardOutput {
  readonly loss: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** log π of each datum's tokens; 0 for tokens with weight 0. */
  readonly logprobs: readonly Float32Array[];
  /** Number of tokens computed; `tokens` is the number without prefix sharing. */
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
  /** Maximum norm; a larger gradient is scaled down to it. @default no limit */
  readonly max_grad_norm?: number;
}

export interface OptimOutput {
  readonly grad_norm: number;
  /** Whether the step was skipped because the gradient or a loss was not finite; the weights are then unchanged. */
  readonly skipped: boolean;
  readonly step: number;
}

export interface LogprobOptions {
  /** @default 1 */
  readonly temperature?: number;
  /**
   * The current weights, or the reference's, which an engine keeps if created with `reference: true`: the loaded ones,
   * as far as `mixReference` has not changed them. @default "current"
   */
  readonly weights?: "current" | "reference";
}

export interface ForwardBackwardOptions {
  /** @default 1 */
  readonly temperature?: number;
  /** Name of one of the engine's losses, with its options. */
  readonly loss: LossSpec;
  /**
   * Totals of the whole batch, if this is only a part of it: losses and gradients of the parts then add up. @default
   * the batch's own
   */
  readonly totals?: BatchTotals;
}

export interface Engine {
  /** Samples a completion. The engine batches requests; each may join and leave at any time. */
  sample(request: SampleRequest): Promise<Sample>;
  /** Adds the gradient of a batch's loss to the accumulated gradient. */
  forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput>;
  /** Updates the weights, and clears gradients and the prefix cache. */
  optimStep(adam: AdamParams): Promise<OptimOutput>;
  /** log π of every token of each datum, given the tokens before it; entry 0 is 0. */
  logprobs(batch: readonly Datum[], options?: LogprobOptions): Promise<Float32Array[]>;
  close(): Promise<void>;
}
