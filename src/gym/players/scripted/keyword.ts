// The keyword player: matches the words of the question with tables, columns and stored values, and builds one simple
// query from the matches (see keyword-sql.ts). It sees only observations.
import { LAST_RESULT, type SQLAction } from "../../env/index.ts";
import { buildQueries, readValues, valueProbe } from "../lib/keyword-sql.ts";
import { type ParsedDescription, parseDescription, parseResult, parseTables } from "../lib/parse-observation.ts";
import { mention, stems } from "../lib/stemming.ts";
import type { Player } from "../player.ts";
import { answerFrom, scriptedPlayer } from "./scripted.ts";

const TABLES_READ = 3; // maximum tables described; each takes a step

/**
 * Describes the tables named in the question, finds stored values that occur in it, then queries and answers.
 *
 * @example
 * await evaluate(data, keywordPlayer(), { episodes: 50 });
 */
export function keywordPlayer(): Player {
  return scriptedPlayer("keyword", function* ({ question, schema_info }, _, rules) {
    const tables: ParsedDescription[] = [];
    const names = parseTables(schema_info).map(({ name }) => name);
    for (let queue = rankTables(names, question); queue.length > 0 && tables.length < TABLES_READ; ) {
      const seen = yield { action_type: "DESCRIBE", argument: queue[0]! };
      const described = parseDescription(seen.result, seen.schema_info);
      if (described) tables.push(described);
      // Tables referenced by the first one come last: the question may name only one of their rows.
      const referred = tables[0]?.columns.flatMap(({ references }) => references?.table ?? []) ?? [];
      queue = [...new Set([...queue.slice(1), ...referred])].filter((name) => tables.every((t) => t.name !== name));
    }
    if (tables.length === 0) return "unknown";

    const probe = valueProbe(question, tables);
    const values = probe ? readValues((yield query(probe)).result, question, tables) : [];
    for (const sql of buildQueries(question, tables, values)) {
      const seen = yield query(sql);
      const { rows } = parseResult(seen.result);
      if (seen.error === null && rows.some((row) => row.some((cell) => cell !== "NULL")))
        return rules.answer_last ? LAST_RESULT : answerFrom(seen.result);
    }
    return "unknown";
  });
}

function query(sql: string): SQLAction {
  return { action_type: "QUERY", argument: sql };
}

/** Tables named in the question, ranked by match and position; all tables if it names none. */
function rankTables(names: readonly string[], question: string): string[] {
  const words = stems(question);
  const scored = names.map((name) => ({ name, ...mention(name, words) }));
  const named = scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score || a.at - b.at);
  return (named.length > 0 ? named : scored).map(({ name }) => name);
}
