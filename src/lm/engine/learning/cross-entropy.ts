// Cross-entropy, the loss of SFT, which every engine has.
import {
  batchTotals,
  checkLengths,
  type LossFunction,
  type LossOutput,
  type LossTable,
  type TokenSequence,
} from "./loss.ts";

export type CrossEntropySpec = { readonly type: "cross_entropy" };

/**
 * Σ w · (−log π) / Σ w.
 * @param normalizer Σ w of the whole batch, if `sequences` are only a part of it
 *
 * @example
 * const { loss } = crossEntropy([{ logp: [-0.1, -2.3], weights: [1, 1] }]); // (0.1 + 2.3) / 2
 */
export function crossEntropy(
  sequences: readonly Pick<TokenSequence, "logp" | "weights">[],
  normalizer = batchTotals(sequences).tokens,
): LossOutput {
  const share = 1 / (normalizer || 1); // a batch without weight has loss 0, not 0/0
  let loss = 0;
  const dLogp = sequences.map(({ logp, weights }, i) => {
    checkLengths(i, logp, { weights });
    const gradient = new Float32Array(logp.length);
    for (let t = 0; t < logp.length; t++) {
      const m = weights[t]!;
      if (m === 0) continue; // its log-prob may not have been computed
      loss -= share * m * logp[t]!;
      gradient[t] = -share * m;
    }
    return gradient;
  });
  const dEntropy = dLogp.map(({ length }) => new Float32Array(length));
  return { loss, dLogp, dEntropy, metrics: {}, ...batchTotals(sequences) };
}

/** Losses that every engine has without registration. */
export const BUILT_IN_LOSSES: LossTable = {
  cross_entropy: {
    compute: (sequences, _, { tokens }) => crossEntropy(sequences, tokens),
    mergeMetrics: () => ({}),
  } satisfies LossFunction,
};
