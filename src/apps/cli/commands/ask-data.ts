// The database of `sqlenv ask`: a SQLite file, CSV files, or one of a data set's databases. Files are only read.
import { statSync } from "node:fs";
import { extname } from "node:path";
import { nearest, QuestionLoadError, UsageError } from "../../../errors.ts";
import { isDatabase } from "../../../gym/data/formats/open.node.ts";
import { detectLayout, findLayout, importedDataSets } from "../../../gym/data/index.node.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { readSources } from "../../../gym/make/source.node.ts";
import { csvFiles } from "../../../gym/make/sources/csv-folder.node.ts";
import { MAX_CHECKED_BYTES, MAX_DATABASE_BYTES } from "../../../gym/make/sources/limits.ts";
import { sqliteFiles } from "../../../gym/make/sources/sqlite.node.ts";
import { DatabasePool, loadSqlite } from "../../../gym/sql/index.ts";

/** A database to ask about. */
export interface AskedDatabase {
  /** As the user named the source. */
  readonly source: string;
  readonly name: string;
  readonly databases: DatabasePool;
  /** The bytes of its file; undefined for generated databases. */
  readonly file: (() => Uint8Array) | undefined;
}

export interface AskedSource {
  readonly data: string;
  readonly dbDir?: string | undefined;
  readonly database?: string | undefined;
}

/** Opens the database; throws an error with one clear line if it cannot be used. */
export async function openAskedDatabase({ data: source, dbDir, database }: AskedSource): Promise<AskedDatabase> {
  await loadSqlite();
  const { databases, file } = isFiles(source) ? await readFiles(source) : await resolveDataSet(source, { dbDir });
  try {
    const name = chosen(databases.names, database);
    const opened = databases.get(name);
    const [damage] = opened.byteLength > MAX_CHECKED_BYTES ? [] : opened.integrityErrors();
    if (damage !== undefined)
      throw new QuestionLoadError(
        { what: "the database is damaged, so its answers could be wrong", value: damage, remedy: "repair it first" },
        "bad_database",
      );
    return { source, name, databases, file: file && (() => file(name)) };
  } catch (error) {
    databases.close();
    throw error;
  }
}

/** Whether a source is a database or tables by itself, not a data set with questions. */
function isFiles(source: string): boolean {
  if (importedDataSets().includes(source)) return false;
  const stats = statSync(source, { throwIfNoEntry: false });
  const refuse = (what: string, remedy: string) => new QuestionLoadError({ what, value: source, remedy });
  if (!stats) {
    if (isDatabase(source)) throw refuse("no such file", "check the path");
    return false; // a name
  }
  if (!stats.isDirectory()) return extname(source).toLowerCase() !== ".json";
  if (detectLayout(source) !== undefined) return false;
  if (filesIn(source).length > 0) return true;
  if (!hasDataSet(source))
    throw refuse("the folder has no database", "give a SQLite file, a CSV file, a folder of them, or a data set");
  return false;
}

/** Whether there is a data set in the folder or below. */
function hasDataSet(folder: string): boolean {
  try {
    return findLayout(folder) !== undefined;
  } catch (error) {
    if (error instanceof QuestionLoadError) return false;
    throw error;
  }
}

function filesIn(folder: string): readonly string[] {
  return [...sqliteFiles(folder).values(), ...csvFiles(folder)];
}

/** Reads a SQLite file, or all rows of CSV files. */
async function readFiles(source: string): Promise<{ databases: DatabasePool; file: (name: string) => Uint8Array }> {
  checkFiles(statSync(source).isDirectory() ? filesIn(source) : [source]);
  const found = await readSources([source], { seed: 0, maxRows: Number.POSITIVE_INFINITY });
  const file = (name: string) => found.find((one) => one.name === name)!.bytes;
  return { databases: new DatabasePool({ names: found.map(({ name }) => name), read: file }), file };
}

/** Refuses what cannot be read to its end: devices, pipes, sockets, and files that do not fit in memory. */
function checkFiles(paths: readonly string[]): void {
  let total = 0;
  for (const path of paths) {
    const stats = statSync(path, { throwIfNoEntry: false });
    const refuse = (what: string, remedy: string) => new QuestionLoadError({ what, value: path, remedy });
    if (!stats?.isFile()) throw refuse("not a file, but a folder, a device, a pipe or a broken link", "give a file");
    if (stats.size === 0) throw refuse("the file is empty", "check the path");
    total += stats.size;
    if (total > MAX_DATABASE_BYTES)
      throw refuse(
        `more than ${MAX_DATABASE_BYTES / 1e6} MB, which is the limit: the database is held in memory`,
        "copy the tables you ask about into a database of their own",
      );
  }
}

function chosen(names: readonly string[], wanted: string | undefined): string {
  const some = `${names.slice(0, 12).join(", ")}${names.length > 12 ? ` and ${names.length - 12} more` : ""}`;
  if (wanted === undefined) {
    if (names.length === 1) return names[0]!;
    throw new UsageError({
      what: "the data set has several databases",
      value: some,
      remedy: "name one: --database NAME",
    });
  }
  if (names.includes(wanted)) return wanted;
  const guess = nearest(wanted, names);
  throw new UsageError({
    what: "no such --database",
    value: wanted,
    remedy: guess ? `did you mean ${guess}?` : `use ${some}`,
  });
}
