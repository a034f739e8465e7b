// The screen while playing or watching: the question, each step and the end.
import { formatCell, type QuestionRecord } from "../../../gym/data/index.ts";
import { isLastReference, type Outcome, type SQLAction, type SQLObservation } from "../../../gym/env/index.ts";
import { explainReward, signed } from "../../../gym/evaluation/index.ts";
import { oneLine } from "../../../gym/one-line.ts";
import { parseDescription, parseResult, parseTables } from "../../../gym/players/index.ts";
import type { Database } from "../../../gym/sql/index.ts";
import { drawBox, drawRows } from "../terminal/boxed-table.ts";
import { printable, readableWidth, styled } from "../terminal/output.ts";
import { wrapText } from "../terminal/wrap.ts";

const BAR = 10; // characters of the budget bar
const SHOWN_ANSWER_ROWS = 20;

/** The start of an episode: the question and the tables. */
export function drawStart({ question_id, database_name, difficulty }: QuestionRecord, first: SQLObservation): string {
  const head = `${database_name} · ${difficulty} · ${question_id}`;
  return [
    styled("dim", `─── ${printable(head)} ${"─".repeat(Math.max(3, readableWidth() - head.length - 6))}`),
    "",
    wrapText(first.question, readableWidth() - 2, 2)
      .split("\n")
      .map((line) => styled("bold", line))
      .join("\n"),
    "",
    drawTables(first),
    `  ${drawBudget(first)}`,
  ].join("\n");
}

/** The tables, with the columns that are known so far. */
export function drawTables({ schema_info }: SQLObservation): string {
  const tables = parseTables(schema_info);
  const plain = tables.filter((table) => table.columns.length === 0).map(({ name }) => name);
  const known = tables
    .filter((table) => table.columns.length > 0)
    .map((table) => wrapText(`${table.name}: ${table.columns.join(", ")}`, readableWidth() - 2, 2));
  const others =
    plain.length > 0
      ? [wrapText(`${known.length > 0 ? "other tables" : "tables"}: ${plain.join(", ")}`, readableWidth() - 2, 2)]
      : [];
  return [...known, ...others].join("\n");
}

/** Steps left as a bar. */
export function drawBudget({ budget_remaining, step_count }: SQLObservation): string {
  const total = budget_remaining + step_count;
  const full = Math.round((BAR * budget_remaining) / total);
  const colour = budget_remaining <= 2 ? "red" : budget_remaining <= total / 2 ? "yellow" : "green";
  const left = budget_remaining === 1 ? "last step: answer now" : `${budget_remaining} of ${total} steps left`;
  return `${styled(colour, "█".repeat(full))}${styled("dim", "░".repeat(BAR - full))} ${left}`;
}

/** An action's result and reward. */
export function drawStep({ action_type }: SQLAction, observation: SQLObservation, total: number): string {
  const { error, result, done } = observation;
  const parts: string[] = [];
  if (error !== null) parts.push(styled("red", wrapText(error, readableWidth() - 2, 2)));
  if (result !== "") parts.push(action_type === "DESCRIBE" ? drawDescription(observation) : drawResult(result));
  const budget = done ? "" : `   ${drawBudget(observation)} · ${signed(total)} so far`;
  parts.push(
    styled("dim", wrapText(explainReward(observation), readableWidth() - 2, 2)),
    ...(budget ? [budget.slice(1)] : []),
  );
  return parts.join("\n");
}

function drawDescription({ result, schema_info }: SQLObservation): string {
  const described = parseDescription(result, schema_info);
  if (!described)
    return result
      .split("\n")
      .map((line) => `  ${printable(line)}`)
      .join("\n");
  const rows = described.columns.map(({ name, type, primary_key, references }) => [
    name,
    type,
    references ? `→ ${references.table}.${references.column}` : primary_key ? "primary key" : "",
  ]);
  const count = described.rows === null ? "many" : String(described.rows);
  const title = `${described.name}, ${count} ${described.rows === 1 ? "row" : "rows"}`;
  return `  ${styled("cyan", printable(title))}\n${drawBox(["column", "type", ""], rows, { maxWidth: readableWidth() })}`;
}

function drawResult(result: string): string {
  const { columns: head, rows, notice } = parseResult(result);
  const fits = rows.every((row) => row.length === head.length); // a cell may contain the separator
  const table = fits
    ? drawRows(head, rows, { maxWidth: readableWidth() })
    : result
        .split("\n")
        .map((line) => `  ${printable(line)}`)
        .join("\n");
  return notice ? `${table}\n  ${styled("dim", notice)}` : table;
}

/** The end: the verdict, the given answer and the gold answer. */
export function drawEnd(
  question: QuestionRecord,
  given: string | null,
  { correctness, done_reason }: Pick<Outcome, "correctness" | "done_reason">,
  total: number,
  database: Database,
  who = "You",
): string {
  const silent = done_reason === "stuck" ? "The same action failed too often." : "No steps left.";
  const verdict =
    correctness === 1
      ? styled("green", `Correct! Total reward ${signed(total)}.`)
      : styled("red", `${given === null ? silent : "Not quite."} Total reward ${signed(total)}.`);
  const lines = [`  ${styled("bold", verdict)}`, ""];
  if (given !== null && correctness !== 1) {
    lines.push(
      wrapText(`${who} answered: ${oneLine(given, "; ")}${comparison(given, question)}`, readableWidth() - 2, 2),
    );
  }
  lines.push(drawGold(question, database));
  lines.push(styled("cyan", wrapText(`The query: ${question.gold_sql}`, readableWidth() - 2, 2)));
  return lines.join("\n");
}

/** Says how far off a wrong number or list is. */
function comparison(given: string, { gold_answer, answer_type }: QuestionRecord): string {
  if (isLastReference(given)) return "";
  const [ours, right] = [given, gold_answer].map((text) => (text.trim() === "" ? Number.NaN : Number(text)));
  const difference = ours! - right!;
  if (!Number.isNaN(difference) && difference !== 0) {
    return ` (${Number(Math.abs(difference).toPrecision(3))} too ${difference > 0 ? "high" : "low"})`;
  }
  if (answer_type !== "list" && answer_type !== "table") return "";
  const count = (text: string) => text.split(answer_type === "list" ? /,|\n/ : "\n").length;
  return count(given) === count(gold_answer) ? "" : ` (${count(given)} given, ${count(gold_answer)} expected)`;
}

function drawGold({ gold_answer, gold_sql, answer_type }: QuestionRecord, database: Database): string {
  const result = answer_type === "list" || answer_type === "table" ? database.run(gold_sql) : undefined;
  if (!result?.ok) return `  The answer: ${styled("green", printable(gold_answer))}`;
  const { columns: head, rows, types } = result.table;
  const shown = rows.slice(0, SHOWN_ANSWER_ROWS).map((row) => row.map((cell, i) => formatCell(cell, types[i]!)));
  const more =
    rows.length > shown.length ? `\n  ${styled("dim", `(${shown.length} of ${rows.length} rows shown)`)}` : "";
  return `  The answer:\n${drawBox(head, shown, { maxWidth: readableWidth() })}${more}`;
}
