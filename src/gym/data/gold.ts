// Checks a gold query: it must run and return an answer, which must match the file's stated answer if there is one.
import type { Database, ResultTable } from "../sql/index.ts";
import { formatAnswer, MAX_ANSWER_LENGTH } from "./answer.ts";
import type { RejectionReason } from "./dataset.ts";
import type { AnswerType } from "./question.ts";

/** Maximum rows kept of a gold result. Players see fewer; Spider's longest has 10,507. */
export const MAX_GOLD_ROWS = 200_000;

/** Maximum bytes kept of a gold result; Spider's largest has 0.2 MB. */
export const MAX_GOLD_BYTES = 50_000_000;

export interface GoldFields {
  readonly gold_sql: string;
  /** If given, it is compared with the query's result. */
  readonly gold_answer?: unknown;
  readonly answer_type?: AnswerType | undefined;
}

export type GoldCheck =
  | { readonly ok: true; readonly table: ResultTable; readonly instructions: number }
  | { readonly ok: false; readonly reason: RejectionReason; readonly detail: string };

/** Runs the gold query and checks whether its result can be an answer. */
export function checkGold({ gold_sql, gold_answer, answer_type }: GoldFields, database: Database): GoldCheck {
  const result = database.run(gold_sql, { maxRows: MAX_GOLD_ROWS, maxBytes: MAX_GOLD_BYTES });
  if (!result.ok) return reject("gold_fails", `${result.error.error_class}: ${result.error.message}`);
  const { table, instructions } = result;
  if (table.rows.length === 0) return reject("gold_empty", "the gold query gives no rows");
  if (table.rows.every((row) => row.every((cell) => cell === null))) {
    return reject("gold_only_nulls", "the gold query gives nothing but NULL");
  }
  if (table.truncated) return reject("gold_fails", `too_large: ${table.truncated}`);
  const { length } = formatAnswer(table);
  if (length > MAX_ANSWER_LENGTH) {
    return reject("gold_too_long", `the answer has ${length} characters, and ${MAX_ANSWER_LENGTH} can be given`);
  }
  if (answer_type !== undefined && !suits(answer_type, table)) {
    return reject("gold_mismatch", `answer_type ${answer_type} does not suit a result ${shapeOf(table)}`);
  }
  if (gold_answer !== undefined && gold_answer !== null && !sameAnswer(gold_answer, table)) {
    return reject(
      "gold_mismatch",
      `gold_answer is ${short(gold_answer)}, the query gives ${short(formatAnswer(table))}`,
    );
  }
  return { ok: true, table, instructions };
}

function reject(reason: RejectionReason, detail: string): GoldCheck {
  return { ok: false, reason, detail };
}

/**
 * Whether a stated type fits the result: "string" fits any single value, "list" any single column, "table" everything.
 */
function suits(type: AnswerType, { columns, types, rows }: ResultTable): boolean {
  if (type === "table") return true;
  if (columns.length !== 1) return false;
  if (type === "list") return true;
  if (rows.length !== 1) return false;
  if (type === "string") return true;
  const cell = rows[0]![0];
  return types[0] === "integer" || (types[0] === "real" && (type === "float" || Number.isInteger(cell)));
}

function shapeOf({ columns, types, rows }: ResultTable): string {
  const of = columns.length === 1 ? ` of type ${types[0]}` : "";
  return `with ${rows.length} ${rows.length === 1 ? "row" : "rows"} and ${columns.length} ${columns.length === 1 ? "column" : "columns"}${of}`;
}

/** Compares leniently, only to catch outdated files: ignores white space, quotes, brackets, case and order. */
function sameAnswer(stated: unknown, table: ResultTable): boolean {
  const text = typeof stated === "string" ? stated : JSON.stringify(stated);
  return words(text) === words(formatAnswer(table));
}

/** Normalizes an answer to its sorted words, with numbers in one form. */
function words(text: string): string {
  const parts = text.toLowerCase().split(/[\s,;|"'`[\](){}]+/);
  return parts
    .filter((part) => part !== "")
    .map((part) =>
      part === "none" ? "null" : Number.isFinite(Number(part)) ? String(Number(Number(part).toPrecision(9))) : part,
    )
    .sort()
    .join(" ");
}

function short(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replace(/\s+/g, " ");
  return line.length <= 80 ? line : `${line.slice(0, 80)}…`;
}
