// A run's logs as CSV.

/** A table as CSV. Text that a spreadsheet would read as a formula is quoted. */
export function csvOf(columns: readonly string[], rows: Iterable<readonly unknown[]>): string {
  const lines = [columns.map(cell).join(",")];
  for (const row of rows) lines.push(row.map(cell).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

/** A log's columns as CSV. */
export function logCsv(columns: Readonly<Record<string, readonly (number | null)[]>>): string {
  const names = Object.keys(columns);
  const rows = columns[names[0] ?? ""]?.map((_, i) => names.map((name) => columns[name]![i])) ?? [];
  return csvOf(names, rows);
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
