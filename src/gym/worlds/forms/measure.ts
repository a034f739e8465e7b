// Questions about an aggregate of a column: its highest, lowest, average or total value.
import { quoteName } from "../../sql/index.ts";
import { fill, plural } from "../english.ts";
import { columnSql, datesOf, maybePick, numbersOf } from "../inspect-world.ts";
import { countedBy, extremesOf, type Restriction, rowOf, rowsOf, superlative } from "../phrases.ts";
import { someCategory } from "../restrictions.ts";
import type { NumberColumn, TableSpec } from "../spec.ts";
import { draft, type Form, type Make } from "./form.ts";

interface Aggregate {
  readonly call: "MAX" | "MIN" | "AVG" | "SUM";
  readonly fits: (column: NumberColumn) => boolean;
  readonly phrasings: (
    table: TableSpec,
    column: NumberColumn,
    rows: string,
    restrictions: readonly Restriction[],
  ) => (string | undefined | false)[];
}

/** The four aggregates and the words for them. */
export const AGGREGATES: Readonly<Record<"max" | "min" | "avg" | "sum", Aggregate>> = {
  max: { call: "MAX", fits: () => true, phrasings: (...of) => extremePhrasings(true, ...of) },
  min: { call: "MIN", fits: () => true, phrasings: (...of) => extremePhrasings(false, ...of) },
  avg: {
    call: "AVG",
    fits: ({ year }) => !year,
    phrasings: (_, column, rows) => {
      const counted = countedBy(column);
      return counted
        ? [
            `How many ${counted} do the ${rows} have on average?`,
            `On average, how many ${counted} do the ${rows} have?`,
            `What is the average number of ${counted} of the ${rows}?`,
          ]
        : [
            `What is the average ${column.phrase} of ${rows}?`,
            `What is the average ${column.phrase} of the ${rows}?`,
            `Find the average ${column.phrase} of all ${rows}.`,
            `On average, what is the ${column.phrase} of ${rows}?`,
          ];
    },
  },
  sum: {
    call: "SUM",
    fits: ({ summable }) => summable,
    phrasings: (_, column, rows) => {
      const counted = countedBy(column);
      return counted
        ? [
            `How many ${counted} do the ${rows} have in total?`,
            `How many ${counted} do all the ${rows} have together?`,
            `What is the total number of ${counted} of all ${rows}?`,
          ]
        : [
            `What is the total ${column.phrase} of all ${rows}?`,
            `What is the combined ${column.phrase} of the ${rows}?`,
            `What is the ${column.phrase} of all ${rows} added together?`,
            `Find the total ${column.phrase} of the ${rows}.`,
          ];
    },
  },
};

function extremePhrasings(
  top: boolean,
  table: TableSpec,
  column: NumberColumn,
  rows: string,
  restrictions: readonly Restriction[],
): (string | undefined | false)[] {
  const extreme = extremesOf(column)[top ? 0 : 1];
  const adjective = column.superlatives && !/^(?:with|that|who) /.test(column.superlatives[0]);
  const asked =
    column.ask && adjective && fill(column.ask, { x: `the ${superlative(table, column, top, ...restrictions).one}` });
  return [
    asked,
    asked,
    `What is the ${extreme} ${column.phrase} among the ${rows}?`,
    `What is the ${extreme} ${column.phrase} of any ${rowOf(table, ...restrictions)}?`,
    `Find the ${extreme} ${column.phrase} of all ${rows}.`,
  ];
}

/** Makes a form that asks for an aggregate of a column, over all rows or under a restriction. */
function aggregating(kind: keyof typeof AGGREGATES, restricted: boolean): Make {
  const { call, fits, phrasings } = AGGREGATES[kind];
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const column = maybePick(r, numbersOf(table).filter(fits));
    const restriction = restricted ? someCategory(world, table, r) : undefined;
    if (!column || (restricted && !restriction)) return null;
    const restrictions = restriction ? [restriction] : [];
    const where = restriction ? ` WHERE ${restriction.sql}` : "";
    return draft(
      r,
      phrasings(table, column, rowsOf(table, ...restrictions), restrictions),
      `SELECT ${call}(${columnSql(column)}) FROM ${quoteName(table.name)}${where}`,
    );
  };
}

const lowestAndHighest: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(r, numbersOf(table));
  if (!column) return null;
  const values = plural(column.phrase);
  const [high, low] = extremesOf(column);
  return draft(
    r,
    [
      `What are the ${low} and ${high} ${values} among the ${table.many}?`,
      `Give the ${low} and the ${high} ${column.phrase} of all ${table.many}.`,
      `What is the ${low} and what is the ${high} ${column.phrase} among the ${table.many}?`,
    ],
    `SELECT MIN(${columnSql(column)}), MAX(${columnSql(column)}) FROM ${quoteName(table.name)}`,
  );
};

const spread: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(r, numbersOf(table));
  if (!column) return null;
  const [high, low] = extremesOf(column);
  return draft(
    r,
    [
      `What is the difference between the ${high} and the ${low} ${column.phrase} of the ${table.many}?`,
      `How far apart are the ${high} and the ${low} ${column.phrase} among the ${table.many}?`,
      `By how much does the ${high} ${column.phrase} of any ${table.one} exceed the ${low}?`,
    ],
    `SELECT MAX(${columnSql(column)}) - MIN(${columnSql(column)}) FROM ${quoteName(table.name)}`,
  );
};

const boundary: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(r, datesOf(table));
  if (!column) return null;
  const latest = r.chance(0.5);
  const word = latest ? "latest" : "earliest";
  return draft(
    r,
    [
      `What is the ${word} ${column.phrase} among the ${table.many}?`,
      `What is the ${word} ${column.phrase} of any ${table.one}?`,
      `Find the ${word} ${column.phrase} on record for ${table.many}.`,
    ],
    `SELECT ${latest ? "MAX" : "MIN"}(${columnSql(column)}) FROM ${quoteName(table.name)}`,
  );
};

/** The forms in this file. */
export const MEASURE_FORMS: readonly Form[] = [
  { name: "highest", difficulty: "easy", make: aggregating("max", false) },
  { name: "highest_category", difficulty: "easy", make: aggregating("max", true) },
  { name: "lowest", difficulty: "easy", make: aggregating("min", false) },
  { name: "lowest_category", difficulty: "easy", make: aggregating("min", true) },
  { name: "average", difficulty: "easy", make: aggregating("avg", false) },
  { name: "average_category", difficulty: "easy", make: aggregating("avg", true) },
  { name: "total", difficulty: "easy", make: aggregating("sum", false) },
  { name: "total_category", difficulty: "easy", make: aggregating("sum", true) },
  { name: "lowest_and_highest", difficulty: "easy", make: lowestAndHighest },
  { name: "spread", difficulty: "easy", make: spread },
  { name: "boundary_date", difficulty: "easy", make: boundary },
];
