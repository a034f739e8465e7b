// Reads a world's spec and rows for the question forms: columns by kind, values and references, and their SQL.
import type { Random } from "../../random.ts";
import { type Cell, quoteName, quoteText } from "../sql/index.ts";
import { idOf, tableNamed, type World } from "./build.ts";
import type {
  CategoryColumn,
  ColumnSpec,
  DateColumn,
  LabelColumn,
  NumberColumn,
  RefColumn,
  TableSpec,
} from "./spec.ts";

/** A child table, one of its foreign keys, and the parent table. */
export interface Link {
  readonly child: TableSpec;
  readonly ref: RefColumn;
  readonly parent: TableSpec;
}

/** A table and its label column. */
export interface Labelled {
  readonly table: TableSpec;
  readonly label: LabelColumn;
}

/** The values of a column, row by row. */
export function cells(world: World, table: TableSpec, column: ColumnSpec): Cell[] {
  const index = table.columns.indexOf(column);
  return world.rows.get(table.name)!.map((row) => row[index]!);
}

/** Whether every row has a value in this column. */
export function isFull(world: World, table: TableSpec, column: ColumnSpec): boolean {
  return !column.nulls || cells(world, table, column).every((cell) => cell !== null);
}

/** The label column of a table. */
export function labelOf(table: TableSpec): LabelColumn | undefined {
  return table.columns.find((column): column is LabelColumn => column.kind === "label" && column.name === table.label);
}

/** Tables that have a label column. */
export function labelledTables(world: World): Labelled[] {
  return world.spec.tables.flatMap((table) => {
    const label = labelOf(table);
    return label ? [{ table, label }] : [];
  });
}

/** Label values that occur only once. */
export function uniqueLabels(world: World, { table, label }: Labelled): string[] {
  const counts = new Map<string, number>();
  for (const cell of cells(world, table, label)) {
    if (typeof cell === "string") counts.set(cell, (counts.get(cell) ?? 0) + 1);
  }
  return [...counts].flatMap(([value, count]) => (count === 1 ? [value] : []));
}

export function numbersOf(table: TableSpec): NumberColumn[] {
  return table.columns.filter((column): column is NumberColumn => column.kind === "integer" || column.kind === "real");
}

export function categoriesOf(table: TableSpec): CategoryColumn[] {
  return table.columns.filter((column): column is CategoryColumn => column.kind === "category");
}

export function datesOf(table: TableSpec): DateColumn[] {
  return table.columns.filter((column): column is DateColumn => column.kind === "date");
}

/** Columns that a person may ask about a row: all but ids, references and the label itself. */
export function factsOf(table: TableSpec): ColumnSpec[] {
  return table.columns.filter(
    ({ kind, name, cast }) => kind !== "id" && kind !== "ref" && name !== table.label && cast === undefined,
  );
}

/** References to tables that have a label column. */
export function linksOf(world: World): Link[] {
  return world.spec.tables.flatMap((child) =>
    child.columns.flatMap((ref) => {
      if (ref.kind !== "ref") return [];
      const parent = tableNamed(world.spec, ref.table);
      return parent.label ? [{ child, ref, parent }] : [];
    }),
  );
}

/** Links that are the only one between their tables; with two, "the flights of an airport" would be ambiguous. */
export function soleLinksOf(world: World): Link[] {
  const all = linksOf(world);
  return all.filter(
    (link) =>
      link.ref.owned !== false &&
      all.every((other) => other === link || other.child !== link.child || other.parent !== link.parent),
  );
}

/** Links that a verb identifies: sole ones, and ones with their own verb. */
export function verbLinksOf(world: World): Link[] {
  const sole = soleLinksOf(world).map(({ ref }) => ref);
  return linksOf(world).filter(({ ref }) => ref.owned !== false && (ref.verb !== undefined || sole.includes(ref)));
}

/** Values of a category in order of first occurrence; undefined if there is only one. */
export function severalValues(world: World, table: TableSpec, column: CategoryColumn): string[] {
  const values = [...new Set(cells(world, table, column))].flatMap((value) =>
    typeof value === "string" ? [value] : column.numeric && value !== null ? [String(value)] : [],
  );
  return values.length > 1 ? values : [];
}

/** Formats a value of a category as SQL. */
export function categorySql({ numeric }: CategoryColumn, value: string): string {
  return numeric ? value : quoteText(value);
}

/** A random element, or undefined for an empty list. */
export function maybePick<T>(r: Random, items: readonly T[]): T | undefined {
  return items.length === 0 ? undefined : r.pick(items);
}

/** Formats a column for a query on one table or, with `within`, qualified by its table for a join. */
export function columnSql(column: ColumnSpec, within?: TableSpec | string): string {
  const table = within === undefined ? "" : `${quoteName(typeof within === "string" ? within : within.name)}.`;
  const sql = `${table}${quoteName(column.name)}`;
  return column.cast ? `CAST(${sql} AS ${column.cast})` : sql;
}

/** The SQL `child JOIN parent ON …`. */
export function joinSql({ child, ref, parent }: Link): string {
  return `${quoteName(child.name)} JOIN ${onSql({ child, ref, parent })}`;
}

/** The SQL `parent ON …` for a further JOIN; the parent may have an alias. */
export function onSql({ child, ref, parent }: Link, alias?: string): string {
  const named = alias ? `${quoteName(parent.name)} AS ${alias}` : quoteName(parent.name);
  return `${named} ON ${columnSql(ref, child)} = ${columnSql(idOf(parent), alias ?? parent)}`;
}

/** Formats a value as SQL. */
export function valueSql(value: Cell): string {
  return typeof value === "string" ? quoteText(value) : String(value);
}
