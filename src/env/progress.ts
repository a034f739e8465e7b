// How near a result is to the gold, in five steps. Coarse on purpose: exact overlap would let a player feel its way to
// the gold without understanding the question.
import type { Cell, ResultTable } from "../sql/index.ts";
import { fold } from "./reading.ts";

const WEIGHTS = { cardinality: 0.25, overlap: 0.5, numbers: 0.25 } as const;

/** Φ ∈ {0, 0.25, 0.5, 0.75, 1}: rounded down, so 1 means the same values in the same number of rows. */
export function progressOf(result: Pick<ResultTable, "rows">, gold: Pick<ResultTable, "rows">): number {
  const goldCells = gold.rows.flat();
  const cells = result.rows.flat();
  const goldNumbers = numbersOf(goldCells);
  const parts = [
    [WEIGHTS.cardinality, cardinality(result.rows.length, gold.rows.length)],
    [WEIGHTS.overlap, overlap(cells, goldCells)],
    [WEIGHTS.numbers, goldNumbers.length === 0 ? undefined : closeness(numbersOf(cells), goldNumbers)],
  ] as const;
  const known = parts.filter(([, value]) => value !== undefined);
  const total = known.reduce((sum, [weight]) => sum + weight, 0);
  const score = known.reduce((sum, [weight, value]) => sum + weight * value!, 0) / total;
  return Math.floor(score * 4 + 1e-9) / 4;
}

/** 1 for as many rows as the gold, falling with the relative difference. */
function cardinality(rows: number, goldRows: number): number {
  return 1 - Math.abs(rows - goldRows) / Math.max(rows, goldRows, 1);
}

/** F1 of the cells as multisets: SELECT * finds everything but has little precision. */
function overlap(cells: readonly Cell[], goldCells: readonly Cell[]): number {
  if (cells.length === 0) return 0;
  const counts = new Map<string, number>();
  for (const cell of goldCells) counts.set(keyOf(cell), (counts.get(keyOf(cell)) ?? 0) + 1);
  let common = 0;
  for (const cell of cells) {
    const left = counts.get(keyOf(cell)) ?? 0;
    if (left === 0) continue;
    common++;
    counts.set(keyOf(cell), left - 1);
  }
  return (2 * common) / (cells.length + goldCells.length);
}

/** Mean relative nearness of the numbers, paired in order of size; a number too many or too few counts 0. */
function closeness(numbers: readonly number[], goldNumbers: readonly number[]): number {
  const [a, b] = [numbers.toSorted((x, y) => x - y), goldNumbers.toSorted((x, y) => x - y)];
  let sum = 0;
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const scale = Math.max(Math.abs(a[i]!), Math.abs(b[i]!));
    sum += scale === 0 ? 1 : Math.max(0, 1 - Math.abs(a[i]! - b[i]!) / scale);
  }
  return sum / Math.max(a.length, b.length);
}

function numbersOf(cells: readonly Cell[]): number[] {
  return cells.filter((cell) => typeof cell === "number" || typeof cell === "bigint").map(Number);
}

function keyOf(cell: Cell): string {
  return typeof cell === "string" ? `'${fold(cell)}` : typeof cell === "number" ? cell.toPrecision(12) : String(cell);
}
