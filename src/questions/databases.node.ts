// Database files of a folder: found by name in both usual layouts, read when first needed.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf, QuestionLoadError } from "../errors.ts";
import { DatabaseShelf, type OpenOptions } from "../sql/index.ts";

const EXTENSIONS = [".sqlite", ".sqlite3", ".db"];

export interface DatabaseFolder {
  readonly databases: DatabaseShelf;
  readonly file: (name: string) => Uint8Array;
}

/** Paths of the databases in a folder, as `<name>/<name>.sqlite` or `<name>.sqlite` (also .sqlite3, .db), by name. */
export function findDatabases(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const entry of list(folder)) {
    const extension = EXTENSIONS.find((ending) => entry.endsWith(ending));
    const candidates = extension
      ? [[entry.slice(0, -extension.length), join(folder, entry)] as const]
      : EXTENSIONS.map((ending) => [entry, join(folder, entry, entry + ending)] as const);
    for (const [name, path] of candidates) if (name !== "" && !found.has(name) && isFile(path)) found.set(name, path);
  }
  return found;
}

/** A shelf over the databases of one or more folders; the first folder that has a name wins. */
export function databaseFolder(folders: string | readonly string[], options: OpenOptions = {}): DatabaseFolder {
  const paths = new Map<string, string>();
  for (const folder of [folders].flat()) {
    for (const [name, path] of findDatabases(folder)) if (!paths.has(name)) paths.set(name, path);
  }
  if (paths.size === 0) {
    throw new QuestionLoadError({
      what: "no databases found",
      value: [folders].flat().join(", "),
      remedy: "the folder should hold <name>/<name>.sqlite or <name>.sqlite files",
    });
  }
  const file = (name: string) => readDatabaseFile(paths.get(name)!);
  return { databases: new DatabaseShelf({ names: [...paths.keys()], read: file, ...options }), file };
}

/** The bytes of a database file, refused when its newest changes lie in a write-ahead log beside it. */
export function readDatabaseFile(path: string): Uint8Array {
  if (isFile(`${path}-wal`) && statSync(`${path}-wal`).size > 0) {
    throw new QuestionLoadError(
      {
        what: "database has changes in a write-ahead log that are not in its file",
        value: `${path}-wal`,
        remedy: `fold them in with: sqlite3 '${path}' 'PRAGMA wal_checkpoint(TRUNCATE)'`,
      },
      "database_wal",
    );
  }
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new QuestionLoadError({ what: "database file cannot be read", value: path, remedy: messageOf(cause), cause });
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (cause) {
    throw new QuestionLoadError({
      what: "database folder cannot be read",
      value: folder,
      remedy: `check the path (${(cause as NodeJS.ErrnoException).code ?? messageOf(cause)})`,
      cause,
    });
  }
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
