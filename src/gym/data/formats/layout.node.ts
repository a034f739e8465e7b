// Detects a folder's layout (native, Spider or BIRD), also one or two levels deeper, as in many archives.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import type { Layout } from "../dataset.ts";
import { mentions } from "./load.node.ts";
import { birdParts, spiderFiles } from "./spider.node.ts";

export interface FoundLayout {
  readonly layout: Layout;
  /** Folder that contains the data set. */
  readonly root: string;
}

const MAX_DEPTH = 2;

/** Finds a data set in a folder; throws if there is none. */
export function findLayout(dir: string): FoundLayout {
  let level = [dir];
  for (let depth = 0; depth <= MAX_DEPTH; depth++) {
    for (const root of level) {
      const layout = detectLayout(root);
      if (layout) return { layout, root };
    }
    level = level.flatMap(subfolders);
  }
  throw new QuestionLoadError({
    what: "no data set found in the folder",
    value: dir,
    remedy:
      "it should hold questions/*.json with databases/ (ours), train_spider.json or dev.json with database/ (Spider), or dev.json or mini_dev_sqlite.json with dev_databases/ (BIRD)",
  });
}

/** Detects the layout of this folder; ignores nested folders. */
export function detectLayout(dir: string): Layout | undefined {
  if (birdParts(dir).length > 0) return "bird";
  if (questionFiles(dir).length > 0 && findDatabaseFolder(dir)) return "questions";
  if (findDatabaseFolder(dir) && spiderFiles(dir).length > 0) return "spider";
  return undefined;
}

/** Question files of the native layout: questions/*.json, or questions*.json in the folder itself. */
export function questionFiles(dir: string): string[] {
  const inside = join(dir, "questions");
  if (existsSync(inside)) return jsonFiles(inside);
  return jsonFiles(dir).filter((path) => /questions[^/\\]*\.json$/.test(path) && mentions(path, "question_text"));
}

/** Finds the database folder beside a question file or inside a data set's folder. */
export function findDatabaseFolder(dir: string): string | undefined {
  return ["databases", "database"].map((name) => join(dir, name)).find((path) => existsSync(path));
}

function jsonFiles(dir: string): string[] {
  const names = existsSync(dir) ? readdirSync(dir).filter((name) => name.endsWith(".json")) : [];
  // Training files come first, so that the order of questions does not depend on file names.
  return names
    .sort((a, b) => Number(b.includes("train")) - Number(a.includes("train")) || (a < b ? -1 : 1))
    .map((name) => join(dir, name));
}

function subfolders(dir: string): string[] {
  const isOurs = (name: string) => name !== "__MACOSX" && !name.startsWith(".");
  return readdirSync(dir, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && isOurs(entry.name))
    .map((entry) => join(dir, entry.name))
    .sort();
}

/** @deprecated use `detectLayout` and `findDatabaseFolder` */
export { detectLayout as layoutOf, findDatabaseFolder as databasesOf };
