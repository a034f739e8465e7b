// Generates a question from a form: runs its query and rejects trivial or overlong answers.

import type { Random } from "../../random.ts";
import { answerTypeOf, checkGold, formatAnswer, type QuestionRecord, tablesInvolved } from "../data/index.ts";
import type { Database } from "../sql/index.ts";
import type { World } from "./build.ts";
import type { Form } from "./forms/index.ts";

/** A question without the fields that depend on its data set. */
export type Asked = Omit<QuestionRecord, "question_id" | "split">;

export interface AskOptions {
  /** Maximum rows of the answer. @default 12 */
  readonly maxRows?: number;
  /** Maximum characters of the answer. @default 400 */
  readonly maxCharacters?: number;
}

/** Generates a question of this form about the world in `database`; null if the sample gave none worth asking. */
export function ask(form: Form, world: World, database: Database, r: Random, options: AskOptions = {}): Asked | null {
  const { maxRows = 12, maxCharacters = 400 } = options;
  const made = form.make(world, r);
  if (!made) return null;
  const gold = checkGold(made, database);
  if (!gold.ok) return null;
  const { rows } = gold.table;
  if (rows.length > maxRows || (form.several && rows.length < 2)) return null;
  if (rows.some((row) => row.some((cell) => cell === null))) return null;
  if (hasTies(made.gold_sql, database)) return null;
  const isZero = rows.length === 1 && rows[0]!.length === 1 && rows[0]![0] === 0;
  const gold_answer = formatAnswer(gold.table);
  if (isZero || gold_answer.length > maxCharacters) return null;
  return {
    question_text: made.question_text,
    database_name: database.name,
    gold_sql: made.gold_sql,
    gold_answer,
    answer_type: answerTypeOf(gold.table),
    difficulty: form.difficulty,
    tables_involved: tablesInvolved(made.gold_sql, database.tables),
  };
}

/** Whether the order of an ordered query's rows is ambiguous (ties), or there are fewer rows than it asks for. */
export function hasTies(sql: string, database: Database): boolean {
  const [, from, key, down = "", limit, offset = "0"] =
    /^SELECT .+? FROM (.*) ORDER BY (.+?)( DESC)?(?: LIMIT (\d+)(?: OFFSET (\d+))?)?$/.exec(sql) ?? [];
  if (from === undefined) return false;
  const wanted = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit) + Number(offset);
  const keys = database.run(`SELECT ${key} FROM ${from} ORDER BY ${key}${down}`);
  if (!keys.ok) return true;
  const values = keys.table.rows.slice(0, wanted + 1).map(([value]) => value);
  return new Set(values).size < values.length || (limit !== undefined && values.length < wanted);
}
