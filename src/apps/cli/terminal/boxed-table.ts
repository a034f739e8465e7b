// Tables drawn with box characters, fitted to the terminal.
import { cutText, printable, styled, width } from "./output.ts";

const MIN_COLUMN = 4; // minimum width of a narrowed column, in characters

export interface BoxOptions {
  /** Maximum length of a line. */
  readonly maxWidth: number;
  /** Spaces before each line. @default 2 */
  readonly indent?: number;
  /** Leading columns that are narrowed only when nothing else can be. @default 0 */
  readonly whole?: number;
}

/** A table in a box. Wide columns are truncated; columns that do not fit at all are omitted with a notice. */
export function drawBox(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  { maxWidth, indent = 2, whole = 0 }: BoxOptions,
): string {
  const room = Math.max(20, maxWidth - indent - 1);
  const shownColumns = Math.max(1, Math.min(head.length, Math.floor(room / (MIN_COLUMN + 3))));
  const cells = [head, ...rows].map((row) => Array.from({ length: shownColumns }, (_, i) => printable(row[i] ?? "")));
  const widths = fitted(
    Array.from({ length: shownColumns }, (_, i) => Math.max(1, ...cells.map((row) => width(row[i]!)))),
    room - 3 * shownColumns,
    whole,
  );
  const isNumeric = widths.map(
    (_, i) => rows.length > 0 && rows.every((row) => /^(?:-?[\d.]+(?:e[+-]?\d+)?|NULL)$/.test(row[i] ?? "")),
  );
  const rule = (left: string, middle: string, right: string) =>
    styled("dim", left + widths.map((size) => "─".repeat(size + 2)).join(middle) + right);
  const bar = styled("dim", "│");
  const draw = (row: readonly string[], isHead: boolean) => {
    const texts = row.map((cell, i) => {
      const text = cutText(cell, widths[i]!);
      const space = " ".repeat(widths[i]! - width(text));
      const shown = isHead ? styled("bold", text) : cell === "NULL" ? styled("dim", text) : text;
      return ` ${isNumeric[i] ? space + shown : shown + space} `;
    });
    return bar + texts.join(bar) + bar;
  };
  const lines = [
    rule("┌", "┬", "┐"),
    draw(cells[0]!, true),
    rule("├", "┼", "┤"),
    ...cells.slice(1).map((row) => draw(row, false)),
    rule("└", "┴", "┘"),
  ];
  const left = head.length - shownColumns;
  if (left > 0) lines.push(styled("dim", `${left} more ${left === 1 ? "column does" : "columns do"} not fit`));
  return lines.map((line) => " ".repeat(indent) + line).join("\n");
}

const TURNED_ROWS = 5; // maximum rows that fit beside each other
const LEGIBLE = 8; // characters; narrower columns hide most names

/** The rows of a result in a box. A few rows that would be cut to illegible columns are turned: one line per column. */
export function drawRows(head: readonly string[], rows: readonly (readonly string[])[], options: BoxOptions): string {
  const wanted = head.map((name, i) => Math.max(...[name, ...rows.map((row) => row[i] ?? "")].map(width)));
  const room = options.maxWidth - (options.indent ?? 2) - 1 - 3 * head.length;
  const needed = wanted.reduce((sum, size) => sum + Math.min(size, LEGIBLE), 0);
  if (needed <= room || rows.length === 0 || rows.length > TURNED_ROWS || head.length <= rows.length + 1)
    return drawBox(head, rows, options);
  return drawBox(
    ["column", ...rows.map((_, i) => `row ${i + 1}`)],
    head.map((name, i) => [name, ...rows.map((row) => row[i] ?? "")]),
    { ...options, whole: 1 }, // the names are needed to query
  );
}

/** Narrows the widest columns, one character at a time, until all of them fit. */
function fitted(wanted: readonly number[], room: number, whole: number): number[] {
  const widths = [...wanted];
  for (let over = widths.reduce((sum, size) => sum + size, 0) - room; over > 0; over--) {
    const others = Math.max(...widths.slice(whole));
    const widest = others > MIN_COLUMN ? others : Math.max(...widths);
    if (widest <= MIN_COLUMN) break;
    widths[widths.lastIndexOf(widest)]!--;
  }
  return widths;
}
