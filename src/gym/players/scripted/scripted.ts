// Scripted players: a generator yields actions, receives observations and returns the answer.

import { type Random, random } from "../../../random.ts";
import { DEFAULT_RULES, type EnvironmentRules, type SQLAction, type SQLObservation } from "../../env/index.ts";
import { parseResult } from "../lib/parse-observation.ts";
import type { Player } from "../player.ts";

/** Yields DESCRIBE, SAMPLE and QUERY actions and returns the text of the answer. */
export type Script = (
  first: SQLObservation,
  rng: Random,
  rules: EnvironmentRules,
) => Generator<SQLAction, string, SQLObservation>;

/**
 * A player that follows a script. On the last step it answers with the last rows it saw, even if the script has not
 * ended.
 *
 * @example
 * const player = scriptedPlayer("counter", function* () {
 *   const { result } = yield { action_type: "QUERY", argument: "SELECT count(*) FROM customers" };
 *   return result; // the answer
 * });
 */
export function scriptedPlayer(name: string, script: Script): Player {
  return {
    name,
    start: ({ seed, rules = DEFAULT_RULES }) => {
      let play: ReturnType<Script> | undefined;
      let lastSeen = "unknown";
      return (observation) => {
        if (observation.result !== "" && observation.error === null) lastSeen = answerFrom(observation.result);
        let step: IteratorResult<SQLAction, string>;
        if (play) step = play.next(observation);
        else {
          play = script(observation, random(name, seed), rules);
          step = play.next();
        }
        if (step.done) return { action: answer(step.value) };
        return { action: observation.budget_remaining <= 1 ? answer(lastSeen) : step.value };
      };
    },
  };
}

/** Formats the rows of a result as an answer; "unknown" if there are none. */
export function answerFrom(result: string): string {
  const { rows } = parseResult(result);
  return rows.map((row) => row.join(" | ")).join("\n") || "unknown";
}

function answer(text: string): SQLAction {
  return { action_type: "ANSWER", argument: text.trim() === "" ? "unknown" : text };
}
