// Restrictions: random conditions on rows, in English and in SQL, that some rows satisfy and others do not.
import type { Random } from "../../random.ts";
import type { Cell } from "../sql/index.ts";
import { idOf, type World } from "./build.ts";
import { an, fill } from "./english.ts";
import {
  categoriesOf,
  categorySql,
  cells,
  columnSql,
  datesOf,
  isFull,
  type Link,
  labelOf,
  maybePick,
  numbersOf,
  severalValues,
  uniqueLabels,
  valueSql,
} from "./inspect-world.ts";
import { categoryWords, countedBy, type Restriction, withUnit } from "./phrases.ts";
import type { CategoryColumn, NumberColumn, TableSpec } from "./spec.ts";

/** Restricts to rows with one value of a category; `table` qualifies the column inside a join. */
export function isValue(column: CategoryColumn, value: string, table?: TableSpec): Restriction {
  return {
    column: column.name,
    sql: `${columnSql(column, table)} = ${categorySql(column, value)}`,
    ...categoryWords(column, value),
  };
}

/** A category restriction that some but not all rows satisfy. */
export function someCategory(
  world: World,
  table: TableSpec,
  r: Random,
  { qualified = false, except = "" } = {},
): Restriction | undefined {
  const column = maybePick(
    r,
    categoriesOf(table).filter(({ name }) => name !== except),
  );
  if (!column) return undefined;
  const value = maybePick(r, severalValues(world, table, column));
  return value === undefined ? undefined : isValue(column, value, qualified ? table : undefined);
}

/** Restricts to rows with either of two values of a category. */
export function either(
  world: World,
  table: TableSpec,
  r: Random,
  sql: (column: string, a: string, b: string) => string,
): Restriction | undefined {
  const column = maybePick(r, categoriesOf(table));
  const [a, b] = column ? r.sample(severalValues(world, table, column), 2) : [];
  if (!column || a === undefined || b === undefined) return undefined;
  return {
    column: column.name,
    sql: sql(columnSql(column), categorySql(column, a), categorySql(column, b)),
    ...categoryWords(column, `${a} or ${b}`),
  };
}

/** Finds a threshold that splits the column's values: a round number between the given quantiles. */
export function threshold(
  world: World,
  table: TableSpec,
  column: NumberColumn,
  r: Random,
  low = 0.2,
  high = 0.8,
): number | undefined {
  const values = cells(world, table, column)
    .filter((cell): cell is number => typeof cell === "number")
    .sort((a, b) => a - b);
  if (values.length < 4) return undefined;
  const at = (share: number) => values[Math.floor(share * (values.length - 1))]!;
  const range = at(0.95) - at(0.05);
  if (range <= 0) return undefined;
  const magnitude = 10 ** Math.floor(Math.log10(range) - 0.5);
  const unit = column.kind === "integer" ? Math.max(1, magnitude) : magnitude;
  const rounded = Math.round((at(low) + r.next() * (at(high) - at(low))) / unit) * unit;
  const value = Number(rounded.toFixed(column.kind === "integer" ? 0 : 3));
  // 1 would require the unit in the singular.
  return value > values[0]! && value < values.at(-1)! && value !== 1 ? value : undefined;
}

/** Restricts to rows on one side of a threshold: "older than 40". */
export function beyond(column: NumberColumn, value: number, above: boolean, table?: TableSpec): Restriction {
  const counted = countedBy(column);
  const own = column.comparatives?.[above ? 0 : 1];
  const plain = counted
    ? `with ${above ? "more" : "fewer"} than ${value} ${counted}`
    : `with ${an(column.phrase)} ${above ? "above" : "below"} ${withUnit(value, column)}`;
  return {
    column: column.name,
    sql: `${columnSql(column, table)} ${above ? ">" : "<"} ${value}`,
    after: own ? `${own} ${withUnit(value, column)}` : plain,
  };
}

export const compared = (above: boolean) => (world: World, table: TableSpec, r: Random) => {
  const column = maybePick(r, numbersOf(table));
  const value = column && threshold(world, table, column, r);
  return value === undefined ? undefined : beyond(column!, value, above);
};

/** A number restriction that some but not all rows satisfy. */
export function someNumber(
  world: World,
  table: TableSpec,
  r: Random,
  { qualified = false, low = 0.2, high = 0.8 } = {},
): Restriction | undefined {
  const column = maybePick(r, numbersOf(table));
  const value = column && threshold(world, table, column, r, low, high);
  return value === undefined ? undefined : beyond(column!, value, r.chance(0.6), qualified ? table : undefined);
}

/** Restricts to a range of a number column that contains some rows. */
export function range(world: World, table: TableSpec, r: Random): Restriction | undefined {
  const column = maybePick(r, numbersOf(table));
  const [a, b] = column
    ? [threshold(world, table, column, r, 0.1, 0.45), threshold(world, table, column, r, 0.55, 0.9)]
    : [];
  if (!column || a === undefined || b === undefined || a >= b) return undefined;
  const words =
    column.between ?? `with ${an(column.phrase)} between {a} and {b}${column.unit ? ` ${column.unit}` : ""}`;
  return { column: column.name, sql: `${columnSql(column)} BETWEEN ${a} AND ${b}`, after: fill(words, { a, b }) };
}

/** Restrictions such as "with a price of at least 20 euros" or "with at most 5 goals". */
export function atLeast(world: World, table: TableSpec, r: Random): Restriction | undefined {
  const column = maybePick(
    r,
    numbersOf(table).filter(({ year }) => !year),
  );
  const value = column && threshold(world, table, column, r);
  if (!column || value === undefined) return undefined;
  const [sign, word] = r.chance(0.6) ? [">=", "at least"] : ["<=", "at most"];
  const counted = countedBy(column);
  return {
    column: column.name,
    sql: `${columnSql(column)} ${sign} ${value}`,
    after: counted
      ? `with ${word} ${value} ${counted}`
      : `with ${an(column.phrase)} of ${word} ${withUnit(value, column)}`,
  };
}

/** Restricts to rows dated in one year: "hired in 2019". */
export function someYear(world: World, table: TableSpec, r: Random, qualified = false): Restriction | undefined {
  const column = maybePick(r, datesOf(table));
  const date =
    column &&
    maybePick(
      r,
      cells(world, table, column).filter((cell) => typeof cell === "string"),
    );
  if (!column || typeof date !== "string") return undefined;
  const year = date.slice(0, 4);
  return {
    column: column.name,
    sql: `strftime('%Y', ${columnSql(column, qualified ? table : undefined)}) = '${year}'`,
    after: fill(column.where, { v: year }),
  };
}

/** Restricts to rows dated in one month of one year: "hired in March 2019". */
export function month(world: World, table: TableSpec, r: Random): Restriction | undefined {
  const column = maybePick(
    r,
    datesOf(table).filter(({ where }) => where.includes("in {v}")),
  );
  const date = column && maybePick(r, cells(world, table, column));
  if (!column || typeof date !== "string") return undefined;
  const name = MONTHS[Number(date.slice(5, 7)) - 1]!;
  return {
    column: column.name,
    sql: `${columnSql(column)} LIKE '${date.slice(0, 7)}%'`,
    after: fill(column.where, { v: `${name} ${date.slice(0, 4)}` }),
  };
}

const MONTHS = "January February March April May June July August September October November December".split(" ");

/** Restricts to rows dated after or before a day. */
export function sinceDay(world: World, table: TableSpec, r: Random): Restriction | undefined {
  const column = maybePick(
    r,
    datesOf(table).filter(({ where }) => where.includes("in {v}")),
  );
  const days = column
    ? cells(world, table, column)
        .filter((cell): cell is string => typeof cell === "string")
        .sort()
    : [];
  if (!column || days.length < 5) return undefined;
  const after = r.chance(0.5);
  const share = after ? 0.6 + 0.35 * r.next() : 0.05 + 0.35 * r.next();
  const day = `${days[Math.floor(share * days.length)]!.slice(0, 7)}-01`;
  return {
    column: column.name,
    sql: `${columnSql(column)} ${after ? ">" : "<"} '${day}'`,
    after: fill(column.where.replace("in {v}", `${after ? "after" : "before"} {v}`), { v: day }),
  };
}

/** Restrictions to rows without a value in a column. */
export function without(world: World, table: TableSpec): Restriction[] {
  return table.columns
    .filter((column) => column.kind !== "ref" && !isFull(world, table, column))
    .map((column) => ({
      column: column.name,
      sql: `${columnSql(column)} IS NULL`,
      after: column.missing ?? `with no recorded ${column.phrase}`,
    }));
}

/** Restricts to rows that reference one named row: "by Ursula Kent". */
export function refersTo({ ref, parent }: Link, value: Cell, alias?: string): Restriction {
  return {
    column: ref.name,
    sql: `${columnSql(labelOf(parent)!, alias ?? parent)} = ${valueSql(value)}`,
    after: fill(ref.where, { v: String(value) }),
  };
}

/** The template for a restriction to several referenced rows, such as "by {v}"; undefined if there is none. */
export function listTemplate({ ref }: Link): string | undefined {
  return ref.through ?? (/^\w+ \{v\}$/.test(ref.where) ? ref.where : undefined);
}

/** Samples a named parent row that has child rows, with probability proportional to their number. */
export function someReferred(world: World, link: Link, r: Random): string | undefined {
  const { child, ref, parent } = link;
  const label = labelOf(parent)!;
  const unique = new Set(uniqueLabels(world, { table: parent, label }));
  const ids = cells(world, parent, idOf(parent));
  const id = maybePick(
    r,
    cells(world, child, ref).filter((cell) => cell !== null),
  );
  if (id === undefined) return undefined;
  const name = cells(world, parent, label)[ids.indexOf(id)];
  return typeof name === "string" && unique.has(name) ? name : undefined;
}
