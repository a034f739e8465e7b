// Output of commands: tables and colours on stdout; with --json, one object on stdout and everything else on stderr.
import { UsageError } from "../../../errors.ts";
import { asTyped, invocation } from "./invocation.ts";

export interface Output {
  readonly json: boolean;
  /**
   * Prints a line for people: wrapped at words on a terminal, with commands that start the way the user started this
   * program.
   */
  line(text?: string): void;
  /** Prints lines with data of the user's, which are not wrapped and in which nothing is taken for a command. */
  data(text: string): void;
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
      const typed = asTyped(text);
      people.write(`${people.isTTY ? wrapWords(typed, people.columns || 80) : typed}\n`);
    },
    data: (text) => {
      endProgress();
      people.write(`${text}\n`);
    },
    result: (value) => {
      endProgress();
      if (json) process.stdout.write(`${jsonLine(value)}\n`);
    },
    progress: (text) => {
      if (!process.stderr.isTTY) return;
      process.stderr.write(`\r${cutStyled(text, (process.stderr.columns || 80) - 1)}\x1b[K`);
      open = true;
    },
    endProgress,
  };
}

/** JSON whose text cannot move a terminal's cursor: JSON leaves DEL and the C1 control characters as they are. */
function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\x7f-\x9f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

const CODES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;

const CODE = /\x1b\[\d+m/g;

export type Style = keyof typeof CODES;

/** Text in a colour or weight; unchanged unless stdout is a terminal that has colours and NO_COLOR is not set. */
export function styled(style: Style, text: string): string {
  if (!process.stdout.isTTY || process.env.NO_COLOR || process.env.TERM === "dumb") return text;
  const [on, off] = CODES[style];
  return `\x1b[${on}m${text}\x1b[${off}m`;
}

/**
 * Text that is safe on a terminal: replaces control characters, which could move the cursor or change colours, and those
 * that reverse the direction of a line.
 */
export function printable(text: string): string {
  return text.replace(/[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (character) =>
    character === "\t" ? " " : character === "\n" ? "↵" : "\ufffd",
  );
}

export interface TableOptions {
  /** Spaces before each line. @default 0 */
  readonly indent?: number;
  /** Longer cells are truncated. @default 60 */
  readonly maxCell?: number;
  /** Columns are narrowed to this width, and their text is wrapped. @default the terminal's, else no limit */
  readonly maxWidth?: number;
}

/** A table with a heading; columns of numbers are aligned right, wide columns of text are wrapped to fit. */
export function drawTable(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  { indent = 0, maxCell = 60, maxWidth = terminalWidth() }: TableOptions = {},
): string {
  const cells = rows.map((row) =>
    row.map((cell) => cut(printable(typeof cell === "number" ? formatNumber(cell) : cell), maxCell)),
  );
  const isNumeric = head.map(
    (_, i) => rows.length > 0 && rows.every((row) => typeof row[i] === "number" || row[i] === ""),
  );
  const wanted = head.map((title, i) => Math.max(width(title), ...cells.map((row) => width(row[i] ?? ""))));
  const widths = narrowed(wanted, maxWidth - indent - 2 * (head.length - 1));
  const draw = (row: readonly string[]) => {
    const parts = head.map((_, i) => (row[i] === undefined ? [""] : wrapCell(row[i], widths[i]!)));
    return Array.from({ length: Math.max(...parts.map(({ length }) => length)) }, (_, at) =>
      parts
        .map((lines, i) => pad(lines[at] ?? "", widths[i]!, isNumeric[i]!))
        .join("  ")
        .trimEnd(),
    );
  };
  const lines = [
    ...draw(head).map((line) => styled("bold", line)),
    widths.map((size) => "─".repeat(size)).join("  "),
    ...cells.flatMap(draw),
  ];
  return lines.map((line) => " ".repeat(indent) + line).join("\n");
}

const MIN_CELL = 6; // minimum width of a narrowed column, in characters

/** Narrows the widest columns, one character at a time, until all of them fit. */
function narrowed(wanted: readonly number[], room: number): number[] {
  const widths = [...wanted];
  while (widths.reduce((sum, size) => sum + size, 0) > room) {
    const widest = Math.max(...widths);
    if (widest <= MIN_CELL) break;
    widths[widths.indexOf(widest)] = widest - 1;
  }
  return widths;
}

/** A cell's lines, broken at spaces, and within words that are longer than the column; leading spaces are kept. */
function wrapCell(text: string, columns: number): string[] {
  if (width(text) <= columns) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<=[^ ] +)/)) {
    if (line !== "" && width(line) + width(word.trimEnd()) > columns) {
      lines.push(line.trimEnd());
      line = "";
    }
    for (const character of word) {
      if (width(line) + width(character) > columns && character !== " ") {
        lines.push(line.trimEnd());
        line = "";
      }
      line += character;
    }
  }
  return [...lines, line.trimEnd()];
}

/** Columns of the terminal; infinite if stdout is not a terminal. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
}

const MAX_WIDTH = 120; // longer lines are hard to read on any terminal

/** Columns of text for people: the terminal's, at most 120; 80 elsewhere. */
export function readableWidth(): number {
  return Math.min(MAX_WIDTH, process.stdout.columns || 80);
}

/** Lines broken at spaces; words, such as paths, stay whole. Continuation lines keep the line's indent; colours have no width. */
export function wrapWords(text: string, columns: number): string {
  return text
    .split("\n")
    .map((line) => {
      const plain = line.replace(CODE, "");
      if (width(plain) <= columns || isCommand(plain)) return line;
      const indent = /^ */.exec(line)![0];
      const lines: string[] = [];
      let [current, used] = [indent, indent.length];
      for (const word of line.slice(indent.length).split(/(?<= )/)) {
        const size = width(word.replace(CODE, "").trimEnd());
        if (used > indent.length && used + size > columns) {
          lines.push(current.trimEnd());
          [current, used] = [indent, indent.length];
        }
        current += word;
        used += width(word.replace(CODE, ""));
      }
      return [...lines, current.trimEnd()].join("\n");
    })
    .join("\n");
}

/** Whether a line is a command to copy, which a line break would cut in two. */
function isCommand(line: string): boolean {
  return line.startsWith("    ") && line.trimStart().startsWith(`${invocation()} `);
}

/** A line of at most this many columns; colours have no width. */
function cutStyled(text: string, columns: number): string {
  let [shown, used] = ["", 0];
  for (const part of text.split(/(\x1b\[\d+m)/)) {
    if (/^\x1b\[\d+m$/.test(part)) {
      shown += part;
      continue;
    }
    for (const character of printable(part)) {
      used += width(character);
      if (used <= columns) shown += character;
    }
  }
  return shown;
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

/** Parses an option's whole number from 1 on. */
export function countFromOne(option: string): (value: string) => number {
  return (value) => {
    const number = wholeNumber(option)(value);
    if (number >= 1) return number;
    throw new UsageError({ what: `${option} takes a whole number from 1`, value });
  };
}

/** Parses a port; 0 stands for any free one. */
export function portNumber(option: string): (value: string) => number {
  return (value) => {
    if (/^\d{1,5}$/.test(value) && Number(value) < 65_536) return Number(value);
    throw new UsageError({ what: `${option} takes a number from 0 to 65535`, value });
  };
}

/** "1 question", "1,024 questions". */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatNumber(count)} ${count === 1 ? noun : plural}`;
}

function pad(text: string, size: number, right: boolean): string {
  const space = " ".repeat(Math.max(0, size - width(text)));
  return right ? space + text : text + space;
}

/** Columns a text takes on a terminal; East Asian characters and emoji take two, combining marks none. */
export function width(text: string): number {
  let columns = 0;
  for (const character of text) columns += WIDE.test(character) ? 2 : NARROW.test(character) ? 0 : 1;
  return columns;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/u;
const NARROW = /[\p{Mn}\p{Me}\u200b-\u200f\u2060]/u;

/** A text of at most this many columns; a longer one ends with "…". */
export function cutText(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let [shown, used] = ["", 0];
  for (const character of text) {
    used += width(character);
    if (used >= columns) break;
    shown += character;
  }
  return `${shown}…`;
}

function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}
