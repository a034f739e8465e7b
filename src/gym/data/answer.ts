// Formats a result as an answer: one canonical text per value, which the verifier parses.
import type { Cell, ResultTable, StorageClass } from "../sql/index.ts";
import type { AnswerType } from "./question.ts";

/** Maximum length of an answer, in characters; the environment has the same limit on arguments. */
export const MAX_ANSWER_LENGTH = 20_000;

/** Classifies a result as one value, one column, or a table. */
export function answerTypeOf({ columns, types, rows }: ResultTable): AnswerType {
  if (columns.length > 1) return "table";
  if (rows.length !== 1) return "list";
  return types[0] === "integer" ? "integer" : types[0] === "real" ? "float" : "string";
}

/**
 * Formats a result as a value, as `a, b, c`, or as one row per line with cells separated by bars; as JSON if a cell
 * would be misread.
 */
export function formatAnswer(table: Pick<ResultTable, "columns" | "types" | "rows">): string {
  const { columns, types, rows } = table;
  const single = columns.length === 1;
  const cells = rows.map((row) => row.map((cell, i) => formatCell(cell, types[i]!)));
  if (single && rows.length === 1) return cells[0]![0]!.trim() === "" ? JSON.stringify(cells[0]![0]) : cells[0]![0]!;
  const isPlain = (cell: Cell, text: string) =>
    cell === null || typeof cell !== "string" || (!AMBIGUOUS.test(text) && text === text.trim() && text !== "");
  if (rows.every((row, r) => row.every((cell, c) => isPlain(cell, cells[r]![c]!)))) {
    return single ? cells.map(([cell]) => cell).join(", ") : cells.map((row) => row.join(" | ")).join("\n");
  }
  const json = rows.map((row, r) => {
    const values = row.map((cell, c) =>
      cell === null ? "null" : typeof cell === "string" ? JSON.stringify(cell) : cells[r]![c]!,
    );
    return single ? values[0]! : `[${values.join(", ")}]`;
  });
  return `[${json.join(", ")}]`;
}

/** Matches text that would be ambiguous inside a list or row. */
const AMBIGUOUS = /[,;|\t\r\n"'`[\](){}]|^(?:null|none|nan)$|^[-*•] |^answer\b/i;

/** Formats one value: NULL, 3, 3.0, text unchanged. */
export function formatCell(cell: Cell, type: StorageClass): string {
  if (cell === null) return "NULL";
  if (typeof cell !== "number") return String(cell);
  if (type === "real" && Number.isInteger(cell) && Math.abs(cell) < 1e15) return cell.toFixed(1);
  return String(cell);
}
