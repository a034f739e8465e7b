// Builds a database from its spec: samples rows from a seed and writes the SQLite file.
import { SqlEnvError } from "../../errors.ts";
import { type Random, random } from "../../random.ts";
import { type Cell, createDatabase, quoteName } from "../sql/index.ts";
import type { ColumnSpec, DateColumn, LabelColumn, NumberColumn, RefColumn, TableSpec, WorldSpec } from "./spec.ts";

/** A spec and its rows by table name; cells are in the order of the table's columns. */
export interface World {
  readonly spec: WorldSpec;
  readonly rows: ReadonlyMap<string, readonly (readonly Cell[])[]>;
}

/** Builds a SQLite file; the same spec and seed give the same bytes. */
export function buildWorld(spec: WorldSpec, seed: number): Uint8Array {
  return worldBytes(fillWorld(spec, seed));
}

/** Samples the rows of every table. */
export function fillWorld(spec: WorldSpec, seed: number): World {
  const rows = new Map<string, Cell[][]>();
  const r = random("world", spec.name, seed);
  for (const table of spec.tables) rows.set(table.name, fillTable(spec, table, rows, r.fork(table.name)));
  return { spec, rows };
}

/** Writes a world as a SQLite file. */
export function worldBytes({ spec, rows }: World): Uint8Array {
  return createDatabase(
    spec.tables.map((table) => ({ name: table.name, ddl: ddlOf(spec, table), rows: rows.get(table.name)! })),
  );
}

/** The CREATE TABLE statement of a table, including foreign keys. */
export function ddlOf(spec: WorldSpec, table: TableSpec): string {
  const lines = table.columns.map((column) => {
    const name = quoteName(column.name);
    const notNull = column.nulls ? "" : " NOT NULL";
    switch (column.kind) {
      case "id":
        return `${name} INTEGER PRIMARY KEY`;
      case "integer":
        return `${name} INTEGER${notNull}`;
      case "real":
        return `${name} REAL${notNull}`;
      case "ref": {
        const target = tableNamed(spec, column.table);
        return `${name} INTEGER${notNull} REFERENCES ${quoteName(target.name)}(${quoteName(idOf(target).name)})`;
      }
      default:
        return `${name} TEXT${notNull}`;
    }
  });
  return `CREATE TABLE ${quoteName(table.name)} (\n  ${lines.join(",\n  ")}\n)`;
}

/** Finds a table by name. */
export function tableNamed(spec: WorldSpec, name: string): TableSpec {
  const table = spec.tables.find((candidate) => candidate.name === name);
  if (!table) throw badSpec(`world ${spec.name} has no table`, name);
  return table;
}

/** The primary key of a table that others reference. */
export function idOf(table: TableSpec): ColumnSpec {
  const id = table.columns.find((column) => column.kind === "id");
  if (!id) throw badSpec("a table that is referred to needs a column of kind id", table.name);
  return id;
}

function fillTable(spec: WorldSpec, table: TableSpec, done: ReadonlyMap<string, Cell[][]>, r: Random): Cell[][] {
  const rows: Cell[][] = Array.from({ length: table.rows }, () => []);
  table.columns.forEach((column, c) => {
    const stream = r.fork(column.name);
    const given = table.given?.columns.indexOf(column.name) ?? -1;
    const draw = drawer(spec, table, column, done, rows, stream);
    const blanks = stream.fork("nulls");
    for (const [i, row] of rows.entries()) {
      const drawn = column.nulls && blanks.chance(column.nulls) ? null : draw(i, row);
      const written = given < 0 ? undefined : table.given?.rows[i]?.[given];
      row[c] = written === undefined ? drawn : written;
    }
  });
  return rows;
}

type Draw = (index: number, row: readonly Cell[]) => Cell;

/** Returns a function that samples one column row by row; `row` holds the cells to the left. */
function drawer(
  spec: WorldSpec,
  table: TableSpec,
  column: ColumnSpec,
  done: ReadonlyMap<string, Cell[][]>,
  rows: readonly (readonly Cell[])[],
  r: Random,
): Draw {
  switch (column.kind) {
    case "id":
      return (i) => i + 1;
    case "label":
      return labels(table, column, r);
    case "category":
      return categories(column.values, r);
    case "integer":
    case "real":
      return numbers(column, earlier(spec, table, column.follows, done), r);
    case "date":
      return dates(column, earlier(spec, table, column.follows, done), r);
    case "ref":
      return references(table, column, tableNamed(spec, column.table), done.get(column.table), rows, r);
  }
}

function labels(table: TableSpec, { name, values, repeats }: LabelColumn, r: Random): Draw {
  if (repeats) return () => r.pick(values);
  if (values.length < table.rows && !table.given?.columns.includes(name)) {
    throw badSpec(`${table.name}.${name} has fewer values than rows`, values.length);
  }
  const order = r.shuffle(values);
  return (i) => order[i] ?? null;
}

function categories(values: readonly string[], r: Random): Draw {
  const weighted = values.map((value, k) => [value, 1 / (k + 1) ** 0.7] as const);
  return () => (weighted.length === 0 ? null : r.pickWeighted(weighted));
}

/**
 * The value that a sampled one is relative to: from a column to the left or, written `ref.column`, from the referenced
 * row.
 */
function earlier(
  spec: WorldSpec,
  table: TableSpec,
  follows: string | undefined,
  done: ReadonlyMap<string, Cell[][]>,
): (row: readonly Cell[]) => Cell {
  if (follows === undefined) return () => null;
  const [near = "", far] = follows.split(".");
  const here = table.columns.findIndex(({ name }) => name === near);
  const ref = table.columns[here];
  if (!ref) throw badSpec(`${table.name} has no column`, near);
  if (far === undefined || ref.kind !== "ref") return (row) => row[here] ?? null;
  const target = tableNamed(spec, ref.table);
  const id = target.columns.indexOf(idOf(target));
  const there = target.columns.findIndex(({ name }) => name === far);
  const values = new Map(done.get(target.name)!.map((row) => [row[id], row[there]]));
  return (row) => values.get(row[here]) ?? null;
}

function numbers(column: NumberColumn, base: (row: readonly Cell[]) => Cell, r: Random): Draw {
  const { kind, low, high, skew = 1, decimals = kind === "integer" ? 0 : 2, step } = column;
  return (_, row) => {
    const share = r.next() ** skew;
    const drawn = step
      ? low + Math.round((share * (high - low)) / step) * step
      : kind === "integer"
        ? low + Math.floor(share * (high - low + 1))
        : low + share * (high - low);
    return Number((drawn + Number(base(row) ?? 0)).toFixed(decimals));
  };
}

const DAY = 86_400_000;

function dates({ from, to, within = 30 }: DateColumn, base: (row: readonly Cell[]) => Cell, r: Random): Draw {
  const [first, last] = [Date.parse(from) / DAY, Date.parse(to) / DAY];
  return (_, row) => {
    const before = base(row);
    if (typeof before !== "string") return dayText(r.int(first, last));
    return dayText(Date.parse(before) / DAY + Math.floor(r.next() ** 1.5 * (within + 1)));
  };
}

function dayText(day: number): string {
  return new Date(day * DAY).toISOString().slice(0, 10);
}

/**
 * Samples ids of the referenced table, some often and some never. A row does not reference the same id twice, and link
 * rows are distinct.
 */
function references(
  table: TableSpec,
  column: RefColumn,
  target: TableSpec,
  targetRows: readonly (readonly Cell[])[] | undefined,
  rows: readonly (readonly Cell[])[],
  r: Random,
): Draw {
  if (!targetRows?.length)
    throw badSpec(`${table.name}.${column.name} refers to a table without rows before it`, target.name);
  const id = target.columns.indexOf(idOf(target));
  const ids = r.shuffle(targetRows.map((row) => row[id]!));
  const used = column.every ? ids.length : Math.max(1, Math.ceil(ids.length * 0.88));
  const weighted = ids.slice(0, used).map((value, k) => [value, 1 / (k + 3) ** 0.8] as const);
  const refs = table.columns.flatMap((other, i) => (other.kind === "ref" ? [{ other, i }] : []));
  const siblings = refs.filter(({ other }) => other.table === column.table && other !== column).map(({ i }) => i);
  const isLast = refs.at(-1)?.other === column;
  const isLink = isLast && refs.length > 1 && !table.label && !table.columns.some(({ kind }) => kind === "date");
  const seen = new Set<string>();
  const once = column.every
    ? r.sample(
        rows.map((_, i) => i),
        ids.length,
      )
    : [];
  return (i, row) => {
    const turn = once.indexOf(i);
    for (let attempt = 0; ; attempt++) {
      const value = attempt === 0 && turn >= 0 ? ids[turn]! : r.pickWeighted(weighted);
      const key = [...refs.slice(0, -1).map((ref) => row[ref.i]), value].join(" ");
      const clash = siblings.some((s) => row[s] === value) || (isLink && seen.has(key));
      if (clash && attempt < 50) continue;
      seen.add(key);
      return value;
    }
  };
}

function badSpec(what: string, value: string | number): SqlEnvError {
  return new SqlEnvError("bad_spec", { what, value, remedy: "correct the world's spec" });
}
