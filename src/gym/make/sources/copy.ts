// Copies tables into a new SQLite file: some rows of each, and every row that a copied row refers to.
import { type Cell, createDatabase, type NewTable, quoteName } from "../../sql/index.ts";
import type { Note } from "../schema.ts";

/** A column of a table that can be copied. */
export interface SourceColumn {
  readonly name: string;
  /** Declared type in the copy: INTEGER, REAL, TEXT, BOOLEAN, DATE … */
  readonly type: string;
}

/** A reference from one column to a key column. */
export interface SourceReference {
  readonly column: string;
  readonly to: string;
  readonly key: string;
}

/** A table that can be copied, wherever it is. */
export interface SourceTable {
  readonly name: string;
  readonly columns: readonly SourceColumn[];
  readonly primaryKey?: string;
  readonly references: readonly SourceReference[];
  /** At most `limit` rows, drawn by seed if there are more, and the number of all rows as far as it is known. */
  sample(limit: number): Promise<{ readonly rows: readonly (readonly Cell[])[]; readonly total: number }>;
  /** The rows with these values in a column. */
  rowsWith(column: string, values: readonly Cell[]): Promise<readonly (readonly Cell[])[]>;
}

export interface Copied {
  readonly bytes: Uint8Array;
  readonly notes: readonly Note[];
}

/** Rounds of fetching rows that others refer to; a chain of references is rarely longer. */
const MAX_ROUNDS = 20;

/** Copies tables and returns the new file. */
export async function copyTables(tables: readonly SourceTable[], maxRows: number): Promise<Copied> {
  const notes: Note[] = [];
  const rows = new Map<string, Cell[][]>();
  const totals = new Map<string, number>();
  for (const table of tables) {
    const { rows: drawn, total } = await table.sample(maxRows);
    rows.set(
      table.name,
      drawn.map((row) => [...row]),
    );
    totals.set(table.name, total);
  }
  const isSampled = (name: string) => totals.get(name)! > rows.get(name)!.length;
  const sampled = tables.filter(({ name }) => isSampled(name));
  for (let round = 0; sampled.length > 0 && round < MAX_ROUNDS; round++) {
    if ((await addReferred(tables, rows, isSampled)) === 0) break;
  }
  for (const { name } of sampled) {
    const kept = rows.get(name)!.length;
    notes.push({
      name,
      reason: `${kept} of ${totals.get(name)} rows were copied: a sample, and the rows that it refers to`,
    });
  }
  const created = tables.map(
    (table): NewTable => ({ name: table.name, ddl: ddlOf(table, tables), rows: rows.get(table.name)! }),
  );
  return { bytes: createDatabase(created), notes };
}

/** Adds the rows of sampled tables that copied rows refer to; returns how many. */
async function addReferred(
  tables: readonly SourceTable[],
  rows: ReadonlyMap<string, Cell[][]>,
  isSampled: (name: string) => boolean,
): Promise<number> {
  let added = 0;
  for (const table of tables) {
    for (const { column, to, key } of table.references) {
      const parent = tables.find(({ name }) => name === to);
      const at = table.columns.findIndex(({ name }) => name === column);
      const keyAt = parent?.columns.findIndex(({ name }) => name === key) ?? -1;
      if (!parent || at < 0 || keyAt < 0 || !isSampled(to)) continue;
      const there = new Set(rows.get(to)!.map((row) => String(row[keyAt])));
      const missing = new Map<string, Cell>();
      for (const row of rows.get(table.name)!) {
        const value = row[at]!;
        if (value !== null && !there.has(String(value))) missing.set(String(value), value);
      }
      if (missing.size === 0) continue;
      const found = await parent.rowsWith(key, [...missing.values()]);
      for (const row of found) {
        if (there.has(String(row[keyAt]))) continue;
        there.add(String(row[keyAt]));
        rows.get(to)!.push([...row]);
        added++;
      }
    }
  }
  return added;
}

/** The CREATE TABLE statement of a copy. References to tables that are not copied are left out. */
function ddlOf({ name, columns, primaryKey, references }: SourceTable, tables: readonly SourceTable[]): string {
  const lines = columns.map((column) => {
    const reference = references.find((one) => one.column === column.name);
    const target = reference && tables.find((table) => table.name === reference.to);
    const isThere = reference && target?.columns.some((one) => one.name === reference.key);
    return [
      quoteName(column.name),
      column.type,
      column.name === primaryKey ? "PRIMARY KEY" : "",
      isThere ? `REFERENCES ${quoteName(reference.to)}(${quoteName(reference.key)})` : "",
    ]
      .filter(Boolean)
      .join(" ");
  });
  return `CREATE TABLE ${quoteName(name)} (\n  ${lines.join(",\n  ")}\n)`;
}
