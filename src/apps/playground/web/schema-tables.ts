// A database's tables and rows for the page, as plain data.
import { type Cell, type Database, quoteName } from "../../../gym/sql/index.ts";
import { cut } from "../../reports/format.ts";
import { BROWSED_ROWS, type SchemaTable, type TableRows } from "./worker-protocol.ts";

/** Characters of a cell. */
const CELL = 200;

/** All tables and columns, for the page; a player sees only what it describes. */
export function schemaOf(database: Database): SchemaTable[] {
  return database.tables.map((table) => ({
    name: table.name,
    kind: table.kind,
    rows: database.rowCount(table),
    columns: table.columns.map(({ name, type, primary_key }) => {
      const reference = table.foreign_keys.find(({ column }) => column === name);
      const target = reference ? { table: reference.table, column: reference.references } : null;
      return { name, type: type ?? "", primary_key: Boolean(primary_key), target };
    }),
  }));
}

/** Some rows of a table; undefined if there is no such table. */
export function rowsOf(database: Database, name: string, offset: number): TableRows | undefined {
  const table = database.table(name);
  if (!table) return undefined;
  const result = database.run(
    `SELECT * FROM ${quoteName(table.name)} LIMIT ${BROWSED_ROWS} OFFSET ${Math.floor(offset)}`,
  );
  if (!result.ok) return { rows: [], error: result.error.message };
  return { rows: result.table.rows.map((row) => row.map(cellText)), error: null };
}

/** A cell as text. */
export function cellText(value: Cell): string {
  return value === null ? "NULL" : cut(String(value), CELL);
}
