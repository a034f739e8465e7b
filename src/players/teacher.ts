// The player to learn from: like the oracle it knows the gold, but it shows every look that someone who does not know it
// would need: the columns, the values where a condition names one, and now and then a mistake and its mending.
import type { SQLAction, SQLObservation } from "../env/index.ts";
import { type Random, random } from "../random.ts";
import { quoteName } from "../sql/index.ts";
import type { Player } from "./player.ts";

/** How often a query goes wrong at first; enough to learn what to do then. */
const STUMBLES = 0.1;

/** Looks at columns, at rows where a text value is asked about, queries, and answers with what the result shows. */
export function teacherPlayer({ stumbles = STUMBLES } = {}): Player {
  return {
    name: "teacher",
    start: ({ question: { tables_involved, gold_sql, gold_answer }, seed }) => {
      const r = random("teacher player", seed);
      const sql = rounded(gold_sql);
      const looks = tables_involved.map((table): SQLAction => ({ action_type: "DESCRIBE", argument: table }));
      const sampled = tables_involved.filter((table) => hasTextCondition(sql, table, tables_involved.length === 1));
      looks.push(...sampled.map((table): SQLAction => ({ action_type: "SAMPLE", argument: table })));
      let mayStumble = r.chance(stumbles);
      let queried = false;
      return (observation) => {
        if (queried || observation.budget_remaining <= 1)
          return {
            action: { action_type: "ANSWER", argument: queried && sql !== gold_sql ? shown(observation) : gold_answer },
          };
        const look = observation.budget_remaining > 2 ? looks.shift() : undefined;
        if (look) return { action: look };
        const wrong = mayStumble && observation.budget_remaining > 3 ? mistaken(sql, observation, r) : undefined;
        mayStumble = false;
        queried = wrong === undefined;
        return { action: { action_type: "QUERY", argument: wrong ?? sql } };
      };
    },
  };
}

/** Averages as people give them: two decimals are right, and sixteen digits are many to copy. */
function rounded(sql: string): string {
  return sql.startsWith("SELECT") && !/\bROUND\(/.test(sql) ? sql.replace(AVERAGE, "ROUND($&, 2)") : sql;
}

/** An average that is shown: not one that rows are compared with or ordered by. */
const AVERAGE = /(?<=^SELECT (?:[^()]*, )?)AVG\([^()]+\)(?=(?:, [^()]*)? FROM )/;

/** The rows of the last result as an answer. */
function shown({ result }: SQLObservation): string {
  return result.split("\n").slice(1).join("\n");
}

/** Whether the query compares a column of the table with a text that is not a date or a pattern. */
function hasTextCondition(sql: string, table: string, only: boolean): boolean {
  const column = String.raw`(?:"[^"]+"|\w+)`;
  const owner = only ? "" : String.raw`${escaped(quoteName(table))}\.`;
  const condition = new RegExp(String.raw`(?<![\w"])${owner}${column} (?:=|<>|IN) \(?'(?!\d{4})`);
  return condition.test(sql);
}

/** The query with a wrong column: half of a name, or another column of a described table; undefined where none can be had. */
function mistaken(sql: string, { schema_info }: SQLObservation, r: Random): string | undefined {
  const columns = schema_info.split("\n").flatMap((line) => /\((.*)\)$/.exec(line)?.[1]?.split(", ") ?? []);
  const used = columns.filter((name) => new RegExp(String.raw`(?<![\w"'])${escaped(name)}(?![\w"'])`).test(sql));
  if (used.length === 0) return undefined;
  const name = r.pick(used);
  const others = columns.filter((other) => other !== name);
  const wrong = r.chance(0.5) || others.length === 0 ? name.replaceAll('"', "").slice(0, r.int(2, 4)) : r.pick(others);
  const changed = sql.replace(new RegExp(String.raw`(?<![\w"'])${escaped(name)}(?![\w"'])`, "g"), () => wrong);
  return changed === sql ? undefined : changed;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
