// What an episode without a gold answered, and whether the results it saw support that.
import { SqlEnvError } from "../../errors.ts";
import { formatAnswer } from "../data/index.ts";
import {
  type Gold,
  isLastReference,
  runGold,
  tableName,
  tableNames,
  verifyAnswer,
  verifyResult,
} from "../env/index.ts";
import { fold, readAnswer } from "../env/verifier/parse-answer.ts";
import { readNumber } from "../env/verifier/verify.ts";
import type { StepRecord } from "../episode.ts";
import type { Cell, Database, ResultTable, StorageClass } from "../sql/index.ts";

/** Where an answer comes from: it is a query's whole result, all its values were seen in results, or neither. */
export type Support = "result" | "values" | "none";

/** An episode's answer. */
export interface FoundAnswer {
  /** The answer's text; null if the episode ended without one. */
  readonly text: string | null;
  /** The query that gave it: the last one whose result it is, else the last whose result has all its values. */
  readonly sql: string | null;
  /** The result of `sql`, if the answer is that whole result, with at most MAX_ROWS rows; else null. */
  readonly result: ResultTable | null;
  readonly support: Support;
  /** The whole result and the answers that the verifier accepts for it; null if it has no values. */
  readonly gold: Gold | null;
}

const NO_ANSWER: FoundAnswer = { text: null, sql: null, result: null, support: "none", gold: null };

/** Finds the answer of an episode. The queries of its steps are run again, since observations shorten results. */
export function findAnswer(steps: readonly StepRecord[], database: Database): FoundAnswer {
  const last = steps.at(-1);
  if (last?.action.action_type !== "ANSWER" || !last.observation.done || last.observation.error !== null)
    return NO_ANSWER;
  const worked = steps.filter(({ observation: { error_class } }) => error_class === null || error_class === "repeat");
  const queries = worked.filter(({ action }) => action.action_type === "QUERY").map(({ action }) => action.argument);
  const { argument } = last.action;
  if (isLastReference(argument) && queries.length > 0) {
    const found = resultOf(queries.at(-1)!, database);
    if (found) return { ...found, text: formatResult(found.result), support: "result" };
  }
  const text = argument.trim();
  const distinct = [...new Set(queries.reverse())];
  for (const sql of distinct) {
    const found = resultOf(sql, database);
    if (found && isResult(text, found)) return { ...found, text, support: "result" };
  }
  const values = { text, result: null, gold: null, support: "values" } as const;
  for (const sql of distinct) {
    const result = database.run(sql);
    if (result.ok && hasSeen(text, [result.table])) return { ...values, sql };
  }
  return hasSeen(
    text,
    worked.flatMap((step) => tablesOf(step, database)),
  )
    ? { ...values, sql: null }
    : { ...NO_ANSWER, text };
}

/** Whether two answers are equal by the verifier's rules: each may be checked against the other's result. */
export function sameAnswer(a: FoundAnswer, b: FoundAnswer): boolean {
  if (a.text === null || b.text === null) return false;
  if (isAccepted(a, b.gold) || isAccepted(b, a.gold)) return true;
  const [x, y] = [readNumber(a.text), readNumber(b.text)];
  return x && y ? x.value === y.value : fold(a.text) === fold(b.text);
}

function isAccepted({ text, gold: own }: FoundAnswer, gold: Gold | null): boolean {
  if (!gold) return false;
  return own ? verifyResult(own, gold) : verifyAnswer(text!, gold);
}

type QueryResult = Pick<FoundAnswer, "sql" | "gold"> & { readonly result: ResultTable };

/** Runs a query. Returns its result and a gold made of it, with which the verifier compares answers; null if it fails. */
function resultOf(sql: string, database: Database): QueryResult | null {
  const run = database.run(sql);
  if (!run.ok) return null;
  try {
    return { sql, result: run.table, gold: runGold({ question_id: "asked", gold_sql: sql }, database) };
  } catch (error) {
    if (error instanceof SqlEnvError && error.code === "bad_gold") return { sql, result: run.table, gold: null };
    throw error;
  }
}

/** Whether an answer is a whole result. The verifier compares values; a result without any has one form. */
function isResult(text: string, { gold, result }: QueryResult): boolean {
  return gold ? verifyAnswer(text, gold) : fold(text) === fold(formatResult(result));
}

/** A result as the text of an answer. */
function formatResult(result: ResultTable): string {
  return result.rows.length === 0 ? "(no rows)" : formatAnswer(result);
}

const MAX_COLUMNS = 8; // `hasSeen` reads an answer as rows of up to this many cells

/** Whether an answer, read as rows of some width, has only cells that are values of these results. */
function hasSeen(text: string, results: readonly ResultTable[]): boolean {
  const golds = [oneOf(results, true), oneOf(results, false)];
  const known = new Map<string, boolean>();
  const isValue = (cell: string): boolean => {
    const found = known.get(cell) ?? golds.some((gold) => verifyAnswer(cell, gold));
    known.set(cell, found);
    return found;
  };
  return Array.from({ length: MAX_COLUMNS }, (_, i) => Array<string>(i + 1).fill("")).some((columns) =>
    readAnswer(text, columns).some(
      (rows) => rows.length > 0 && rows.flat().every((cell) => isValue(cell.raw ?? cell.text)),
    ),
  );
}

const MAX_SEEN = 3_000; // values with which a cell is compared: the verifier looks for rounded numbers in no more rows

/** A gold that accepts any single value of these results' columns of reals, which may be rounded, or of their others. */
function oneOf(results: readonly ResultTable[], reals: boolean): Gold {
  const type: StorageClass = reals ? "real" : "text";
  const cells = new Set<Cell>();
  for (const { types, rows } of results)
    for (const row of rows)
      for (const [i, cell] of row.entries())
        if ((types[i] === "real") === reals && cells.size < MAX_SEEN) cells.add(cell);
  const rows = [...cells].map((cell) => [cell]);
  return {
    columns: [""],
    types: [type],
    rows,
    truncated: null,
    answer_type: "list",
    ordered: false,
    groups: [{ rows, take: 1 }],
    instructions: 0,
  };
}

/** What a step showed: a query's result, a sample, or the number of rows in a description. */
function tablesOf({ action: { action_type, argument } }: StepRecord, database: Database): ResultTable[] {
  if (action_type === "QUERY") {
    const result = database.run(argument);
    return result.ok ? [result.table] : [];
  }
  if (action_type === "ANSWER") return [];
  const names = [argument.trim(), tableName(argument), ...tableNames(argument)];
  const tables = new Set(names.flatMap((name) => database.table(name) ?? []));
  return [...tables].flatMap((table) => {
    if (action_type === "DESCRIBE")
      return [{ columns: ["rows"], types: ["integer"], rows: [[database.rowCount(table)]], truncated: null }];
    const sample = database.sample(table);
    return sample.ok ? [sample.table] : [];
  });
}
