// Files in memory as a source: one SQLite file, or CSV files. Runs in a browser.
import { QuestionLoadError } from "../../../errors.ts";
import { isSqlite, isUtf16 } from "../../sql/index.ts";
import type { SourceDatabase } from "../make.ts";
import { ColumnFilter } from "./columns.ts";
import { csvName, readCsvTables } from "./csv-tables.ts";
import { databaseName } from "./database-name.ts";

/** A file and its content. */
export interface NamedBytes {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const DATABASE = /\.(?:sqlite3?|db3?)$/i;
const CSV = /\.(?:csv|tsv)$/i;

/**
 * One database of a SQLite file, or of CSV files, one table per file. All rows are kept; keys and references of CSV files
 * are guessed. `loadSqlite()` must have been awaited. Throws QuestionLoadError for anything else.
 *
 * @example
 * await loadSqlite();
 * const { name, bytes } = await databaseFromFiles([{ name: "shop.sqlite", bytes: readFileSync("shop.sqlite") }]);
 */
export async function databaseFromFiles(files: readonly NamedBytes[]): Promise<SourceDatabase> {
  const [first] = files;
  if (!first) throw new QuestionLoadError({ what: "no file", remedy: "choose a SQLite file or CSV files" });
  for (const file of files) check(file);
  if (files.length === 1 && isSqlite(first.bytes))
    return { name: databaseName(first.name.replace(DATABASE, "")), bytes: first.bytes };
  const database = files.find(({ bytes }) => isSqlite(bytes));
  if (database)
    throw new QuestionLoadError({
      what: "a SQLite file is a database by itself",
      value: database.name,
      remedy: `choose it without the other ${files.length === 2 ? "file" : "files"}`,
    });
  const name = files.length === 1 ? csvName(first.name) : "tables";
  const tables = files.map((file) => ({
    name: csvName(file.name),
    label: file.name,
    bytes: () => [file.bytes],
  }));
  const filter = new ColumnFilter({});
  return readCsvTables(name, tables, { seed: 0, maxRows: Number.POSITIVE_INFINITY, filter });
}

function check({ name, bytes }: NamedBytes): void {
  if (bytes.length === 0) throw new QuestionLoadError({ what: "the file is empty", value: name });
  if (/-(?:wal|shm|journal)$/.test(name))
    throw new QuestionLoadError(
      {
        what: "a log of a database has changes that are not in its file",
        value: name,
        remedy: "close the program that has the database open, and choose the database alone",
      },
      "database_wal",
    );
  if (isUtf16(bytes))
    throw new QuestionLoadError(
      {
        what: "database is encoded in UTF-16",
        value: name,
        remedy: "write it again in UTF-8 with: sqlite3 FILE .dump | sqlite3 new.sqlite",
      },
      "database_utf16",
    );
  if (isSqlite(bytes) || CSV.test(name)) return;
  if (DATABASE.test(name))
    throw new QuestionLoadError(
      { what: "the file is not a SQLite database, or it is encrypted", value: name },
      "bad_database",
    );
  throw new QuestionLoadError({
    what: "neither a SQLite database nor a CSV file",
    value: name,
    remedy: "choose a .sqlite or .db file, or .csv files",
  });
}
