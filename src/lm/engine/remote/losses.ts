// Losses of a remote engine: how one of our losses is sent to a server of the Tinker API, and how its value and metrics
// are computed from the log-probs that come back. Servers sum their losses over all tokens; ours are averages, so weights
// and advantages are sent with each token's share of the average.
import { UsageError } from "../../../errors.ts";
import type { Datum } from "../engine.ts";
import { crossEntropy } from "../learning/cross-entropy.ts";
import { type BatchTotals, batchTotals, type LossSpec } from "../learning/loss.ts";

/** What a server needs for one datum. Arrays are as long as its tokens; entry i is about predicting tokens[i]. */
export interface RemoteInputs {
  /** For cross_entropy. */
  readonly weights?: ArrayLike<number>;
  /** For the policy losses: log π of the model that sampled. */
  readonly logprobs?: ArrayLike<number>;
  readonly advantages?: ArrayLike<number>;
}

/** A loss as the server knows it. */
export interface RemoteRequest {
  readonly loss_fn: string;
  readonly loss_fn_config?: Readonly<Record<string, number>>;
  /** One per datum. */
  readonly inputs: readonly RemoteInputs[];
}

/** One of our losses on a server. */
export interface RemoteLoss<S extends LossSpec = LossSpec> {
  /** Throws UsageError for options that the server's losses do not have. */
  request(batch: readonly Datum[], spec: S, totals: BatchTotals): RemoteRequest;
  /** Computes our loss and metrics from the log-probs of the server. */
  result(
    batch: readonly Datum[],
    spec: S,
    totals: BatchTotals,
    logprobs: readonly Float32Array[],
  ): { readonly loss: number; readonly metrics: Record<string, number> };
}

export type RemoteLossTable = Readonly<Record<string, RemoteLoss>>;

/** Cross-entropy, which every server has: Σ w · (−log π) with weights that add up to 1. */
export const REMOTE_CROSS_ENTROPY: RemoteLoss = {
  request: (batch, _, { tokens }) => ({
    loss_fn: "cross_entropy",
    inputs: batch.map(({ weights }) => ({ weights: Float64Array.from(weights, (w) => w / (tokens || 1)) })),
  }),
  result(batch, _, { tokens }, logprobs) {
    const sequences = batch.map(({ weights }, i) => trainedPart(weights, logprobs[i]!));
    return { loss: crossEntropy(sequences, tokens).loss, metrics: {} };
  },
};

export function remoteLossNamed(type: string, losses: RemoteLossTable): RemoteLoss {
  if (Object.hasOwn(losses, type)) return losses[type]!;
  throw new UsageError({
    what: `a remote engine has no such loss (only ${Object.keys(losses).join(", ")})`,
    value: type,
    remedy: "load the model with loadRemoteModel of sqlenv/rl/node for policy losses",
  });
}

/** Weights and log-probs of the tokens that are trained on. */
function trainedPart(weights: ArrayLike<number>, logprobs: Float32Array): { weights: number[]; logp: number[] } {
  const kept = Array.from(weights, (_, i) => i).filter((i) => i > 0 && weights[i] !== 0);
  return { weights: kept.map((i) => weights[i]!), logp: kept.map((i) => logprobs[i]!) };
}

/** Totals of a batch that is not part of a larger one; data with the same `sequence` are one. */
export function totalsOfBatch(batch: readonly Datum[]): BatchTotals {
  const bySequence = new Map<number | string, number[]>();
  for (const [i, { weights, sequence }] of batch.entries()) {
    const key = sequence ?? `alone ${i}`;
    bySequence.set(key, [...(bySequence.get(key) ?? []), ...Array.from(weights).slice(1)]);
  }
  return batchTotals([...bySequence.values()].map((weights) => ({ weights })));
}
