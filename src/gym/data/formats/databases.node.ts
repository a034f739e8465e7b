// Finds the database files of a folder by name, in both usual layouts, and reads each when first needed.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf, QuestionLoadError } from "../../../errors.ts";
import { DatabasePool, isUtf16, type OpenOptions } from "../../sql/index.ts";

const EXTENSIONS = [".sqlite", ".sqlite3", ".db"];

export interface DatabaseFolder {
  readonly databases: DatabasePool;
  readonly file: (name: string) => Uint8Array;
}

/**
 * Maps names to paths of the databases in a folder: `<name>/<name>.sqlite` or `<name>.sqlite` (or .sqlite3, .db, in any
 * letter case).
 */
export function findDatabases(folder: string): Map<string, string> {
  const found = new Map<string, string>();
  const add = (name: string, path: string) => {
    if (name !== "" && !found.has(name) && isFile(path)) found.set(name, path);
  };
  for (const entry of list(folder)) {
    const path = join(folder, entry);
    const extension = extensionOf(entry);
    if (extension) add(entry.slice(0, -extension.length), path);
    else if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) {
      const inside = list(path).filter((file) => extensionOf(file) && file.replace(/\.[^.]*$/, "") === entry);
      const first = (file: string) => EXTENSIONS.indexOf(extensionOf(file)!);
      for (const file of inside.sort((one, other) => first(one) - first(other))) add(entry, join(path, file));
    }
  }
  return found;
}

function extensionOf(file: string): string | undefined {
  return EXTENSIONS.find((ending) => file.toLowerCase().endsWith(ending));
}

/** Makes a pool of the databases in one or more folders; if several have the same name, the first folder wins. */
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
  return { databases: new DatabasePool({ names: [...paths.keys()], read: file, ...options }), file };
}

/** Reads a database file. Refuses one whose newest changes are still in a write-ahead log beside it. */
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
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new QuestionLoadError({ what: "database file cannot be read", value: path, remedy: messageOf(cause), cause });
  }
  if (isUtf16(bytes)) {
    const remedy = `write it again in UTF-8 with: sqlite3 '${path}' .dump | sqlite3 new.sqlite`;
    throw new QuestionLoadError({ what: "database is encoded in UTF-16", value: path, remedy }, "database_utf16");
  }
  return bytes;
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
