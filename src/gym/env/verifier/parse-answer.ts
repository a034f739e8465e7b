// Parses an answer into every table of cells it may mean. The verifier accepts an answer if one of these readings is
// right, so a player may write plain values, a list, rows, JSON or a Markdown table.
import { MAX_ANSWER_LENGTH } from "../../data/answer.ts";

/** A cell as written, without its quotes. It records whether there were any: "NULL" in quotes is text. */
export interface GivenCell {
  readonly text: string;
  readonly quoted: boolean;
  /** The text with its quotes, if they may belong to the value. */
  readonly raw?: string;
}

export type Reading = readonly (readonly GivenCell[])[];

/**
 * Returns all readings of an answer with `columns.length` columns; a first row that repeats the column names may be a
 * header.
 */
export function readAnswer(answer: string, columns: readonly string[]): Reading[] {
  if (answer.length > MAX_ANSWER_LENGTH) return [];
  const texts = new Set([answer.trim(), undress(answer)]);
  const readings = [...texts].filter((text) => text !== "").flatMap((text) => readText(text, columns.length));
  return answer.includes("\n")
    ? readings.flatMap((reading) => [reading, ...withoutHeader(reading, columns)])
    : readings;
}

/** Drops the first row if it repeats the column names and cannot be values. */
function withoutHeader(reading: Reading, columns: readonly string[]): Reading[] {
  const [first, ...rest] = reading;
  const isHeader =
    rest.length > 0 &&
    first!.length === columns.length &&
    first!.every(({ text }, i) => fold(text) === fold(columns[i]!) && !/^[\d.,+-]*$/.test(text));
  return isHeader ? [rest] : [];
}

/** Normalizes text for comparison: letter case, white space and Unicode form do not count. */
export function fold(text: string): string {
  return text.normalize("NFC").replace(/\s+/g, " ").trim().toLowerCase();
}

const MAX_LAYERS = 10; // maximum layers of formatting removed from an answer; each takes one pass over the text

/** Removes everything around the answer: thinking, code fences, "The answer is:", emphasis. */
function undress(answer: string): string {
  const thought = answer.lastIndexOf("</think>");
  let text = (thought < 0 ? answer : answer.slice(thought + "</think>".length)).trim();
  for (let layer = 0, before = ""; before !== text && layer < MAX_LAYERS; layer++) {
    before = text;
    text = text
      .replace(/^```[a-z]*[ \t]*\n?([\s\S]*?)\n?```$/i, "$1")
      .replace(/^\**(?:the\s+)?(?:final\s+)?answer(?:\s+is)?\s*(?:[:：=]|(?<=is))\s*(\**)\s*/i, "$1")
      .replace(/^\*\*([^*]*)\*\*\.?$/, "$1")
      .replace(/^\*\*([^*]*)$|^([^*]+)\*\*\.?$/, "$1$2")
      .trim();
  }
  return text;
}

function readText(text: string, width: number): Reading[] {
  const literal = readLiteral(text, width);
  const whole: Reading[] = width === 1 ? [[[unquote(text)]], [[unquote(text.replace(/\.$/, ""))]]] : [];
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return [...(literal ? [literal] : []), ...whole, ...(width === 1 ? readColumn(lines) : readRows(lines, width))];
}

/** Reads one column: one value per line, or one line of values. */
function readColumn(lines: readonly string[]): Reading[] {
  const column = (cells: readonly string[]): Reading => cells.map((cell) => [unquote(plainCell(cell))]);
  if (lines.length > 1) {
    const plain = lines.filter((line) => !isRule(line)).map(withoutBars);
    return [column(plain), ...withoutMarks(lines).map(column)];
  }
  const line = lines[0]!;
  const ends = line.trim().endsWith(".") ? [line, line.trim().slice(0, -1)] : [line];
  return ends.flatMap((text) =>
    [", ", ",", ";", "|"].map((separator) => column(split(separator === "|" ? withoutBars(text) : text, separator))),
  );
}

/** Removes the emphasis that some models put on values. */
function plainCell(cell: string): string {
  return cell.trim().replace(/^\*\*([^*]+)\*\*$/, "$1");
}

/**
 * Reads several columns: one row per line (or rows separated by semicolons), cells separated by bars, tabs, commas or
 * semicolons.
 */
function readRows(lines: readonly string[], width: number): Reading[] {
  const rowTexts = [lines.filter((line) => !isRule(line)), ...withoutMarks(lines)];
  if (lines.length === 1 && lines[0]!.includes(";")) rowTexts.push(split(lines[0]!, ";"));
  const readings = rowTexts.flatMap((rows) =>
    ["|", "\t", ", ", ",", ";"].map((separator) =>
      rows.map((row) =>
        split(separator === "|" ? withoutBars(row) : row, separator).map((cell) => unquote(plainCell(cell))),
      ),
    ),
  );
  if (lines.length === width) readings.push([lines.map(unquote)]); // one row, one cell per line
  return readings.filter((reading) => reading.every((row) => row.length === width));
}

/** Recognizes `|---|---|`, the line under a Markdown table's header. */
function isRule(line: string): boolean {
  return /^[\s|:+-]+$/.test(line) && line.includes("--");
}

function withoutBars(line: string): string {
  const trimmed = line.trim();
  return trimmed.startsWith("|") && trimmed.endsWith("|") && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed;
}

/** Removes bullets or the numbers 1, 2, 3 … if every line starts with one. */
function withoutMarks(lines: readonly string[]): string[][] {
  if (lines.every((line) => /^\s*[-*•]\s+\S/.test(line)))
    return [lines.map((line) => line.replace(/^\s*[-*•]\s+/, ""))];
  if (lines.every((line, i) => /^\s*(\d+)[.)]\s+\S/.exec(line)?.[1] === String(i + 1))) {
    return [lines.map((line) => line.replace(/^\s*\d+[.)]\s+/, ""))];
  }
  return [];
}

/** Splits at a separator outside quotes; a quoted cell may contain the separator. */
function split(line: string, separator: string): string[] {
  const cells: string[] = [];
  const closingQuote = quoteFinder(line, separator.trim() || separator);
  let start = 0;
  while (start <= line.length) {
    const opening = /^\s*(["'])/.exec(line.slice(start, start + 50))?.[0];
    const closing = opening ? closingQuote(opening.at(-1)!, start + opening.length) : -1;
    const from = closing < 0 ? start : closing + 1;
    const at = line.indexOf(separator, from);
    // After a closing quote, the first character of the separator is enough: `"a","b"` can be split at ", ".
    const end = at < 0 ? line.length : at;
    cells.push(line.slice(start, end));
    if (at < 0) break;
    start = at + separator.length;
  }
  return cells;
}

/**
 * Finds the quote that ends a cell, followed by the separator or the end; −1 for an apostrophe that closes nothing.
 * Call it from left to right: it caches positions, so that each line is searched only once.
 */
function quoteFinder(line: string, mark: string): (quote: string, from: number) => number {
  const found = new Map<string, number>();
  return (quote, from) => {
    const known = found.get(quote);
    if (known !== undefined && (known < 0 || known >= from)) return known;
    const pattern = new RegExp(`${quote}(?=\\s*(?:$|${mark === "|" ? "\\|" : mark}))`, "g");
    pattern.lastIndex = from;
    const at = pattern.exec(line)?.index ?? -1;
    found.set(quote, at);
    return at;
  };
}

const QUOTES: Record<string, string> = { '"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»" };

function unquote(cell: string): GivenCell {
  const text = cell.trim();
  const closing = QUOTES[text[0] ?? ""];
  if (closing && text.length >= 2 && text.endsWith(closing)) {
    const inner = text.slice(1, -1);
    return {
      text: text[0] === closing ? inner.replaceAll(closing + closing, closing) : inner,
      quoted: true,
      raw: text,
    };
  }
  return { text, quoted: false };
}

type Literal = GivenCell | readonly Literal[];

/** Reads JSON or Python brackets: a list of values, of rows, or of objects (their values in order). */
function readLiteral(text: string, width: number): Reading | undefined {
  const value = /^[[({]/.test(text) ? (parseLiteral(text) ?? parseLiteral(`[${text}]`)) : undefined;
  if (!value || !Array.isArray(value) || value.length === 0) return undefined;
  const isCell = (item: Literal): item is GivenCell => !Array.isArray(item);
  if (value.every(isCell)) return width === 1 ? value.map((cell) => [cell]) : [value];
  const rows = value.map((item) => (isCell(item) ? [item] : item));
  return rows.every((row): row is GivenCell[] => row.every(isCell)) ? rows : undefined;
}

/** Parses a literal and keeps numbers as written (JSON.parse would lose 1.10 and long integers). */
function parseLiteral(text: string): Literal | undefined {
  const TOKEN =
    /\s*(?:([[({])|([\])}])|(,)|("(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S]|'')*')(\s*:)?|([^\s,[\](){}"'][^,[\](){}"]*))/y;
  let at = 0;
  let depth = 0;

  function item(): Literal | undefined {
    let match: RegExpExecArray | null;
    do {
      TOKEN.lastIndex = at;
      match = TOKEN.exec(text);
      // A misplaced closing bracket or comma.
      if (!match || match[2] !== undefined || match[3] !== undefined) return undefined;
      at = TOKEN.lastIndex;
    } while (match[5] !== undefined); // skip an object's key
    const [, open, , , quoted, , bare] = match;
    if (quoted !== undefined) return { text: unescapeText(quoted), quoted: true };
    if (bare !== undefined) return { text: bare.trim(), quoted: false };
    if (open === undefined || ++depth > 3) return undefined; // no answer is deeper than a list of rows of cells
    const items: Literal[] = [];
    while (!closes()) {
      const next = item();
      if (next === undefined) return undefined;
      items.push(next);
      skipComma();
    }
    depth--;
    return items;
  }

  function closes(): boolean {
    const match = /\s*[\])}]/y;
    match.lastIndex = at;
    if (!match.test(text)) return false;
    at = match.lastIndex;
    return true;
  }

  function skipComma(): void {
    const match = /\s*,/y;
    match.lastIndex = at;
    if (match.test(text)) at = match.lastIndex;
  }

  const value = item();
  return value !== undefined && text.slice(at).trim() === "" ? value : undefined;
}

function unescapeText(quoted: string): string {
  const inner = quoted.slice(1, -1);
  try {
    if (quoted[0] === '"') return JSON.parse(quoted) as string;
  } catch {
    // These are not JSON escapes: parse them like Python.
  }
  const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r" };
  return inner.replace(/\\([\s\S])/g, (_, char: string) => ESCAPES[char] ?? char).replaceAll("''", "'");
}
