// Opens a data set by name or path: a folder in any known layout, a question file, or an imported set.
import { existsSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { nearest, QuestionLoadError } from "../../../errors.ts";
import type { DataSet } from "../dataset.ts";
import { DATA_SET_NAMES } from "../names.ts";
import { findDatabaseFolder, findLayout, questionFiles } from "./layout.node.ts";
import { loadQuestions } from "./load.node.ts";
import { loadBird, loadSpider } from "./spider.node.ts";

/** Folder of imported data sets: $SQLENV_HOME/datasets, or sqlenv/datasets in the user's cache folder. */
export function dataSetsFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  if (env.SQLENV_HOME) return join(resolve(env.SQLENV_HOME), "datasets");
  return join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "sqlenv", "datasets");
}

/** Names of the imported data sets. */
export function importedDataSets(folder = dataSetsFolder()): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .map((entry) => entry.name)
    .sort();
}

export interface OpenDataSetOptions {
  /** Folder with the databases of a question file. @default databases/ or database/ beside it, or one folder up */
  readonly dbDir?: string | undefined;
  /** @default dataSetsFolder() */
  readonly imported?: string;
  /** Whether to append the evidence to BIRD's questions. @default true */
  readonly evidence?: boolean | undefined;
}

/**
 * Opens a folder, a question file or an imported data set, and checks every gold query.
 *
 * @example
 * const data = await openDataSet("spider"); // an imported name, a folder or a question file
 */
export async function openDataSet(
  nameOrPath: string,
  { dbDir, imported, evidence }: OpenDataSetOptions = {},
): Promise<DataSet> {
  const path = findDataSet(nameOrPath, imported);
  if (statSync(path).isFile()) return openFile(path, dbDir);
  const { layout, root } = findLayout(path);
  const dataset =
    layout === "spider"
      ? await loadSpider(root)
      : layout === "bird"
        ? await loadBird(root, { evidence })
        : await loadQuestions(questionFiles(root), dbDir ?? findDatabaseFolder(root)!);
  return { ...dataset, name: basename(resolve(path)) };
}

/** Resolves a name to an imported data set's folder; a path is returned unchanged. */
export function findDataSet(nameOrPath: string, imported = dataSetsFolder()): string {
  const names = importedDataSets(imported);
  if (names.includes(nameOrPath)) return join(imported, nameOrPath);
  if (existsSync(nameOrPath)) return nameOrPath;
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(nameOrPath))
    throw new QuestionLoadError(
      {
        what: "not a data set",
        value: nameOrPath,
        remedy: /^https?:/i.test(nameOrPath)
          ? `import it first: sqlenv data import ${nameOrPath}`
          : /^postgres/i.test(nameOrPath)
            ? "write questions about it first: sqlenv data make ADDRESS --out DIR"
            : "databases are SQLite files: export the tables to SQLite, and give a folder or a question file",
      },
      "unknown_dataset",
    );
  const isPath = /[\\/]|\.json$/.test(nameOrPath);
  const guess = nearest(nameOrPath, [...DATA_SET_NAMES, ...names]);
  throw new QuestionLoadError(
    {
      what: isPath ? "no such file or folder" : "no such data set",
      value: nameOrPath,
      remedy: guess ? `did you mean ${guess}?` : isPath ? "check the path" : "sqlenv data list shows all names",
    },
    "unknown_dataset",
  );
}

/** What to do with a database or a table that has no questions. */
export const NO_QUESTIONS =
  "a database alone has no questions: sqlenv data make writes some, or write them to a JSON file (docs/data.md)";

/** Whether a file is a database or a table, by its name. */
export function isDatabase(path: string): boolean {
  return /\.(?:sqlite3?|db|csv|tsv|parquet|xlsx|sql)$/i.test(path);
}

async function openFile(path: string, dbDir: string | undefined): Promise<DataSet> {
  if (!path.endsWith(".json")) {
    throw new QuestionLoadError({
      what: "not a folder or question file",
      value: path,
      remedy: isDatabase(path) ? NO_QUESTIONS : `if it is an archive: sqlenv data import ${path}`,
    });
  }
  const here = dirname(resolve(path));
  const databases = dbDir ?? findDatabaseFolder(here) ?? findDatabaseFolder(dirname(here));
  if (!databases) {
    throw new QuestionLoadError({
      what: "no databases found for the question file",
      value: path,
      remedy: "put them into databases/ beside it, or name their folder (--db-dir)",
    });
  }
  return loadQuestions(path, databases);
}
