// Finds out what a source is, and reads it: SQLite files, a folder of them, a folder of CSV files, PostgreSQL.
import { statSync } from "node:fs";
import { QuestionLoadError } from "../../errors.ts";
import type { SourceDatabase } from "./make.ts";
import { type ColumnChoice, ColumnFilter } from "./sources/columns.ts";
import { csvFiles, nameOfCsv, readCsvFiles } from "./sources/csv-folder.node.ts";
import { DEFAULT_MAX_ROWS, MAX_DATABASE_BYTES, tooLarge } from "./sources/limits.ts";
import { isPostgres, readPostgres } from "./sources/postgres.node.ts";
import { isSqliteFile, readSqlite, sqliteFiles } from "./sources/sqlite.node.ts";

export interface SourceOptions extends ColumnChoice {
  readonly seed: number;
  /** Maximum rows per table, not counting rows that others refer to. @default SQLite: all, else 50,000 */
  readonly maxRows?: number;
  /** Schema of a PostgreSQL database. @default public */
  readonly schema?: string;
}

/** Reads every source; throws an error with one clear line for anything that cannot be read. */
export async function readSources(
  sources: readonly string[],
  options: SourceOptions,
): Promise<readonly SourceDatabase[]> {
  const filter = new ColumnFilter(options);
  const found: SourceDatabase[] = [];
  for (const source of sources) found.push(...(await readSource(source, options, filter)));
  filter.checkUsed();
  const names = new Set<string>();
  for (const { name, bytes } of found) {
    if (bytes.length > MAX_DATABASE_BYTES) throw tooLarge(name, bytes.length);
    if (names.has(name)) {
      throw new QuestionLoadError({
        what: "two databases have one name",
        value: name,
        remedy: "rename one of the files",
      });
    }
    names.add(name);
  }
  return found;
}

async function readSource(
  source: string,
  { seed, maxRows, schema }: SourceOptions,
  filter: ColumnFilter,
): Promise<readonly SourceDatabase[]> {
  const csv = { seed, maxRows: maxRows ?? DEFAULT_MAX_ROWS, filter };
  const sqlite = { seed, maxRows, filter };
  if (isPostgres(source)) return [await readPostgres(source, { ...csv, ...(schema !== undefined && { schema }) })];
  const stats = statSync(source, { throwIfNoEntry: false });
  if (!stats) throw new QuestionLoadError({ what: "no such file or folder", value: source, remedy: "check the path" });
  if (!stats.isDirectory()) {
    if (/\.(?:csv|tsv)$/i.test(source)) return [await readCsvFiles(nameOfCsv(source), [source], csv)];
    return [await readSqlite(source, undefined, sqlite)];
  }
  const files = [...sqliteFiles(source)].filter(([, path]) => isSqliteFile(path)).sort(([a], [b]) => (a < b ? -1 : 1));
  const tables = csvFiles(source);
  if (files.length === 0 && tables.length === 0) {
    throw new QuestionLoadError({
      what: "the folder has no SQLite and no CSV files",
      value: source,
      remedy: "give a SQLite file, or a folder of .sqlite, .db or .csv files",
    });
  }
  if (files.length > 0 && tables.length > 0) {
    throw new QuestionLoadError({
      what: "the folder has both SQLite and CSV files",
      value: source,
      remedy: "give them as separate folders",
    });
  }
  if (tables.length > 0) return [await readCsvFiles(nameOfCsv(source), tables, csv)];
  const databases: SourceDatabase[] = [];
  for (const [name, path] of files) databases.push(await readSqlite(path, name, sqlite));
  return databases;
}
