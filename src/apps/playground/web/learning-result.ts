// The result of a training as one sentence.
import type { Evaluation } from "./worker-protocol.ts";

type Score = Pick<Evaluation, "right" | "of">;

/** Compares before and after; says that the model learned only if the difference is larger than chance explains. */
export function learningResult(before: Score, after: Score): string {
  const tested = `right on ${before.right} of ${before.of} test questions before, on ${after.right} after`;
  return isMoreThanChance(before, after) ? `It learned: ${tested}.` : `${tested[0]!.toUpperCase()}${tested.slice(1)}.`;
}

/** Whether the gain exceeds two standard errors of the difference. */
export function isMoreThanChance(before: Score, after: Score): boolean {
  const [low, high] = [before, after].map(({ right, of }) => right / Math.max(1, of)) as [number, number];
  const pooled = (before.right + after.right) / Math.max(1, before.of + after.of);
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / Math.max(1, before.of) + 1 / Math.max(1, after.of)));
  return high - low > 2 * error;
}
