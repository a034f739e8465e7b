// A player that reads the first rows and the row count of the table that the question probably asks about.
import { quoteName } from "../../sql/index.ts";
import { parseResult, parseTables } from "../lib/parse-observation.ts";
import { mention, occursIn, stems } from "../lib/stemming.ts";
import type { Player } from "../player.ts";
import { scriptedPlayer } from "./scripted.ts";

const LOOKED_ROWS = 20; // as many as an observation shows

/**
 * Answers with the number of rows, or with the cells of the column named in the question.
 *
 * @example
 * await evaluate(data, lookerPlayer(), { episodes: 50 });
 */
export function lookerPlayer(): Player {
  return scriptedPlayer("looker", function* ({ question, schema_info }, rng) {
    const words = stems(question);
    const tables = rng.shuffle(parseTables(schema_info)); // random choice among equal matches
    const { name } = bestBy(tables, (table) => mention(table.name, words).score);
    yield { action_type: "DESCRIBE", argument: name };
    const from = `FROM ${quoteName(name)}`;
    const counted = yield { action_type: "QUERY", argument: `SELECT count(*) ${from}` };
    const looked = yield { action_type: "QUERY", argument: `SELECT * ${from} LIMIT ${LOOKED_ROWS}` };
    const { columns, rows } = parseResult(looked.result);

    // Keep the rows in which the most values occur in the question.
    const hits = rows.map((row) => row.filter((cell) => cell.length > 2 && occursIn(cell, question)).length);
    const most = Math.max(0, ...hits);
    const matching = most > 0 ? rows.filter((_, i) => hits[i] === most) : rows.slice(0, 1);
    if (/\b(?:how many|number of|count)\b/i.test(question)) {
      return most > 0 ? String(matching.length) : (parseResult(counted.result).rows[0]?.[0] ?? "0");
    }
    const asked = bestBy([...columns.keys()], (i) => mention(columns[i]!, words).score);
    const text = columns.findIndex((_, i) => /\p{L}/u.test(rows[0]?.[i] ?? ""));
    const column = mention(columns[asked]!, words).score > 0 || text < 0 ? asked : text;
    return matching.map((row) => row[column] ?? "").join(", ") || "unknown";
  });
}

/** The item with the highest score; the first one if several are equal. */
function bestBy<T>(items: readonly T[], score: (item: T) => number): T {
  const scores = items.map(score);
  return items[scores.indexOf(Math.max(...scores))]!;
}
