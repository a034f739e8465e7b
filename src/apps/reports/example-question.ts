// Which question shows best what a training changed.
import type { ComparedQuestion, Comparison } from "../../rl/run/records.ts";

/** A question the last player gets right and the others do not, on an unseen database if there is one, and rather one that luck does not answer. */
export function tellingQuestion({ questions }: Comparison): ComparedQuestion | undefined {
  const gained = questions.filter(
    ({ episodes }) =>
      episodes.at(-1)?.correctness === 1 && episodes.slice(0, -1).every(({ correctness }) => correctness !== 1),
  );
  const unseen = gained.filter(({ seen }) => !seen);
  return unseen.find(isNoLuck) ?? unseen[0] ?? gained.find(isNoLuck) ?? gained[0] ?? questions[0];
}

/** Whether the right answer is more than a small number, which anyone may guess. */
function isNoLuck({ episodes }: ComparedQuestion): boolean {
  const answer = episodes.at(-1)?.steps.at(-1)?.action.argument ?? "";
  return answer.length > 2;
}
