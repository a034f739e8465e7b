// The random player: random tables, random columns, random simple queries, and an answer from values it has seen.

import { type Random, random } from "../../../random.ts";
import { LAST_RESULT, type SQLAction, type SQLObservation } from "../../env/index.ts";
import { quoteName } from "../../sql/index.ts";
import { type ParsedTable, parseResult, parseTables } from "../lib/parse-observation.ts";
import type { Player } from "../player.ts";

const GUESSED_COLUMNS = ["id", "name", "date", "year", "price"]; // used before any table is described
const GUESSED_ANSWERS = ["0", "1", "2", "10", "yes", "no", "unknown"];

/**
 * The random baseline, which ignores the question. Equal seeds play equal episodes.
 *
 * @example
 * const baseline = await evaluate(data, randomPlayer(), { episodes: 200 });
 */
export function randomPlayer(): Player {
  return randomActions("random", 1);
}

/** Like the random player, but answers sooner, so its episodes are short. */
export function flailerPlayer(): Player {
  return randomActions("flailer", 6);
}

/** `answers` is the weight of ANSWER; DESCRIBE, SAMPLE and QUERY each have weight 3. */
function randomActions(name: string, answers: number): Player {
  const weights = [
    ["DESCRIBE", 3],
    ["SAMPLE", 3],
    ["QUERY", 3],
    ["ANSWER", answers],
  ] as const;
  return {
    name,
    start: ({ seed, rules }) => {
      const rng = random(`${name} player`, seed);
      const seen: string[] = [];
      return (observation) => {
        remember(observation, seen);
        const type = observation.budget_remaining <= 1 ? "ANSWER" : rng.pickWeighted(weights);
        // Under the rule `answer_last` it sometimes answers @last: a baseline must use the rules it is compared under.
        if (type === "ANSWER" && rules?.answer_last && hasQueried(observation) && rng.chance(0.5))
          return { action: { action_type: type, argument: LAST_RESULT } };
        return { action: { action_type: type, argument: randomArgument(type, observation, seen, rng) } };
      };
    },
  };
}

/** Whether a query has succeeded. */
function hasQueried({ action_history }: SQLObservation): boolean {
  return action_history.some(
    (line) => line.startsWith("QUERY") && (!/ -> \w+$/.test(line) || line.endsWith(" -> repeat")),
  );
}

/** Stores the cells of a result as possible answers. */
function remember({ result, action_history }: SQLObservation, seen: string[]): void {
  const last = action_history.at(-1) ?? "";
  if (result === "" || last.startsWith("DESCRIBE")) return;
  seen.push(...parseResult(result).rows.flat());
}

function randomArgument(
  type: SQLAction["action_type"],
  { schema_info }: SQLObservation,
  seen: readonly string[],
  rng: Random,
): string {
  if (type === "ANSWER") return rng.pick(seen.length > 0 && rng.chance(0.8) ? seen : GUESSED_ANSWERS).trim() || "0";
  const table = rng.pick(parseTables(schema_info));
  return type === "QUERY" ? randomQuery(table, rng) : table.name;
}

function randomQuery(table: ParsedTable, rng: Random): string {
  const from = `FROM ${quoteName(table.name)}`;
  const column = quoteName(rng.pick(table.columns.length > 0 ? table.columns : GUESSED_COLUMNS));
  return rng.pick([
    `SELECT count(*) ${from}`,
    `SELECT * ${from} LIMIT ${rng.int(1, 5)}`,
    `SELECT ${column} ${from} LIMIT ${rng.int(1, 10)}`,
    `SELECT DISTINCT ${column} ${from}`,
    `SELECT ${rng.pick(["min", "max", "avg", "sum"])}(${column}) ${from}`,
    `SELECT * ${from} ORDER BY ${column} ${rng.pick(["ASC", "DESC"])} LIMIT 1`,
    `SELECT ${column}, count(*) ${from} GROUP BY ${column}`,
  ]);
}
