// Which question shows best what a training changed.
import type { ComparedQuestion, Comparison } from "../training/records.ts";

/** A question the last player gets right and the others do not, on an unseen database if there is one. */
export function tellingQuestion({ questions }: Comparison): ComparedQuestion | undefined {
  const gained = questions.filter(
    ({ episodes }) =>
      episodes.at(-1)?.correctness === 1 && episodes.slice(0, -1).every(({ correctness }) => correctness !== 1),
  );
  return gained.find(({ seen }) => !seen) ?? gained[0] ?? questions[0];
}
