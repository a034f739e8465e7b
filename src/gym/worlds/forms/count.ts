// Questions that count rows of one table.
import type { Random } from "../../../random.ts";
import { quoteName } from "../../sql/index.ts";
import type { World } from "../build.ts";
import { an } from "../english.ts";
import { categoriesOf, categorySql, columnSql, isFull, maybePick, severalValues } from "../inspect-world.ts";
import { denied, predicate, type Restriction, rowsOf } from "../phrases.ts";
import {
  atLeast,
  compared,
  either,
  isValue,
  month,
  range,
  sinceDay,
  someCategory,
  someNumber,
  someYear,
  without,
} from "../restrictions.ts";
import type { TableSpec } from "../spec.ts";
import { draft, type Form, type Make } from "./form.ts";

/** Phrasings that ask how many rows satisfy the restrictions. */
export function countPhrasings(table: TableSpec, ...restrictions: readonly Restriction[]): (string | undefined)[] {
  const rows = rowsOf(table, ...restrictions);
  const words = restrictions.length === 1 && !restrictions[0]!.before ? predicate(restrictions[0]!.after) : undefined;
  return [
    `How many ${rows} are there?`,
    words && `How many ${table.many} ${words}?`,
    words && `How many of the ${table.many} ${words}?`,
    `What is the number of ${rows}?`,
    `Count the ${rows}.`,
  ];
}

function countSql(table: TableSpec, where?: string): string {
  return `SELECT COUNT(*) FROM ${quoteName(table.name)}${where ? ` WHERE ${where}` : ""}`;
}

/** Makes a form that counts rows under one restriction. */
function counting(restrict: (world: World, table: TableSpec, r: Random) => Restriction | undefined): Make {
  return (world, r) => {
    const table = r.pick(world.spec.tables);
    const restriction = restrict(world, table, r);
    return restriction ? draft(r, countPhrasings(table, restriction), countSql(table, restriction.sql)) : null;
  };
}

const countAll: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const { many } = table;
  return draft(
    r,
    [
      `How many ${many} are there?`,
      `How many ${many} are there in total?`,
      `What is the total number of ${many}?`,
      `Count all the ${many}.`,
      `How many ${many} are on record?`,
    ],
    countSql(table),
  );
};

const countBoth: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const first = someCategory(world, table, r);
  const second =
    first && (r.chance(0.6) ? someNumber(world, table, r) : someCategory(world, table, r, { except: first.column }));
  if (!first || !second) return null;
  return draft(r, countPhrasings(table, first, second), countSql(table, `${first.sql} AND ${second.sql}`));
};

const countEither = counting((world, table, r) => either(world, table, r, (c, a, b) => `${c} = ${a} OR ${c} = ${b}`));

const countOther: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(
    r,
    categoriesOf(table).filter((candidate) => isFull(world, table, candidate)),
  );
  const value = column && maybePick(r, severalValues(world, table, column));
  if (!column || value === undefined) return null;
  const not =
    column.before || (column.words && Object.hasOwn(column.words, value))
      ? undefined
      : denied(predicate(isValue(column, value).after));
  return draft(
    r,
    [
      not && `How many ${table.many} ${not}?`,
      not && `How many of the ${table.many} ${not}?`,
      `How many ${table.many} are there whose ${column.phrase} is not ${value}?`,
      `What is the number of ${table.many} whose ${column.phrase} is anything but ${value}?`,
    ],
    countSql(table, `${columnSql(column)} <> ${categorySql(column, value)}`),
  );
};

const countPresent: Make = (world, r) => {
  const table = r.pick(world.spec.tables);
  const column = maybePick(
    r,
    table.columns.filter((c) => c.kind !== "ref" && !c.missing && !isFull(world, table, c)),
  );
  if (!column) return null;
  return draft(
    r,
    [
      `How many ${table.many} have a recorded ${column.phrase}?`,
      `For how many ${table.many} is the ${column.phrase} known?`,
      `Count the ${table.many} ${table.person ? "who" : "that"} have ${an(column.phrase)} on record.`,
    ],
    countSql(table, `${columnSql(column)} IS NOT NULL`),
  );
};

/** The forms in this file. */
export const COUNT_FORMS: readonly Form[] = [
  { name: "count", difficulty: "easy", make: countAll },
  { name: "count_category", difficulty: "easy", make: counting(someCategory) },
  { name: "count_above", difficulty: "easy", make: counting(compared(true)) },
  { name: "count_below", difficulty: "easy", make: counting(compared(false)) },
  { name: "count_at_least", difficulty: "easy", make: counting(atLeast) },
  { name: "count_range", difficulty: "easy", make: counting(range) },
  { name: "count_both", difficulty: "easy", make: countBoth },
  { name: "count_either", difficulty: "easy", make: countEither },
  { name: "count_other", difficulty: "easy", make: countOther },
  {
    name: "count_missing",
    difficulty: "easy",
    make: counting((world, table, r) => maybePick(r, without(world, table))),
  },
  { name: "count_present", difficulty: "easy", make: countPresent },
  { name: "count_year", difficulty: "easy", make: counting(someYear) },
  { name: "count_month", difficulty: "easy", make: counting(month) },
  { name: "count_since", difficulty: "easy", make: counting(sinceDay) },
];
