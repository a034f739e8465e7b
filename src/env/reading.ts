// How an answer's text may be read: every table of cells it could stand for. The verifier accepts an answer when one
// of its readings is right, so a player may write values plainly, as a list, as rows, as JSON or as a Markdown table.

/** A cell as written. Quotes are gone, but known: "NULL" in quotes is a word. */
export interface GivenCell {
  readonly text: string;
  readonly quoted: boolean;
}

export type Reading = readonly (readonly GivenCell[])[];

/** Answers longer than this are not read; the largest answer a player can have seen is far smaller. */
export const MAX_ANSWER_LENGTH = 100_000;

/** All readings of an answer with `columns.length` columns; a first row that repeats the column names may be a header. */
export function readAnswer(answer: string, columns: readonly string[]): Reading[] {
  if (answer.length > MAX_ANSWER_LENGTH) return [];
  const texts = new Set([answer.trim(), undress(answer)]);
  const readings = [...texts].filter((text) => text !== "").flatMap((text) => readText(text, columns.length));
  return answer.includes("\n")
    ? readings.flatMap((reading) => [reading, ...withoutHeader(reading, columns)])
    : readings;
}

/** The reading without its first row, where that repeats the column names (which no value could be taken for). */
function withoutHeader(reading: Reading, columns: readonly string[]): Reading[] {
  const [first, ...rest] = reading;
  const isHeader =
    rest.length > 0 &&
    first!.length === columns.length &&
    first!.every(({ text }, i) => fold(text) === fold(columns[i]!) && !/^[\d.,+-]*$/.test(text));
  return isHeader ? [rest] : [];
}

/** Text as it is compared: letter case, white space and Unicode spelling do not count. */
export function fold(text: string): string {
  return text.normalize("NFC").replace(/\s+/g, " ").trim().toLowerCase();
}

/** Takes off what is not the answer: thinking, code fences, "The answer is:". */
function undress(answer: string): string {
  return answer
    .slice(answer.lastIndexOf("</think>") < 0 ? 0 : answer.lastIndexOf("</think>") + "</think>".length)
    .trim()
    .replace(/^```[a-z]*[ \t]*\n?([\s\S]*?)\n?```$/i, "$1")
    .replace(/^(?:the\s+)?(?:final\s+)?answer\s*(?:is\s*[:：]?|[:：=])\s*/i, "")
    .trim()
    .replace(/^```[a-z]*[ \t]*\n?([\s\S]*?)\n?```$/i, "$1")
    .replace(/^\*\*([^*]*)\*\*$/, "$1")
    .trim();
}

function readText(text: string, width: number): Reading[] {
  const literal = readLiteral(text, width);
  const whole: Reading[] = width === 1 ? [[[unquote(text)]], [[unquote(text.replace(/\.$/, ""))]]] : [];
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  return [...(literal ? [literal] : []), ...whole, ...(width === 1 ? readColumn(lines) : readRows(lines, width))];
}

/** One column: a value a line, or one line of values. */
function readColumn(lines: readonly string[]): Reading[] {
  const column = (cells: readonly string[]): Reading => cells.map((cell) => [unquote(cell)]);
  if (lines.length > 1) {
    const plain = lines.filter((line) => !isRule(line)).map(withoutBars);
    return [column(plain), ...withoutMarks(lines).map(column)];
  }
  return [", ", ",", ";", "|"].map((separator) => column(split(lines[0]!, separator)));
}

/** Several columns: a row a line (or rows between semicolons), cells between bars, tabs, commas or semicolons. */
function readRows(lines: readonly string[], width: number): Reading[] {
  const rowTexts = [lines.filter((line) => !isRule(line))];
  if (lines.length === 1 && lines[0]!.includes(";")) rowTexts.push(split(lines[0]!, ";"));
  const readings = rowTexts.flatMap((rows) =>
    ["|", "\t", ", ", ",", ";"].map((separator) =>
      rows.map((row) => split(separator === "|" ? withoutBars(row) : row, separator).map(unquote)),
    ),
  );
  if (lines.length === width) readings.push([lines.map(unquote)]); // one row, a cell a line
  return readings.filter((reading) => reading.every((row) => row.length === width));
}

/** `|---|---|`, the rule under a Markdown table's header. */
function isRule(line: string): boolean {
  return /^[\s|:+-]+$/.test(line) && line.includes("--");
}

function withoutBars(line: string): string {
  const trimmed = line.trim();
  return trimmed.startsWith("|") && trimmed.endsWith("|") && trimmed.length > 1 ? trimmed.slice(1, -1) : trimmed;
}

/** Lines without bullets, or without the numbers 1, 2, 3 … in front, when all of them have these. */
function withoutMarks(lines: readonly string[]): string[][] {
  if (lines.every((line) => /^\s*[-*•]\s+\S/.test(line)))
    return [lines.map((line) => line.replace(/^\s*[-*•]\s+/, ""))];
  if (lines.every((line, i) => new RegExp(`^\\s*${i + 1}[.)]\\s+\\S`).test(line))) {
    return [lines.map((line) => line.replace(/^\s*\d+[.)]\s+/, ""))];
  }
  return [];
}

/** Splits at a separator outside quotes; a quoted cell may hold the separator. */
function split(line: string, separator: string): string[] {
  const cells: string[] = [];
  let start = 0;
  let quote: string | undefined;
  for (let i = 0; i < line.length; i++) {
    const char = line[i]!;
    const opens = (char === '"' || char === "'") && line.slice(start, i).trim() === "";
    if (quote === undefined && opens && closesAt(line, i, separator)) quote = char;
    else if (char === quote && isCellEnd(line, i + 1, separator)) quote = undefined;
    if (quote === undefined && line.startsWith(separator, i)) {
      cells.push(line.slice(start, i));
      start = i + separator.length;
      i = start - 1;
    }
  }
  cells.push(line.slice(start));
  return cells;
}

/** Whether the quote at `open` has a partner that ends a cell: an apostrophe inside a word has none. */
function closesAt(line: string, open: number, separator: string): boolean {
  for (let i = line.indexOf(line[open]!, open + 1); i >= 0; i = line.indexOf(line[open]!, i + 1)) {
    if (isCellEnd(line, i + 1, separator)) return true;
  }
  return false;
}

function isCellEnd(line: string, at: number, separator: string): boolean {
  const rest = line.slice(at).trimStart();
  return rest === "" || rest.startsWith(separator.trim() || separator);
}

const QUOTES: Record<string, string> = { '"': '"', "'": "'", "`": "`", "“": "”", "‘": "’", "«": "»" };

function unquote(cell: string): GivenCell {
  const text = cell.trim();
  const closing = QUOTES[text[0] ?? ""];
  if (closing && text.length >= 2 && text.endsWith(closing)) {
    const inner = text.slice(1, -1);
    return { text: text[0] === closing ? inner.replaceAll(closing + closing, closing) : inner, quoted: true };
  }
  return { text, quoted: false };
}

type Literal = GivenCell | readonly Literal[];

/** JSON or Python brackets: a list of values, of rows, or of objects (their values in order). */
function readLiteral(text: string, width: number): Reading | undefined {
  const value = /^[[({]/.test(text) ? (parseLiteral(text) ?? parseLiteral(`[${text}]`)) : undefined;
  if (!value || !Array.isArray(value) || value.length === 0) return undefined;
  const isCell = (item: Literal): item is GivenCell => !Array.isArray(item);
  if (value.every(isCell)) return width === 1 ? value.map((cell) => [cell]) : [value];
  const rows = value.map((item) => (isCell(item) ? [item] : item));
  return rows.every((row): row is GivenCell[] => row.every(isCell)) ? rows : undefined;
}

/** A small recursive reader that keeps numbers as written (JSON.parse would lose 1.10 and long integers). */
function parseLiteral(text: string): Literal | undefined {
  const TOKEN =
    /\s*(?:([[({])|([\])}])|(,)|("(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S]|'')*')(\s*:)?|([^\s,[\](){}"'][^,[\](){}"]*))/y;
  let at = 0;
  let depth = 0;

  function item(): Literal | undefined {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (!match) return undefined;
    const [, open, close, comma, quoted, colon, bare] = match;
    if (close !== undefined || comma !== undefined) return undefined;
    at = TOKEN.lastIndex;
    if (colon !== undefined) return item(); // an object's key
    if (quoted !== undefined) return { text: unescapeText(quoted), quoted: true };
    if (bare !== undefined) return { text: bare.trim(), quoted: false };
    if (open === undefined || ++depth > 3) return undefined; // a list of rows of cells is as deep as answers go
    const items: Literal[] = [];
    while (!closes()) {
      const next = item();
      if (next === undefined) return undefined;
      items.push(next);
      skip(",");
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

  function skip(char: string): void {
    const match = new RegExp(`\\s*${char}`, "y");
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
    // not JSON's escapes: read it as Python's
  }
  const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r" };
  return inner.replace(/\\([\s\S])/g, (_, char: string) => ESCAPES[char] ?? char).replaceAll("''", "'");
}
