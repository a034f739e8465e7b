// Questions about the first or last rows in an order: the oldest, the three cheapest.
import { quoteName } from "../../sql/index.ts";
import type { World } from "../build.ts";
import { plural } from "../english.ts";
import {
  cells,
  columnSql,
  datesOf,
  factsOf,
  isFull,
  labelledTables,
  labelOf,
  maybePick,
  numbersOf,
} from "../inspect-world.ts";
import { asksFor, type Restriction, rowOf, rowsOf, superlative } from "../phrases.ts";
import { someCategory } from "../restrictions.ts";
import type { DateColumn, NumberColumn, TableSpec } from "../spec.ts";
import { draft, type Form, type Make } from "./form.ts";

/** Number and date columns by which every row can be ranked: without NULLs, which would come first. */
export function ranks(world: World, table: TableSpec): (NumberColumn | DateColumn)[] {
  return [...numbersOf(table), ...datesOf(table)].filter((column) => isFull(world, table, column));
}

export function orderSql(
  column: NumberColumn | DateColumn,
  top: boolean,
  limit: number | string,
  within?: TableSpec,
): string {
  return `ORDER BY ${columnSql(column, within)}${top ? " DESC" : ""} LIMIT ${limit}`;
}

/** Whether exactly one row has the largest (or smallest) value. */
export function isAlone(world: World, table: TableSpec, column: NumberColumn | DateColumn, top: boolean): boolean {
  const sorted = cells(world, table, column).sort((a, b) => (a! < b! ? -1 : a! > b! ? 1 : 0));
  return top ? sorted.at(-1) !== sorted.at(-2) : sorted[0] !== sorted[1];
}

/** Phrasings that ask which row is first or last in an order. */
export function topPhrasings(
  table: TableSpec,
  column: NumberColumn | DateColumn,
  top: boolean,
  ...restrictions: readonly Restriction[]
) {
  const { one, verb } = superlative(table, column, top, ...restrictions);
  const label = labelOf(table)!.phrase;
  return [
    table.person ? `Who is the ${one}?` : verb.startsWith("is ") && `What is the ${one}?`,
    `Which ${rowOf(table, ...restrictions)} ${verb}?`,
    `What is the ${label} of the ${one}?`,
    `Find the ${label} of the ${one}.`,
    table.person ? `Who among the ${rowsOf(table, ...restrictions)} ${verb}?` : undefined,
  ];
}

function top(highest: boolean, restricted: boolean): Make {
  return (world, r) => {
    const { table, label } = r.pick(labelledTables(world));
    const restriction = restricted ? someCategory(world, table, r) : undefined;
    const column = maybePick(r, ranks(world, table));
    if (!column || (restricted && !restriction)) return null;
    if (!restricted && !isAlone(world, table, column, highest)) return null;
    const restrictions = restriction ? [restriction] : [];
    const where = restriction ? `WHERE ${restriction.sql} ` : "";
    return draft(
      r,
      topPhrasings(table, column, highest, ...restrictions),
      `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} ${where}${orderSql(column, highest, 1)}`,
    );
  };
}

const topWithValue: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(r, ranks(world, table));
  const highest = r.chance(0.6);
  if (!column || !isAlone(world, table, column, highest)) return null;
  const { one } = superlative(table, column, highest);
  return draft(
    r,
    [
      `What are the ${label.phrase} and ${column.phrase} of the ${one}?`,
      `Give the ${label.phrase} and the ${column.phrase} of the ${one}.`,
      `Show the ${label.phrase} and ${column.phrase} of the ${one}.`,
    ],
    `SELECT ${columnSql(label)}, ${columnSql(column)} FROM ${quoteName(table.name)} ${orderSql(column, highest, 1)}`,
  );
};

const factOfTop: Make = (world, r) => {
  const { table } = r.pick(labelledTables(world));
  const column = maybePick(r, ranks(world, table));
  const fact = maybePick(
    r,
    factsOf(table).filter((candidate) => candidate !== column && isFull(world, table, candidate)),
  );
  const highest = r.chance(0.6);
  if (!column || !fact || !isAlone(world, table, column, highest)) return null;
  return draft(
    r,
    asksFor(table, fact, `the ${superlative(table, column, highest).one}`),
    `SELECT ${columnSql(fact)} FROM ${quoteName(table.name)} ${orderSql(column, highest, 1)}`,
  );
};

const second: Make = (world, r) => {
  const { table, label } = r.pick(labelledTables(world));
  const column = maybePick(
    r,
    ranks(world, table).filter(({ superlatives }) => superlatives?.[0].endsWith("est") || !superlatives),
  );
  if (!column) return null;
  const values = cells(world, table, column).sort((a, b) => (a! > b! ? -1 : 1));
  if (values[0] === values[1] || values[1] === values[2]) return null;
  const { one, verb, first } = superlative(table, column, true);
  const later = (words: string) => words.replace(first, () => `second ${first}`);
  return draft(
    r,
    [
      table.person ? `Who is the ${later(one)}?` : `What is the ${label.phrase} of the ${later(one)}?`,
      `Which ${table.one} ${later(verb)}?`,
      `Find the ${label.phrase} of the ${later(one)}.`,
    ],
    `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} ${orderSql(column, true, "1 OFFSET 1")}`,
  );
};

/** Lists the first few rows of an order, in that order. */
function topFew(restricted: boolean): Make {
  return (world, r) => {
    const { table, label } = r.pick(labelledTables(world));
    const restriction = restricted ? someCategory(world, table, r) : undefined;
    const column = maybePick(r, ranks(world, table));
    if (!column || (restricted && !restriction)) return null;
    const [n, word] = r.pick([
      [3, "three"],
      [3, "three"],
      [5, "five"],
      [2, "two"],
    ] as const);
    const highest = r.chance(0.65);
    const restrictions = restriction ? [restriction] : [];
    const { many, verbMany, first } = superlative(table, column, highest, ...restrictions);
    // "with the most goals" becomes "most goals first", never "starting with the most goals".
    const tails = [`, ${first} first`, `, starting with the ${first}`, `, in order from the ${first}`];
    const tail = first.includes(" ") ? tails[0]! : r.pick(tails);
    return draft(
      r,
      [
        table.person ? `Who are the ${word} ${many}${tail}?` : `What are the ${word} ${many}${tail}?`,
        `Which ${word} ${rowsOf(table, ...restrictions)} ${verbMany}${tail}?`,
        `List the ${plural(label.phrase)} of the ${word} ${many}${tail}.`,
        `Name the ${word} ${many}${tail}.`,
      ],
      `SELECT ${columnSql(label)} FROM ${quoteName(table.name)} ${restriction ? `WHERE ${restriction.sql} ` : ""}${orderSql(column, highest, n)}`,
    );
  };
}

/** The forms in this file. */
export const RANK_FORMS: readonly Form[] = [
  { name: "top", difficulty: "medium", make: top(true, false) },
  { name: "bottom", difficulty: "medium", make: top(false, false) },
  { name: "top_category", difficulty: "medium", make: top(true, true) },
  { name: "bottom_category", difficulty: "medium", make: top(false, true) },
  { name: "top_with_value", difficulty: "medium", make: topWithValue },
  { name: "fact_of_top", difficulty: "medium", make: factOfTop },
  { name: "second", difficulty: "medium", make: second },
  { name: "top_few", difficulty: "medium", several: true, make: topFew(false) },
  { name: "top_few_category", difficulty: "medium", several: true, make: topFew(true) },
];
