// What a loss is to the engine: log-probs and entropies of tokens in; a number, its gradients and metrics out. It reaches
// the parameters only through these two, so kernels never see which loss is used. Host arithmetic, one per name:
//
//     new LocalEngine(model, { losses: { ...POLICY_LOSSES, my_loss } })
//     engine.forwardBackward(batch, { loss: { type: "my_loss", … } })
import { UsageError } from "../../../errors.ts";

/** Which loss, by its name in the engine's table, with its options: plain data, since it may cross threads. */
export interface LossSpec {
  readonly type: string;
  readonly [option: string]: unknown;
}

/** One sequence as a loss sees it: the trained tokens of all data with the same `sequence`, in order. Arrays are [tokens]. */
export interface TokenSequence {
  /** log π of each token, from logits divided by the sampling temperature. */
  readonly logp: ArrayLike<number>;
  /** Entropy of the distribution that each token was drawn from. */
  readonly entropy: ArrayLike<number>;
  /** 1 for tokens to learn from, 0 for the others (never read); cross-entropy takes any weight. */
  readonly weights: ArrayLike<number>;
  /** Policy losses: how much better than its group the sequence did, or each of its tokens. */
  readonly advantage?: number | ArrayLike<number>;
  /** log π_old; null when the model has not changed since it sampled: the ratio is then exactly 1. */
  readonly old_logp?: ArrayLike<number> | null;
  /** log π_ref; needed when β ≠ 0. */
  readonly ref_logp?: ArrayLike<number> | null;
  /** Log-probs as the sampler reported them, for the off-policy mask. @default old_logp */
  readonly sampling_logp?: ArrayLike<number> | null;
}

/** What denominators are made of. Given for the whole batch, losses and gradients of its parts add up to its own. */
export interface BatchTotals {
  /** Sequences in the batch, including those skipped because their advantage is 0. */
  readonly sequences: number;
  /** Sum of the weights of all its tokens, skipped ones included. */
  readonly tokens: number;
}

/** Metrics of a part of a batch, and what they are means over. */
export interface PartMetrics {
  readonly metrics: Record<string, number>;
  /** Sum of the token weights. */
  readonly tokens: number;
  readonly sequences: number;
}

/** A loss, its gradients, and its metrics with what they are means over. */
export interface LossOutput extends PartMetrics {
  readonly loss: number;
  /** ∂loss/∂logp of each sequence's tokens. */
  readonly dLogp: Float32Array[];
  /** ∂loss/∂entropy of each sequence's tokens. */
  readonly dEntropy: Float32Array[];
}

export type TokenEntropies = Pick<TokenSequence, "entropy" | "weights">;

export interface LossFunction<S extends LossSpec = LossSpec, T extends BatchTotals = BatchTotals> {
  /** The loss of a batch, or of a part of the batch that `totals` describes. */
  compute(sequences: readonly TokenSequence[], spec: S, totals: T): LossOutput;
  /** The metrics of a batch that was computed in parts. */
  mergeMetrics(parts: readonly PartMetrics[], spec: S): Record<string, number>;
  /**
   * Totals that depend on the entropy of every token. A batch in parts then needs a first pass without gradients, whose
   * entropies go to the returned function; null where this spec does not need it.
   */
  entropyTotals?(spec: S, totals: T): ((sequences: readonly TokenEntropies[]) => T) | null;
}

/** Loss functions by name. */
export type LossTable = Readonly<Record<string, LossFunction>>;

/** The loss function that a spec names. */
export function lossNamed(type: string, losses: LossTable): LossFunction {
  if (Object.hasOwn(losses, type)) return losses[type]!;
  throw new UsageError({
    what: `this engine knows no such loss (only ${Object.keys(losses).join(", ")})`,
    value: type,
    remedy: "load the model with loadTrainableModel for policy losses, or add it to the `losses` of the engine",
  });
}

/** Number of sequences and sum of weights. */
export function batchTotals(sequences: readonly Pick<TokenSequence, "weights">[]): BatchTotals {
  return { sequences: sequences.length, tokens: sum(sequences.map(({ weights }) => sum(weights))) };
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}

/** Refuses arrays of another length than the log-probs. */
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
