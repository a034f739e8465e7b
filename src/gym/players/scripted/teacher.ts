// The teacher plays demonstrations for SFT. It knows the gold query like the oracle, but takes every step a player
// without it would need: it reads the columns, samples values if a condition compares text, and describes other tables
// if the question names none. Sometimes it makes a mistake and corrects it, or repeats a query.

import { type Random, random } from "../../../random.ts";
import { LAST_RESULT, type SQLAction, type SQLObservation } from "../../env/index.ts";
import { quoteName } from "../../sql/index.ts";
import { parseTables } from "../lib/parse-observation.ts";
import type { Player } from "../player.ts";

/** Share of episodes whose first query fails; enough to learn how to recover. */
const STUMBLES = 0.15;

/** Share of episodes with a repeated query, which show a model the error for repeats. */
const REPEATS = 0.02;

/** Maximum number of other tables described first if the question names none. */
const SEARCHED = 3;

export interface TeacherOptions {
  /** Share of episodes whose first query names a wrong column. @default STUMBLES */
  readonly stumbles?: number;
  /** Share of multi-table episodes that query before one of the tables is described, and fail. @default 0 */
  readonly omissions?: number;
  /** @default REPEATS */
  readonly repeats?: number;
  /** Whether it describes other tables first if the question does not name its table. @default true */
  readonly searches?: boolean;
}

/**
 * Describes tables, samples those that have a condition on text, queries, and answers with the result.
 *
 * @example
 * await evaluate(data, teacherPlayer({ stumbles: 0.1 }), { split: "train" });
 */
export function teacherPlayer(options: TeacherOptions = {}): Player {
  const { stumbles = STUMBLES, omissions = 0, repeats = REPEATS, searches = true } = options;
  return {
    name: "teacher",
    start: ({ question: { question_text, tables_involved, gold_sql, gold_answer }, rules, seed }) => {
      const r = random("teacher player", seed);
      const sql = rounded(gold_sql);
      const sampled = tables_involved.filter((table) => hasTextCondition(sql, table, tables_involved.length === 1));
      let looks: SQLAction[] | undefined;
      let mayStumble = r.chance(stumbles);
      const mayRepeat = r.chance(repeats);
      let omitted =
        omissions > 0 && tables_involved.length > 1 && r.chance(omissions) ? tables_involved.at(-1) : undefined;
      let queried = 0;
      let result = "";
      return (observation) => {
        const { budget_remaining: left, schema_info } = observation;
        looks ??= [
          ...[...(searches ? searched(question_text, tables_involved, schema_info) : []), ...tables_involved]
            .filter((table) => table !== omitted)
            .map(described),
          ...sampled.map((table): SQLAction => ({ action_type: "SAMPLE", argument: table })),
        ];
        if (queried === 1) result = shown(observation);
        const isRepeat = queried === 1 && mayRepeat && left > 2;
        if (left <= 1 || (queried > 0 && !isRepeat)) {
          const written = queried > 0 && sql !== gold_sql ? result : gold_answer;
          const argument = queried > 0 && rules?.answer_last ? LAST_RESULT : written;
          return { action: { action_type: "ANSWER", argument } };
        }
        const look = left > 2 ? looks.shift() : undefined;
        if (look) return { action: look };
        if (omitted !== undefined && left > 4) {
          const guess = guessed(sql, schema_info);
          looks.push(described(omitted));
          omitted = undefined;
          return { action: guess === undefined ? looks.shift()! : { action_type: "QUERY", argument: guess } };
        }
        const wrong = mayStumble && left > 3 ? mistaken(sql, observation, r) : undefined;
        mayStumble = false;
        if (!wrong) queried++;
        return { action: { action_type: "QUERY", argument: wrong ?? sql } };
      };
    },
  };
}

function described(table: string): SQLAction {
  return { action_type: "DESCRIBE", argument: table };
}

/** Replaces columns of undescribed tables by guesses (the last word of the name); undefined if the query uses none. */
function guessed(sql: string, schema_info: string): string | undefined {
  const known = new Set(
    parseTables(schema_info).flatMap(({ columns }) => columns.map((name) => name.replaceAll('"', "").toLowerCase())),
  );
  const changed = sql.replace(/(?<=\b\w+\.)\w+/g, (name) => {
    if (known.has(name.toLowerCase())) return name;
    const last = name.split("_").at(-1)!;
    return last === name || last === "" ? name.slice(0, 3) : last;
  });
  return changed === sql ? undefined : changed;
}

/** Tables to describe first if the question does not name its table: the last few listed before that table. */
function searched(question: string, involved: readonly string[], listed: string): readonly string[] {
  const [table] = involved;
  if (involved.length !== 1 || isNamed(table!, question)) return [];
  const names = listed.split(/, (?=(?:[^"]*"[^"]*")*[^"]*$)/).map((name) => name.replaceAll('"', ""));
  return names.slice(0, Math.max(0, names.indexOf(table!))).slice(-SEARCHED);
}

/** Whether the question contains the beginning or the consonants of a word in the table's name. */
function isNamed(table: string, question: string): boolean {
  const words = table
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}]+/u);
  const letters = question.toLowerCase().replace(/[^\p{L}]/gu, "");
  const bare = (text: string) => text.replace(/[aeiou]/g, "");
  return words.some(
    (word) => word.length > 2 && (letters.includes(word.slice(0, 4)) || bare(letters).includes(bare(word).slice(0, 4))),
  );
}

/** Rounds averages to two decimals, which the verifier accepts: sixteen digits are hard to copy. */
function rounded(sql: string): string {
  return sql.startsWith("SELECT") && !/\bROUND\(/.test(sql) ? sql.replace(AVERAGE, "ROUND($&, 2)") : sql;
}

/** Matches an average in the SELECT list, but not one that rows are compared with or ordered by. */
const AVERAGE = /(?<=^SELECT (?:[^()]*, )?)AVG\([^()]+\)(?=(?:, [^()]*)? FROM )/;

/** Formats the rows of the last result as an answer. */
function shown({ result }: SQLObservation): string {
  return result.split("\n").slice(1).join("\n");
}

/** Whether the query compares a column of the table with text that is neither a date nor a pattern. */
function hasTextCondition(sql: string, table: string, only: boolean): boolean {
  const column = String.raw`(?:"[^"]+"|\w+)`;
  const owner = only ? "" : String.raw`${escaped(quoteName(table))}\.`;
  const condition = new RegExp(String.raw`(?<![\w"])${owner}${column} (?:=|<>|IN) \(?'(?!\d{4})`);
  return condition.test(sql);
}

/**
 * Puts a wrong column into the query: half of a name, or another column of a described table; undefined if that is
 * impossible.
 */
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
