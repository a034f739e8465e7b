// The loss interface: log-probs and entropies of tokens in; a number, its gradients and metrics out. A loss reaches the
// parameters only through these two inputs, so kernels never depend on it. Losses run on the host and are registered by
// name:
//
//     new LocalEngine(model, { losses: { ...POLICY_LOSSES, my_loss } })
//     engine.forwardBackward(batch, { loss: { type: "my_loss", … } })
import { UsageError } from "../../../errors.ts";

/** Names a loss in the engine's table, with its options: plain data, since it may cross threads. */
export interface LossSpec {
  readonly type: string;
  readonly [option: string]: unknown;
}

/**
 * One sequence as a loss sees it: the trained tokens of all data with the same `sequence`, in order. All arrays have
 * one entry per token.
 */
export interface TokenSequence {
  /** log π of each token, from logits divided by the sampling temperature. */
  readonly logp: ArrayLike<number>;
  /** Entropy of the distribution that each token was sampled from. */
  readonly entropy: ArrayLike<number>;
  /** 1 for tokens to learn from, 0 for others, which are never read; cross-entropy accepts any weight. */
  readonly weights: ArrayLike<number>;
  /** For policy losses: how much better than its group the sequence did, or each of its tokens. */
  readonly advantage?: number | ArrayLike<number>;
  /** log π_old; null if the model has not changed since it sampled, so that the ratio is exactly 1. */
  readonly old_logp?: ArrayLike<number> | null;
  /** log π_ref; needed when β ≠ 0. */
  readonly ref_logp?: ArrayLike<number> | null;
}

/**
 * Inputs to the denominators. If given for the whole batch, losses and gradients of its parts add up to the batch's.
 */
export interface BatchTotals {
  /** Number of sequences in the batch, including ones skipped because their advantage is 0. */
  readonly sequences: number;
  /** Sum of the weights of all tokens, including those of skipped sequences. */
  readonly tokens: number;
}

/** Metrics of a part of a batch, and the counts that they are averaged over. */
export interface PartMetrics {
  readonly metrics: Record<string, number>;
  /** Sum of the token weights. */
  readonly tokens: number;
  readonly sequences: number;
}

/** A loss, its gradients and its metrics. */
export interface LossOutput extends PartMetrics {
  readonly loss: number;
  /** ∂loss/∂logp of each token, per sequence. */
  readonly dLogp: Float32Array[];
  /** ∂loss/∂entropy of each token, per sequence. */
  readonly dEntropy: Float32Array[];
}

export type TokenEntropies = Pick<TokenSequence, "entropy" | "weights">;

export interface LossFunction<S extends LossSpec = LossSpec, T extends BatchTotals = BatchTotals> {
  /** The loss of a batch, or of a part of the batch that `totals` describes. */
  compute(sequences: readonly TokenSequence[], spec: S, totals: T): LossOutput;
  /** Combines the metrics of a batch that was computed in parts. */
  mergeMetrics(parts: readonly PartMetrics[], spec: S): Record<string, number>;
  /**
   * For totals that depend on every token's entropy. A batch in parts then needs a first pass without gradients, whose
   * entropies are passed to the returned function; null if this spec does not need it.
   */
  entropyTotals?(spec: S, totals: T): ((sequences: readonly TokenEntropies[]) => T) | null;
}

/** Loss functions by name. */
export type LossTable = Readonly<Record<string, LossFunction>>;

/** Looks up the loss function that a spec names. */
export function lossNamed(type: string, losses: LossTable): LossFunction {
  if (Object.hasOwn(losses, type)) return losses[type]!;
  throw new UsageError({
    what: `this engine knows no such loss (only ${Object.keys(losses).join(", ")})`,
    value: type,
    remedy: "load the model with loadTrainableModel for policy losses, or add it to the `losses` of the engine",
  });
}

/** Counts sequences and sums weights. */
export function batchTotals(sequences: readonly Pick<TokenSequence, "weights">[]): BatchTotals {
  return { sequences: sequences.length, tokens: sum(sequences.map(({ weights }) => sum(weights))) };
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

/** Throws if an array's length differs from the log-probs'. */
export function checkLengths(
  sequence: number,
  logp: ArrayLike<number>,
  others: Record<string, ArrayLike<number> | null | undefined>,
): void {
  for (const [name, values] of Object.entries(others))
    if (values && values.length !== logp.length)
      throw new UsageError({
        what: `sequence ${sequence} has ${logp.length} log-probs but another number of ${name}`,
        value: values.length,
      });
}
