// Picks the question that best shows what training changed.
import type { ComparedQuestion, Comparison } from "../../rl/run/records.ts";

/** A question only the last player answers correctly, preferably on an unseen database and not answerable by luck. */
export function exampleQuestion({ questions }: Comparison): ComparedQuestion | undefined {
  const improved = questions.filter(
    ({ episodes }) =>
      episodes.at(-1)?.correctness === 1 && episodes.slice(0, -1).every(({ correctness }) => correctness !== 1),
  );
  const unseen = improved.filter(({ seen }) => !seen);
  return unseen.find(isHardToGuess) ?? unseen[0] ?? improved.find(isHardToGuess) ?? improved[0] ?? questions[0];
}

/** False for short answers such as small numbers, which are easy to guess. */
function isHardToGuess({ episodes }: ComparedQuestion): boolean {
  const answer = episodes.at(-1)?.steps.at(-1)?.action.argument ?? "";
  return answer.length > 2;
}
