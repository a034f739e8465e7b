// Generates wrong answers: values that differ from the gold under the verifier's rules, each by one small change.
import type { Gold } from "../../../gym/env/index.ts";
import type { Cell } from "../../../gym/sql/index.ts";
import type { Random } from "../../../random.ts";
import type { Rows } from "./answer-formats.ts";

export interface Wrong {
  readonly change: string;
  readonly rows: Rows;
}

/**
 * Generates changed rows that differ from the gold. Each is checked with `isRight`, which shares no code with the
 * verifier.
 */
export function wrongAnswers(gold: Gold, r: Random): Wrong[] {
  const { rows } = gold;
  const at = r.int(0, rows.length - 1);
  const column = r.int(0, gold.columns.length - 1);
  const replaced = (change: string, cell: Cell): Wrong => ({
    change,
    rows: rows.map((row, i) => (i === at ? row.map((old, c) => (c === column ? cell : old)) : row)),
  });
  const wrong: Wrong[] = [
    { change: "a row missing", rows: rows.toSpliced(at, 1) },
    { change: "a row twice", rows: rows.toSpliced(at, 0, rows[at]!) },
    { change: "duplicates dropped", rows: withoutDuplicates(rows) },
    { change: "rows reversed", rows: rows.toReversed() },
    { change: "neighbours swapped", rows: swapped(rows, at) },
    { change: "columns swapped", rows: rows.map((row) => [...row.slice(1), row[0]!]) },
    { change: "a column missing", rows: rows.map((row) => row.slice(1)) },
    { change: "empty", rows: [] },
    replaced("another row's value", rows[r.int(0, rows.length - 1)]![column]!),
    ...beyondTheCut(gold),
  ];
  const cell = rows[at]![column]!;
  if (cell === null) wrong.push(replaced("0 for NULL", 0), replaced("text for NULL", "unknown"));
  else wrong.push(replaced("NULL for a value", null));
  if (typeof cell === "number") {
    wrong.push(
      replaced("off by one", cell + 1),
      replaced("off by minus one", cell - 1),
      replaced("ten times", cell * 10),
    );
    wrong.push(replaced("other sign", -cell));
    if (!Number.isInteger(cell)) {
      wrong.push(
        replaced("real off in the fourth digit", cell * 1.0006),
        replaced("real off in the sixth digit", cell * (1 + 3e-6)),
      );
      wrong.push(replaced("real cut to whole", Math.trunc(cell)));
      if (Math.abs(cell) < 1e5) wrong.push(replaced("a cent more", Number((cell + 0.011).toFixed(2))));
    }
  }
  if (typeof cell === "string") {
    wrong.push(replaced("a letter missing", cell.slice(1)), replaced("a letter more", `${cell}s`));
    wrong.push(replaced("words added", `${cell} and more`), replaced("a digit more", `${cell}0`));
  }
  return wrong.filter((candidate) => !isRight(candidate.rows, gold));
}

/** Replaces the last row by the one just after the LIMIT. */
function beyondTheCut(gold: Gold): Wrong[] {
  const unused = gold.groups.at(-1)!.rows.filter((row) => !gold.rows.some((used) => keyOf(used) === keyOf(row)));
  const first = gold.groups[0]!;
  return [
    ...unused.slice(0, 1).map((row) => ({ change: "a tied row too many", rows: [...gold.rows, row] })),
    ...(gold.groups.length > 1
      ? [{ change: "first and last exchanged", rows: [gold.rows.at(-1)!, ...gold.rows.slice(1, -1), first.rows[0]!] }]
      : []),
  ];
}

/** Whether rows equal the gold by exact comparison: counts each group's rows in a canonical spelling. */
export function isRight(rows: Rows, gold: Gold): boolean {
  let position = 0;
  for (const { rows: allowed, take } of gold.groups) {
    const spare = allowed.map(keyOf);
    for (let i = position; i < position + take; i++) {
      const found = i < rows.length ? spare.indexOf(keyOf(rows[i]!)) : -1;
      if (found < 0) return false;
      spare.splice(found, 1);
    }
    position += take;
  }
  return position === rows.length;
}

function keyOf(row: readonly Cell[]): string {
  return row
    .map((cell) => {
      // NULL, an empty text and the words "null" and "none" are all written the same way.
      if (cell === null || (typeof cell === "string" && /^(?:|null|none)$/i.test(cell))) return "-";
      if (typeof cell === "string") return `'${cell.normalize("NFC").trim().toLowerCase().split(/\s+/).join(" ")}`;
      // A number and its text are the same value.
      return `'${typeof cell === "number" ? Number(cell.toPrecision(9)) : cell}`;
    })
    .join("\u0000");
}

function withoutDuplicates(rows: Rows): Rows {
  const seen = new Set<string>();
  return rows.filter((row) => !seen.has(keyOf(row)) && seen.add(keyOf(row)));
}

function swapped(rows: Rows, at: number): Rows {
  const next = (at + 1) % rows.length;
  return rows.map((row, i) => (i === at ? rows[next]! : i === next ? rows[at]! : row));
}
