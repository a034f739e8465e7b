// Output of commands: tables and colours on stdout; with --json, one object on stdout and everything else on stderr.
import { UsageError } from "../../../errors.ts";

export interface Output {
  readonly json: boolean;
  /** A line for people to read. */
  line(text?: string): void;
  /** The command's result as one JSON object; printed only with --json. */
  result(value: unknown): void;
  /** Progress, only on a terminal's stderr; each call replaces the previous line. */
  progress(text: string): void;
  /** Clears the progress line. */
  endProgress(): void;
}

/** The output of a command, depending on --json. */
export function output({ json = false }: { readonly json?: boolean | undefined } = {}): Output {
  const people = json ? process.stderr : process.stdout;
  let open = false;
  const endProgress = () => {
    if (open) process.stderr.write("\r\x1b[K");
    open = false;
  };
  return {
    json,
    line: (text = "") => {
      endProgress();
      people.write(`${text}\n`);
    },
    result: (value) => {
      endProgress();
      if (json) process.stdout.write(`${JSON.stringify(value)}\n`);
    },
    progress: (text) => {
      if (!process.stderr.isTTY) return;
      process.stderr.write(`\r${printable(text).slice(0, (process.stderr.columns || 80) - 1)}\x1b[K`);
      open = true;
    },
    endProgress,
  };
}

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

export type Style = keyof typeof CODES;

/** Text in a colour or weight; unchanged unless stdout is a terminal and NO_COLOR is not set. */
export function styled(style: Style, text: string): string {
  if (!process.stdout.isTTY || process.env.NO_COLOR) return text;
  const [on, off] = CODES[style];
  return `\x1b[${on}m${text}\x1b[${off}m`;
}

/** Text that is safe on a terminal: replaces control characters, which could move the cursor or change colours. */
export function printable(text: string): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f]/g, (character) =>
    character === "\t" ? " " : character === "\n" ? "↵" : "\ufffd",
  );
}

export interface TableOptions {
  /** Spaces before each line. @default 0 */
  readonly indent?: number;
  /** Longer cells are truncated. @default 60 */
  readonly maxCell?: number;
}

/** A table with a heading; columns of numbers are aligned right. */
export function drawTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  { indent = 0, maxCell = 60 }: TableOptions = {},
): string {
  const cells = rows.map((row) =>
    row.map((cell) => cut(printable(typeof cell === "number" ? formatNumber(cell) : cell), maxCell)),
  );
  const widths = head.map((title, i) => Math.max(width(title), ...cells.map((row) => width(row[i] ?? ""))));
  const isNumeric = head.map(
    (_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === "number" || row[i] === ""),
  );
  const draw = (row: readonly string[]) =>
    row
      .map((cell, i) => pad(cell, widths[i]!, isNumeric[i]!))
      .join("  ")
      .trimEnd();
  const lines = [styled("bold", draw(head)), widths.map((size) => "─".repeat(size)).join("  "), ...cells.map(draw)];
  return lines.map((line) => " ".repeat(indent) + line).join("\n");
}

/** 12345 as 12,345, independent of the locale. */
export function formatNumber(value: number): string {
  return Number.isInteger(value) ? String(value).replace(/\B(?=(\d{3})+$)/g, ",") : String(value);
}

/** 1234567 as "1.2 MB". */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KB", "MB", "GB"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
  return `${power === 0 ? bytes : (bytes / 1000 ** power).toFixed(1)} ${units[power]}`;
}

/** Parses an option's whole number; throws a usage error that names the option. */
export function wholeNumber(option: string): (value: string) => number {
  return (value) => {
    if (/^\d{1,15}$/.test(value)) return Number(value);
    throw new UsageError({ what: `${option} takes a whole number`, value, remedy: `for example ${option} 42` });
  };
}

function pad(text: string, size: number, right: boolean): string {
  const space = " ".repeat(Math.max(0, size - width(text)));
  return right ? space + text : text + space;
}

/** Columns a text takes on a terminal; East Asian characters take two. */
export function width(text: string): number {
  let columns = 0;
  for (const character of text)
    columns += /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/.test(
      character,
    )
      ? 2
      : 1;
  return columns;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
