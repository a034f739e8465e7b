// Verifies an answer by its value. The complete rules:
//  - numbers: integers must be equal; a real is right when it is the gold rounded to the digits written, with at least
//    two decimals (a zero at the end may be left out) and three significant digits, or equal within 1e-9 of its size; 3,
//    3.0, "3" and 1,234 are numbers.
//  - text: letter case, amount of white space and Unicode form do not count; everything else does.
//  - NULL is written NULL or None without quotes, or left empty; without quotes, these words also match the same text.
//  - rows: each as often as in the gold; their order counts only if the outermost query has ORDER BY; columns in the
//    gold's order.
//  - ties: rows that are equal in that order may be swapped, and if LIMIT cuts a tie, any of its rows is right.
import { formatCell } from "../../data/index.ts";
import type { Cell, ResultTable, StorageClass } from "../../sql/index.ts";
import type { Gold, TieGroup } from "./gold.ts";
import { fold, type GivenCell, type Reading, readAnswer } from "./parse-answer.ts";

const RELATIVE_TOLERANCE = 1e-9; // relative error that printing and parsing a sum may cause
const MIN_DECIMALS = 2;
const MIN_SIGNIFICANT = 3;
const MAX_SEARCHED_ROWS = 300; // maximum rows matched by search if they are not exactly equal

/** Maximum steps per answer (cells compared, pairs tried), so that no answer can block the environment. */
export const MAX_VERIFIER_STEPS = 4_000_000;

/** Steps that remain; an answer that needs more is wrong. */
interface Effort {
  steps: number;
}

/**
 * Whether the answer is right. Never throws.
 *
 * @example
 * import { runGold } from "sqlenv/gym/env";
 *
 * const question = data.questions[0]!;
 * const gold = runGold(question, data.databases.get(question.database_name));
 * verifyAnswer("42", gold);
 */
export function verifyAnswer(answer: string, gold: Gold): boolean {
  const effort: Effort = { steps: MAX_VERIFIER_STEPS };
  return readAnswer(answer, gold.columns).some(
    (reading) => hasShape(reading, gold) && matches(parseReading(reading), gold, effort),
  );
}

/**
 * Whether a query's complete result is right: the verdict of `verifyAnswer` on a perfect copy, decided cell by cell, so
 * that no cell is misread. The number of rows and columns must be the gold's; a text `a, b` in one cell is not two values.
 */
export function verifyResult(result: Pick<ResultTable, "columns" | "types" | "rows">, gold: Gold): boolean {
  if (result.columns.length !== gold.columns.length || !hasShape(result.rows, gold)) return false;
  const given = result.rows.map((row) => row.map((cell, i) => parseGiven(writtenCell(cell, result.types[i]!))));
  return matches(given, gold, { steps: MAX_VERIFIER_STEPS });
}

/** The cell as a player would write it. Text is quoted, so that the word NULL is not read as NULL. */
function writtenCell(cell: Cell, type: StorageClass): GivenCell {
  return { text: formatCell(cell, type), quoted: typeof cell === "string" };
}

/** Number of rows in a right answer. */
export function rowsWanted({ groups }: Gold): number {
  return groups.reduce((sum, group) => sum + group.take, 0);
}

function hasShape(rows: readonly (readonly unknown[])[], gold: Gold): boolean {
  return rows.length === rowsWanted(gold) && rows.every((row) => row.length === gold.columns.length);
}

function parseReading(reading: Reading): ParsedCell[][] {
  return reading.map((row) => row.map(parseGiven));
}

function matches(given: readonly (readonly ParsedCell[])[], gold: Gold, effort: Effort): boolean {
  let position = 0;
  for (const group of gold.groups) {
    if (!matchesGroup(given.slice(position, position + group.take), group, gold.types, effort)) return false;
    position += group.take;
  }
  return true;
}

/** A written cell with its keys for comparison, computed once. */
interface ParsedCell {
  readonly folded: string;
  readonly foldedRaw: string | undefined;
  readonly isNull: boolean;
  readonly number: ReadNumber | undefined;
  /** Cells that may be equal have equal keys; the exception is rounded reals. */
  readonly key: string;
}

function parseGiven({ text, quoted, raw }: GivenCell): ParsedCell {
  const number = readNumber(text);
  const folded = fold(text);
  return {
    folded,
    foldedRaw: raw === undefined ? undefined : fold(raw),
    isNull: !quoted && isNullWord(text),
    number,
    key: number ? String(number.value) : isNullWord(text) ? "null" : folded,
  };
}

interface GoldCell {
  readonly value: Cell;
  /** Its text, normalized by `fold`. */
  readonly folded: string | undefined;
}

interface GoldRows {
  readonly rows: readonly (readonly GoldCell[])[];
  readonly byKey: ReadonlyMap<string, readonly number[]>;
}

/** Caches each group's rows in comparable form: a gold result may have thousands of tied rows. */
const prepared = new WeakMap<TieGroup, GoldRows>();

function goldRowsOf(group: TieGroup): GoldRows {
  const known = prepared.get(group);
  if (known) return known;
  const byKey = new Map<string, number[]>();
  group.rows.forEach((row, i) => {
    const key = rowKey(row.map((cell) => parseGiven({ text: cell === null ? "null" : String(cell), quoted: false })));
    const bucket = byKey.get(key);
    if (bucket) bucket.push(i);
    else byKey.set(key, [i]);
  });
  const rows = group.rows.map((row) =>
    row.map((value) => ({ value, folded: typeof value === "string" ? fold(value) : undefined })),
  );
  const made = { rows, byKey };
  prepared.set(group, made);
  return made;
}

function rowKey(row: readonly ParsedCell[]): string {
  return row.map(({ key }) => key).join("\n");
}

/** Whether every given row can be matched with a different row of the group. */
function matchesGroup(
  given: readonly (readonly ParsedCell[])[],
  group: TieGroup,
  types: readonly StorageClass[],
  effort: Effort,
): boolean {
  const { rows, byKey } = goldRowsOf(group);
  const rowMatches = (row: number, goldRow: number) =>
    rows[goldRow]!.every((cell, column) => {
      effort.steps--;
      return cellMatches(given[row]![column]!, cell, types[column]!);
    });
  if (given.length === 1 && rows.length === 1) return rowMatches(0, 0);

  // Exactly equal rows are matched directly; the others (mostly rounded reals) are searched.
  const used = new Set<number>();
  const left: number[] = [];
  const start = new Map<string, number>(); // per key, the index of the first row that may be unused
  for (const [i, row] of given.entries()) {
    const key = rowKey(row);
    const bucket = byKey.get(key) ?? [];
    let from = start.get(key) ?? 0;
    while (from < bucket.length && used.has(bucket[from]!)) from++;
    start.set(key, from);
    let at = from;
    while (at < bucket.length && (used.has(bucket[at]!) || !rowMatches(i, bucket[at]!))) {
      if (effort.steps-- <= 0) return false;
      at++;
    }
    if (at < bucket.length) used.add(bucket[at]!);
    else left.push(i);
  }
  if (left.length === 0) return true;
  if (left.length > MAX_SEARCHED_ROWS || rows.length - used.size > 10 * MAX_SEARCHED_ROWS) return false;
  const free = [...rows.keys()].filter((row) => !used.has(row));
  if (canPair(left, free, rowMatches, effort)) return true;
  // A row that equals one gold row may also match another by rounding, so greedy matching can fail: search all assignments.
  return given.length <= MAX_SEARCHED_ROWS && canPair([...given.keys()], [...rows.keys()], rowMatches, effort);
}

/** Bipartite matching by augmenting paths (Kuhn). */
function canPair(
  left: readonly number[],
  right: readonly number[],
  fits: (l: number, r: number) => boolean,
  effort: Effort,
): boolean {
  const known = new Map<number, boolean>();
  const suits = (l: number, r: number): boolean => {
    const key = l * (right.length + 1) + r;
    const answer = known.get(key) ?? fits(left[l]!, right[r]!);
    known.set(key, answer);
    return answer;
  };
  const owner = new Map<number, number>();
  const place = (l: number, visited: Set<number>): boolean => {
    const held: number[] = [];
    for (let r = 0; r < right.length; r++) {
      if (effort.steps-- <= 0) return false;
      if (visited.has(r) || !suits(l, r)) continue;
      if (!owner.has(r)) {
        owner.set(r, l);
        return true;
      }
      held.push(r);
    }
    for (const r of held) {
      if (visited.has(r)) continue;
      visited.add(r);
      if (!place(owner.get(r)!, visited)) continue;
      owner.set(r, l);
      return true;
    }
    return false;
  };
  return left.every((_, l) => place(l, new Set()));
}

/** Whether a written cell means the gold's cell. */
function cellMatches(given: ParsedCell, { value: gold, folded }: GoldCell, type: StorageClass): boolean {
  if (gold === null) return given.isNull;
  if (typeof gold === "string") return given.folded === folded || given.foldedRaw === folded;
  const { number } = given;
  if (!number || (typeof gold === "number" && !Number.isFinite(gold))) return false;
  if (number.integer !== undefined && (typeof gold === "bigint" || Number.isSafeInteger(gold))) {
    return number.integer === BigInt(gold);
  }
  if (typeof gold === "bigint" || (type === "integer" && Number.isInteger(gold))) return false;
  if (Math.abs(number.value - gold) <= RELATIVE_TOLERANCE * Math.abs(gold)) return true;
  if (!number.decimals) return false;
  const omitted = Math.max(0, MIN_DECIMALS - number.decimals); // 12.3 is 12.30: SQLite's ROUND(x, 2) writes no zeros
  if (number.significant + omitted < MIN_SIGNIFICANT) return false;
  // Half a unit of the last digit written, plus the precision of a double.
  return Math.abs(number.value - gold) <= 0.5 * 10 ** -(number.decimals + omitted) + Math.abs(gold) * 2 ** -52;
}

function isNullWord(text: string): boolean {
  return text === "" || /^(?:null|none)$/i.test(text);
}

interface ReadNumber {
  readonly value: number;
  /** The exact value if the number is written as an integer. */
  readonly integer: bigint | undefined;
  /** Digits after the point; undefined with an exponent. */
  readonly decimals: number | undefined;
  readonly significant: number;
}

const NUMBER = /^([+-]?)(\d+|\d{1,3}(?:,\d{3})+)?(?:\.(\d*))?(?:e([+-]?\d{1,3}))?$/i;

/** A number as people and programs write it: 3, +3, 3.0, 1,234.5, 6.02e23. */
export function readNumber(text: string): ReadNumber | undefined {
  const match = text.length <= 400 ? NUMBER.exec(text.trim().normalize("NFKC").replace(/^−/, "-")) : null;
  if (!match) return undefined;
  const [, sign, whole = "", fraction = "", exponent] = match;
  const digits = whole.replaceAll(",", "");
  if (digits === "" && fraction === "") return undefined;
  const value = Number(`${sign}${digits || "0"}.${fraction || "0"}e${exponent ?? 0}`);
  const isWhole = exponent === undefined && /^0*$/.test(fraction);
  const isSafe = exponent !== undefined && Number.isSafeInteger(value); // 1.5e3 is 1500
  return {
    value,
    integer: isWhole ? BigInt(`${digits || "0"}`) * (sign === "-" ? -1n : 1n) : isSafe ? BigInt(value) : undefined,
    decimals: exponent === undefined ? fraction.length : undefined,
    significant: `${digits}${fraction}`.replace(/^0+/, "").length,
  };
}
