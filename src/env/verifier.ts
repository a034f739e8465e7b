// Judges an answer by its value. The rules, in full:
//  - numbers: integers must be equal; a real is right when it is the gold rounded to the digits written, with at least
//    two decimals (a zero at the end may be left out) and three significant digits, or equal within 1e-9 of its size; 3,
//    3.0, "3" and 1,234 are numbers.
//  - text: letter case, runs of white space and Unicode spelling do not count; everything else does.
//  - NULL is written NULL or None, without quotes, or left empty; what is written so may also stand for that very text.
//  - rows: each as often as in the gold; in its order only where the outermost query orders; columns in the gold's order.
//  - ties: rows equal in the gold's order may change places, and where LIMIT cuts a tie any of its members is right.
import type { Cell, StorageClass } from "../sql/index.ts";
import type { Gold, TieGroup } from "./gold.ts";
import { fold, type GivenCell, type Reading, readAnswer } from "./reading.ts";

const RELATIVE_TOLERANCE = 1e-9; // what printing and re-reading a sum may cost
const MIN_DECIMALS = 2;
const MIN_SIGNIFICANT = 3;
const MAX_SEARCHED_ROWS = 300; // rows matched by search when they are not equal to the letter

/** Whether the answer is right. Never throws. */
export function verifyAnswer(answer: string, gold: Gold): boolean {
  return readAnswer(answer, gold.columns).some((reading) => matches(reading, gold));
}

function matches(reading: Reading, gold: Gold): boolean {
  if (reading.length !== gold.groups.reduce((sum, group) => sum + group.take, 0)) return false;
  if (reading.some((row) => row.length !== gold.columns.length)) return false;
  let position = 0;
  for (const group of gold.groups) {
    if (!matchesGroup(reading.slice(position, position + group.take), group, gold.types)) return false;
    position += group.take;
  }
  return true;
}

/** Whether every given row can be paired with a row of the group, none used twice. */
function matchesGroup(given: Reading, group: TieGroup, types: readonly StorageClass[]): boolean {
  const rowMatches = (row: number, goldRow: number) =>
    group.rows[goldRow]!.every((cell, column) => cellMatches(given[row]![column]!, cell, types[column]!));
  if (given.length === 1 && group.rows.length === 1) return rowMatches(0, 0);

  // Rows equal to the letter pair up at once; what is left (rounded reals, mostly) is searched.
  const byKey = new Map<string, number[]>();
  group.rows.forEach((row, i) => {
    const key = row.map((cell) => looseKey({ text: cell === null ? "null" : String(cell), quoted: false })).join("\n");
    const bucket = byKey.get(key);
    if (bucket) bucket.push(i);
    else byKey.set(key, [i]);
  });
  const free = new Set(group.rows.keys());
  const left: number[] = [];
  given.forEach((row, i) => {
    const bucket = byKey.get(row.map(looseKey).join("\n"));
    const at = bucket?.findIndex((goldRow) => rowMatches(i, goldRow)) ?? -1;
    if (at >= 0) free.delete(bucket!.splice(at, 1)[0]!);
    else left.push(i);
  });
  if (left.length === 0) return true;
  if (left.length > MAX_SEARCHED_ROWS || free.size > 10 * MAX_SEARCHED_ROWS) return false;
  if (canPair(left, [...free], rowMatches)) return true;
  // A row equal to one gold row may be needed, as a rounding, for another: search among all.
  return given.length <= MAX_SEARCHED_ROWS && canPair([...given.keys()], [...group.rows.keys()], rowMatches);
}

/** Bipartite matching by augmenting paths (Kuhn). */
function canPair(left: readonly number[], right: readonly number[], fits: (l: number, r: number) => boolean): boolean {
  const owner = new Map<number, number>();
  const place = (l: number, visited: Set<number>): boolean => {
    for (const r of right) {
      if (visited.has(r) || !fits(l, r)) continue;
      visited.add(r);
      const holder = owner.get(r);
      if (holder === undefined || place(holder, visited)) {
        owner.set(r, l);
        return true;
      }
    }
    return false;
  };
  return left.every((l) => place(l, new Set()));
}

/** Cells that may be equal have equal keys, except rounded reals. */
function looseKey({ text }: GivenCell): string {
  const number = readNumber(text);
  if (number) return String(number.value);
  return isNullWord(text) ? "null" : fold(text);
}

/** Whether a written cell stands for the gold's cell. */
export function cellMatches(given: GivenCell, gold: Cell, type: StorageClass): boolean {
  if (gold === null) return !given.quoted && isNullWord(given.text);
  if (typeof gold === "string") {
    return fold(given.text) === fold(gold) || (given.raw !== undefined && fold(given.raw) === fold(gold));
  }
  const number = readNumber(given.text);
  if (!number || (typeof gold === "number" && !Number.isFinite(gold))) return false;
  if (number.integer !== undefined && (typeof gold === "bigint" || Number.isSafeInteger(gold))) {
    return number.integer === BigInt(gold);
  }
  if (typeof gold === "bigint" || (type === "integer" && Number.isInteger(gold))) return false;
  if (Math.abs(number.value - gold) <= RELATIVE_TOLERANCE * Math.abs(gold)) return true;
  if (!number.decimals) return false;
  const omitted = Math.max(0, MIN_DECIMALS - number.decimals); // 12.3 is 12.30: SQLite's ROUND(x, 2) writes no zeros
  if (number.significant + omitted < MIN_SIGNIFICANT) return false;
  // Half a unit of the last digit written, widened by what doubles cannot hold.
  return Math.abs(number.value - gold) <= 0.5 * 10 ** -(number.decimals + omitted) + Math.abs(gold) * 2 ** -52;
}

function isNullWord(text: string): boolean {
  return text === "" || /^(?:null|none)$/i.test(text);
}

interface ReadNumber {
  readonly value: number;
  /** Exact, when the number written is whole. */
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
