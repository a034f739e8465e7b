// SQLite files as sources: one file, or all files of a folder.
import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import { type Random, random } from "../../../random.ts";
import { findDatabases, readDatabaseFile } from "../../data/formats/databases.node.ts";
import { type Cell, type Column, Database, quoteName, type Table } from "../../sql/index.ts";
import type { SourceDatabase } from "../make.ts";
import { type Note, type Reference, readSchema } from "../schema.ts";
import type { ColumnFilter } from "./columns.ts";
import { copyTables, type SourceTable } from "./copy.ts";
import { databaseName } from "./database-name.ts";
import { MAX_DATABASE_BYTES, tooLarge } from "./limits.ts";

const EXTENSION = /\.(?:sqlite3?|db3?)$/i;

/** Whether a file starts as SQLite files do. */
export function isSqliteFile(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  const file = openSync(path, "r");
  try {
    const start = Buffer.alloc(16);
    return readSync(file, start) === 16 && start.toString("latin1") === "SQLite format 3\0";
  } finally {
    closeSync(file);
  }
}

/** Paths of a folder's databases by name: `NAME.sqlite` or `NAME/NAME.sqlite`, in it or in its folder `databases`. */
export function sqliteFiles(folder: string): Map<string, string> {
  const found = findDatabases(folder);
  if (found.size > 0) return found;
  const inside = join(folder, "databases");
  return statSync(inside, { throwIfNoEntry: false })?.isDirectory() && readdirSync(inside).length > 0
    ? findDatabases(inside)
    : found;
}

export interface SqliteOptions {
  readonly seed: number;
  /** Rows per table; undefined copies the file as it is. */
  readonly maxRows: number | undefined;
  readonly filter: ColumnFilter;
}

/** Reads one SQLite file: byte for byte, or a copy without some columns or rows. */
export async function readSqlite(
  path: string,
  own: string | undefined,
  options: SqliteOptions,
): Promise<SourceDatabase> {
  const { size } = statSync(path);
  if (size > MAX_DATABASE_BYTES) throw tooLarge(path, size);
  if (size === 0) throw new QuestionLoadError({ what: "the file is empty", value: path, remedy: "check the path" });
  const name = databaseName(own ?? basename(resolve(path)).replace(EXTENSION, ""));
  const bytes = readDatabaseFile(path);
  const { seed, maxRows = Number.POSITIVE_INFINITY, filter } = options;
  if (!filter.isActive && maxRows === Number.POSITIVE_INFINITY) return { name, bytes };
  const database = new Database(name, bytes);
  try {
    const notes: Note[] = [];
    const { references } = readSchema(database);
    const tables = database.tables.flatMap((table) => {
      if (table.kind === "view") return [];
      const columns = table.columns.filter((column) => filter.allows(table.name, column.name));
      const left = table.columns.length - columns.length;
      if (left > 0) notes.push({ name: table.name, reason: `${left} of ${table.columns.length} columns are excluded` });
      return columns.length > 0
        ? [sourceTable(database, table, columns, references, random("make-sqlite", seed, table.name))]
        : [];
    });
    const { bytes: copy, notes: copied } = await copyTables(tables, maxRows);
    return { name, bytes: copy, notes: [...notes, ...copied] };
  } finally {
    database.close();
  }
}

function sourceTable(
  database: Database,
  table: Table,
  columns: readonly Column[],
  references: readonly Reference[],
  r: Random,
): SourceTable {
  const from = `SELECT ${columns.map(({ name }) => quoteName(name)).join(", ")} FROM ${quoteName(table.name)}`;
  const read = (sql: string): readonly (readonly Cell[])[] => {
    const result = database.run(sql, {
      maxRows: Number.POSITIVE_INFINITY,
      maxBytes: Number.POSITIVE_INFINITY,
      maxInstructions: MAX_READ_INSTRUCTIONS,
    });
    if (!result.ok || result.table.cut_at !== undefined)
      throw new QuestionLoadError({
        what: `table ${table.name} cannot be copied`,
        value: result.ok ? "a value is too long" : result.error.message,
        remedy: "leave it out with --exclude",
      });
    return result.table.rows;
  };
  const keys = columns.filter(({ primary_key }) => primary_key);
  return {
    name: table.name,
    columns: columns.map(({ name, type }) => ({ name, type })),
    ...(keys.length === 1 && { primaryKey: keys[0]!.name }),
    references: references.filter((one) => one.table === table.name),
    sample: async (limit) => {
      const rows = read(from);
      if (rows.length <= limit) return { rows, total: rows.length };
      const chosen = new Set(
        r.sample(
          rows.map((_, i) => i),
          limit,
        ),
      );
      return { rows: rows.filter((_, i) => chosen.has(i)), total: rows.length };
    },
    rowsWith: async (column, values) => {
      const at = columns.findIndex(({ name }) => name === column);
      const wanted = new Set(values.map(String));
      return read(from).filter((row) => wanted.has(String(row[at])));
    },
  };
}

/** Maximum instructions for reading a whole table: at least ten for each value of the largest file that is accepted. */
const MAX_READ_INSTRUCTIONS = 2_000_000_000;
