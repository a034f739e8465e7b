// Failed actions of a group, to show to the teacher of self-distillation.
import { normalizeAction } from "../../gym/env/index.ts";
import type { Exchange, Prompt } from "../../gym/players/index.ts";
import type { Episode } from "../run/records.ts";

type Step = Episode["steps"][number];

/** Maximum number of failures in the teacher's context; more would add little and take room. */
const MAX_FAILURES = 2;

/** For each episode: actions that failed in its group and that it did not take itself, with the errors. */
export function failedTurns(group: readonly Episode[], prompt: Prompt): Exchange[][] {
  const failures = failuresOf(group);
  return group.map(({ steps }) => {
    const own = new Set(steps.map(({ action }) => normalizeAction(action)));
    return failures
      .filter(({ action }) => !own.has(normalizeAction(action)))
      .slice(0, MAX_FAILURES)
      .map(({ action, observation }) => ({ assistant: prompt.write(action), user: prompt.format(observation) }));
  });
}

/** Actions that failed in a group whose episodes are all wrong, one for each error; none of other groups. */
export function failuresOf(group: readonly Episode[]): Step[] {
  const scored = group.filter(({ correctness }) => correctness !== null);
  if (scored.some(({ correctness }) => correctness === 1)) return [];
  const known = new Set<string>();
  return scored
    .flatMap(({ steps }) => steps)
    .filter(({ observation: { error, error_class, done }, parse_error }) => {
      if (error === null || done || parse_error !== null || error_class === "repeat" || error_class === "bad_action")
        return false;
      return !known.has(error) && known.add(error);
    });
}
