// Measures how close a result is to the gold, in five steps. This is coarse on purpose: with exact overlap a player
// could climb to the gold without understanding the question.
import type { Cell, ResultTable } from "../sql/index.ts";
import { fold } from "./verifier/parse-answer.ts";

const WEIGHTS = { cardinality: 0.25, overlap: 0.5, numbers: 0.25 } as const;

/** Φ ∈ {0, 0.25, 0.5, 0.75, 1}, rounded down: 1 means the same values in the same number of rows. */
export function computeProgress(result: Pick<ResultTable, "rows">, gold: Pick<ResultTable, "rows">): number {
  const wanted = summaryOf(gold.rows);
  const given = summarize(result.rows);
  const parts = [
    [WEIGHTS.cardinality, cardinality(result.rows.length, gold.rows.length)],
    [WEIGHTS.overlap, overlap(given, wanted)],
    [WEIGHTS.numbers, wanted.numbers.length === 0 ? undefined : closeness(given.numbers, wanted.numbers)],
  ] as const;
  const known = parts.filter(([, value]) => value !== undefined);
  const total = known.reduce((sum, [weight]) => sum + weight, 0);
  const score = known.reduce((sum, [weight, value]) => sum + weight * value!, 0) / total;
  return Math.floor(score * 4 + 1e-9) / 4;
}

type Rows = ResultTable["rows"];

/** The features of a result that are compared. Computing them takes linear time, except for sorting the numbers. */
interface Summary {
  readonly cells: number;
  /** How often each value occurs. */
  readonly counts: ReadonlyMap<string, number>;
  /** The numeric cells, sorted. */
  readonly numbers: Float64Array;
}

/** Caches summaries of gold results, which may have millions of cells and are compared with every result. */
const summaries = new WeakMap<Rows, Summary>();

function summaryOf(gold: Rows): Summary {
  const known = summaries.get(gold) ?? summarize(gold);
  summaries.set(gold, known);
  return known;
}

function summarize(rows: Rows): Summary {
  const cells = rows.flat();
  const counts = new Map<string, number>();
  for (const cell of cells) {
    const key = keyOf(cell);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const numbers = cells.filter((cell) => typeof cell === "number" || typeof cell === "bigint").map(Number);
  return { cells: cells.length, counts, numbers: Float64Array.from(numbers).sort() };
}

/** 1 for the gold's number of rows, decreasing with the relative difference. */
function cardinality(rows: number, goldRows: number): number {
  return 1 - Math.abs(rows - goldRows) / Math.max(rows, goldRows, 1);
}

/** F1 score of the cells as multisets: SELECT * has full recall but little precision. */
function overlap(given: Summary, wanted: Summary): number {
  if (given.cells === 0) return 0;
  let common = 0;
  for (const [key, count] of given.counts) common += Math.min(count, wanted.counts.get(key) ?? 0);
  return (2 * common) / (given.cells + wanted.cells);
}

/** Mean relative closeness of the numbers, paired in sorted order; an extra or missing number scores 0. */
function closeness(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const scale = Math.max(Math.abs(a[i]!), Math.abs(b[i]!));
    sum += scale === 0 ? 1 : Math.max(0, 1 - Math.abs(a[i]! - b[i]!) / scale);
  }
  return sum / Math.max(a.length, b.length);
}

function keyOf(cell: Cell): string {
  return typeof cell === "string" ? `'${fold(cell)}` : typeof cell === "number" ? cell.toPrecision(12) : String(cell);
}
