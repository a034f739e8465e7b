// Samples from part of the vocabulary: top-k, top-p and min-p, in the order of transformers.
import type { SampleRequest } from "../engine.ts";

/** Whether a request excludes tokens. */
export function hasFilter({ temperature = 1, top_k = 0, top_p = 1, min_p = 0 }: SampleRequest): boolean {
  return temperature !== 0 && (top_k > 0 || top_p < 1 || min_p > 0);
}

/** Samples from the tokens that pass the filters. */
export function chooseFiltered(
  logits: Float32Array,
  { temperature = 1, top_k = 0, top_p = 1, min_p = 0 }: SampleRequest,
  uniform: number,
): number {
  const highest = logits.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const weights = Float64Array.from(logits, (logit) => Math.exp((logit - highest) / temperature));
  // Sorted by probability, highest first; ties by id.
  const order = Array.from(weights.keys()).sort((a, b) => weights[b]! - weights[a]! || a - b);
  let kept = top_k > 0 ? order.slice(0, top_k) : order;
  if (top_p < 1) {
    const keptTotal = kept.reduce((sum, token) => sum + weights[token]!, 0);
    let sum = 0;
    const end = kept.findIndex((token) => {
      sum += weights[token]!;
      return sum >= top_p * keptTotal;
    });
    kept = end < 0 ? kept : kept.slice(0, end + 1);
  }
  if (min_p > 0) kept = kept.filter((token) => weights[token]! >= min_p * weights[kept[0]!]!);
  let left = uniform * kept.reduce((sum, token) => sum + weights[token]!, 0);
  return (
    kept.find((candidate) => {
      left -= weights[candidate]!;
      return left < 0;
    }) ?? kept.at(-1)!
  );
}
