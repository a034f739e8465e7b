// What `sqlenv ask` prints: each step as it is taken, shortened, then the answer, its query and whether samples agree.

import { type AskedAnswer, agreementText, type FoundAnswer } from "../../../gym/ask/index.ts";
import { formatCell } from "../../../gym/data/index.ts";
import type { StepRecord } from "../../../gym/evaluation/index.ts";
import { oneLine } from "../../../gym/one-line.ts";
import { parseDescription, parseResult } from "../../../gym/players/index.ts";
import type { ResultTable } from "../../../gym/sql/index.ts";
import { drawRows } from "../terminal/boxed-table.ts";
import { counted, cutText, printable, readableWidth, type Style, styled, width } from "../terminal/output.ts";
import { wrapText } from "../terminal/wrap.ts";

const LABEL = 11; // columns of the label before a text, and of the space after it
const SHOWN_LINES = 4; // of a query or a message
const SHOWN_ROWS = 3; // of a result that a step saw
const SHOWN_ANSWER_ROWS = 20;
const SHOWN_OTHERS = 3; // other answers that samples gave

/** A step: what was done, and what came of it. */
export function drawStep({ action, parse_error, observation }: StepRecord): string {
  const { error, error_class, result } = observation;
  const label = action.action_type.toLowerCase();
  const lines = [labelled("cyan", label, action.argument.trim() || "(nothing)")];
  if (parse_error !== null) lines.push(below("yellow", "the reply names no action, and is tried as a query"));
  if (error !== null) lines.push(below(error_class === "repeat" ? "dim" : "red", error));
  else if (action.action_type === "DESCRIBE") lines.push(below("dim", describedIn(observation)));
  else if (result !== "") lines.push(...rowsOf(result));
  return lines.join("\n");
}

/** The tables that a step described: their rows and columns on one line each. */
function describedIn({ result, schema_info }: StepRecord["observation"]): string {
  return result
    .split("\n\n")
    .map((text) => {
      const described = parseDescription(text, schema_info);
      if (!described) return oneLine(text, "; ");
      const rows = described.rows === null ? "many rows" : counted(described.rows, "row");
      return `${rows}: ${described.columns.map(({ name }) => name).join(", ")}`;
    })
    .join("; ");
}

/** The first rows of a result, one line each. */
function rowsOf(result: string): string[] {
  const { columns, rows, notice } = parseResult(result);
  if (rows.length === 0) return [below("dim", "no rows")];
  if (rows.length === 1 && columns.length === 1) return [below("dim", rows[0]![0]!, 1)];
  const shown = [columns, ...rows.slice(0, SHOWN_ROWS)].map((row) => below("dim", row.join(" | "), 1));
  const total = /of (more than )?(\d+) rows shown/.exec(notice ?? "");
  const more = total ? `${total[1] ?? ""}${total[2]}` : rows.length > SHOWN_ROWS ? String(rows.length) : null;
  return more === null ? shown : [...shown, below("dim", `… ${more} rows in all`)];
}

/** The answer and the query that gave it. */
export function drawAnswer({ text, sql, result, support }: FoundAnswer): string {
  if (text === null) return styled("yellow", labelled("bold", "no answer", ""));
  const lines = result ? drawResult(result) : [labelled("green", "answer", text, SHOWN_ANSWER_ROWS)];
  if (sql !== null) lines.push(labelled("cyan", "sql", sql, Number.POSITIVE_INFINITY));
  if (support === "values" && sql !== null) lines.push(below("dim", "its result contains the answer, and more"));
  if (support === "values" && sql === null)
    lines.push(below("dim", "seen in several results; no single query gave it"));
  return lines.join("\n");
}

/** A whole result: its only value, or its first rows in a box. */
function drawResult({ columns, types, rows, has_more }: ResultTable): string[] {
  const cells = rows.slice(0, SHOWN_ANSWER_ROWS).map((row) => row.map((cell, i) => formatCell(cell, types[i]!)));
  if (rows.length === 0) return [labelled("green", "answer", "no rows")];
  if (rows.length === 1 && columns.length === 1)
    return [labelled("green", "answer", cells[0]![0]!, SHOWN_ANSWER_ROWS, "bold")];
  const total = `${has_more ? "more than " : ""}${counted(rows.length, "row")}`;
  const count = cells.length < rows.length ? `the first ${cells.length} of ${total}` : total;
  const head = columns.map((name) => oneLine(name, " "));
  const lines = cells.map((row) => row.map((cell) => oneLine(cell, " ⏎ ")));
  return [labelled("green", "answer", count), drawRows(head, lines, { maxWidth: readableWidth() })];
}

/** Whether the answer should be trusted: how many samples agree, and what speaks against it; empty if nothing is known. */
export function drawTrust({ answer, agreement, answers, samples, unsure }: AskedAnswer): string {
  const lines: string[] = [];
  const agreed = agreement === null || answer === null ? null : agreementText(answers[0]!.samples, samples);
  if (unsure) lines.push(styled("yellow", labelled("bold", "unsure", unsure.text)));
  if (agreed !== null && agreed !== unsure?.text)
    lines.push(labelled("dim", unsure ? "" : "agreement", agreed, 1, unsure ? "dim" : undefined));
  const others = answers.slice(1, 1 + SHOWN_OTHERS).map(({ answer, samples }) => {
    const given = answer === null ? "no answer" : cutText(oneLine(printable(answer), " "), 40);
    return samples > 1 ? `${given} (${samples} times)` : given;
  });
  const left = answers.length - 1 - others.length;
  if (left > 0) others.push(`${left} more`);
  if (others.length > 0) lines.push(below("dim", `others: ${others.join("; ")}`));
  return lines.join("\n");
}

/** A label in a colour and the text beside it, wrapped. */
function labelled(style: Style, label: string, text: string, lines = SHOWN_LINES, own?: Style): string {
  const space = " ".repeat(Math.max(1, LABEL - label.length));
  const [first = "", ...rest] = wrapped(text, lines).map((line) => (own ? styled(own, line) : line));
  return [`  ${styled(style, label)}${space}${first}`.trimEnd(), ...rest.map(indented)].join("\n");
}

/** A text below a label. */
function below(style: Style, text: string, lines = SHOWN_LINES): string {
  return wrapped(text, lines)
    .map((line) => indented(styled(style, line)))
    .join("\n");
}

function indented(line: string): string {
  return `${" ".repeat(LABEL + 2)}${line}`;
}

/** At most this many lines of a text; the last one says if there are more. */
function wrapped(text: string, lines: number): string[] {
  const columns = readableWidth() - LABEL - 3;
  if (lines === 1) return [cutText(printable(oneLine(text, " ⏎ ")), columns)];
  const all = text.split(/\r?\n/).flatMap((line) => wrapText(line, columns).split("\n"));
  if (all.length <= lines) return all;
  const last = all[lines - 1]!;
  return [...all.slice(0, lines - 1), width(last) < columns ? `${last}…` : `${cutText(last, columns - 1)}…`];
}
