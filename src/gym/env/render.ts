// Renders results as the text a player sees. It is short, since every character costs tokens, and says what was
// truncated. Table and column names are shown as SQL must write them, quoted where necessary.

import { formatCell } from "../data/index.ts";
import { oneLine } from "../one-line.ts";
import { type Database, quoteName, type ResultTable, type Table } from "../sql/index.ts";

/** Rows of a result that a player sees; a notice gives the total. */
export const SHOWN_ROWS = 20;

/** Characters of a cell that a player sees. */
export const SHOWN_CELL = 100;

/** Renders columns with types, keys and references, one per line, and the number of rows. */
export function renderDescription(table: Table, rowCount: number | null): string {
  const rows = rowCount === null ? "many rows" : rowCount === 1 ? "1 row" : `${rowCount} rows`;
  const columns = table.columns.map((column) => {
    const key = column.primary_key ? " primary key" : "";
    const reference = table.foreign_keys.find((foreign) => foreign.column === column.name);
    const target = reference ? ` -> ${quoteName(reference.table)}.${quoteName(reference.references)}` : "";
    return `${quoteName(column.name)}${column.type ? ` ${column.type}` : ""}${key}${target}`;
  });
  return [`${quoteName(table.name)}: ${table.kind === "view" ? `view, ${rows}` : rows}`, ...columns].join("\n");
}

/**
 * Renders a header and rows, cells separated by bars. Takes time linear in the result's size, which MAX_RESULT_BYTES
 * limits.
 */
export function renderResult({ columns, types, rows, has_more, cut_at }: ResultTable): string {
  if (rows.length === 0) return `${columns.map(cut).join(" | ")}\n(no rows)`;
  const shown = rows
    .slice(0, SHOWN_ROWS)
    .map((row) => row.map((cell, i) => cut(formatCell(cell, types[i]!))).join(" | "));
  const total = has_more ? `more than ${rows.length}` : String(rows.length);
  const cells = cut_at ? `cells cut at ${cut_at} bytes; ` : "";
  const notice =
    rows.length > shown.length || has_more || cut_at ? [`(${cells}${shown.length} of ${total} rows shown)`] : [];
  return [columns.map(cut).join(" | "), ...shown, ...notice].join("\n");
}

/** Renders table names; described tables also show their columns. */
export function renderSchema(database: Database, described: ReadonlySet<string>): string {
  const lines = database.tables.map(({ name, columns }) =>
    described.has(name)
      ? `${quoteName(name)}(${columns.map((column) => quoteName(column.name)).join(", ")})`
      : quoteName(name),
  );
  return described.size === 0 ? lines.join(", ") : lines.join("\n");
}

/** Makes text one line and truncates it with a mark. */
function cut(text: string): string {
  const line = oneLine(text, " ⏎ ");
  return line.length <= SHOWN_CELL ? line : `${line.slice(0, SHOWN_CELL)}… (${line.length} characters)`;
}
