// SQLite files as sources: one file, or all files of a folder.
import { closeSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import { findDatabases, readDatabaseFile } from "../../data/formats/databases.node.ts";
import type { SourceDatabase } from "../make.ts";
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

/** Paths of the SQLite files of a folder, or of its folders of the same name, by database name. */
export function sqliteFiles(folder: string): Map<string, string> {
  const found = findDatabases(folder);
  if (found.size > 0) return found;
  const inside = join(folder, "databases");
  return statSync(inside, { throwIfNoEntry: false })?.isDirectory() && readdirSync(inside).length > 0
    ? findDatabases(inside)
    : found;
}

/** Reads one SQLite file. */
export function readSqlite(path: string, name = basename(resolve(path)).replace(EXTENSION, "")): SourceDatabase {
  const { size } = statSync(path);
  if (size > MAX_DATABASE_BYTES) throw tooLarge(path, size);
  if (size === 0) throw new QuestionLoadError({ what: "the file is empty", value: path, remedy: "check the path" });
  return { name: databaseName(name), bytes: readDatabaseFile(path) };
}

/** A name that is safe as a folder and in question ids. */
export function databaseName(name: string): string {
  const safe = name
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}_-]+/gu, "_")
    .replace(/^[_-]+|_+$/g, "");
  return safe === "" ? "database" : safe.slice(0, 60);
}
