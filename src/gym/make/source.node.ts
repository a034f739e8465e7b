// Finds out what a source is, and reads it: SQLite files, a folder of them, a folder of CSV files, PostgreSQL.
import { statSync } from "node:fs";
import { QuestionLoadError } from "../../errors.ts";
import type { SourceDatabase } from "./make.ts";
import { isSqliteFile, readSqlite, sqliteFiles } from "./sources/sqlite.node.ts";

export interface SourceOptions {
  readonly seed: number;
}

/** Reads every source; throws an error with one clear line for anything that cannot be read. */
export async function readSources(
  sources: readonly string[],
  options: SourceOptions,
): Promise<readonly SourceDatabase[]> {
  const found: SourceDatabase[] = [];
  for (const source of sources) found.push(...(await readSource(source, options)));
  const names = new Set<string>();
  for (const { name } of found) {
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

async function readSource(source: string, _options: SourceOptions): Promise<readonly SourceDatabase[]> {
  const stats = statSync(source, { throwIfNoEntry: false });
  if (!stats) throw new QuestionLoadError({ what: "no such file or folder", value: source, remedy: "check the path" });
  if (stats.isDirectory()) {
    const files = [...sqliteFiles(source)]
      .filter(([, path]) => isSqliteFile(path))
      .sort(([a], [b]) => (a < b ? -1 : 1));
    if (files.length === 0) {
      throw new QuestionLoadError({
        what: "the folder has no SQLite and no CSV files",
        value: source,
        remedy: "give a SQLite file, or a folder of .sqlite, .db or .csv files",
      });
    }
    return files.map(([name, path]) => readSqlite(path, name));
  }
  return [readSqlite(source)];
}
