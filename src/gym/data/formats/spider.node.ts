// Loads Spider and BIRD in their published folder layouts. https://yale-lily.github.io/spider, https://bird-bench.github.io
import { existsSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import type { DataSet } from "../dataset.ts";
import { assemble } from "./build-questions.ts";
import { type DatabaseFolder, databaseFolder } from "./databases.node.ts";
import { mentions, readFiles, readText } from "./load.node.ts";
import { type ParseOptions, parseBird, parseSpider, type QuestionFile } from "./parse-questions.ts";

// Gold queries of both sets use double quotes for strings.
const PUBLISHED = { doubleQuotedStrings: true } as const;

/**
 * Loads a Spider folder: train*.json for training, dev.json for evaluation, databases under database/.
 *
 * @example
 * const spider = await loadSpider("spider/");
 * console.log(spider.questions.filter(({ split }) => split === "eval").length);
 */
export async function loadSpider(dir: string): Promise<DataSet> {
  const { drafts, rejected, databases, file } = readSpider(dir);
  return assemble(basename(resolve(dir)), drafts, databases, { rejected, file, layout: "spider" });
}

/** Reads the questions of a Spider folder without checking them, and its databases. */
export function readSpider(dir: string): QuestionFile & DatabaseFolder {
  const folders = ["database", "databases"].map((name) => join(dir, name)).filter((path) => existsSync(path));
  const questions = readFiles(need(dir, spiderFiles(dir), "train_spider.json, train.json or dev.json"), parseSpider);
  return { ...questions, ...databaseFolder(need(dir, folders, "database/"), PUBLISHED) };
}

/** Finds the question files of a Spider folder; if the usual ones are missing, any JSON file with such questions. */
export function spiderFiles(dir: string): string[] {
  const here = (names: readonly string[]) => names.map((name) => join(dir, name)).filter((path) => existsSync(path));
  const parts = here(["train_spider.json", "train_others.json"]);
  // If both exist, train.json repeats the partial files.
  const files = [...(parts.length > 0 ? parts : here(["train.json"])), ...here(["dev.json"])];
  if (files.length > 0 || !existsSync(dir)) return files;
  const isPool = (path: string) => path.endsWith(".json") && mentions(path, "db_id") && mentions(path, "query");
  return readdirSync(dir)
    .sort()
    .map((name) => join(dir, name))
    .filter(isPool);
}

export interface BirdOptions {
  /** Whether to append the evidence to questions. @default true */
  readonly evidence?: boolean | undefined;
}

/**
 * Loads a BIRD folder, or one that contains its train/ and dev/ folders. Uses BIRD's difficulty if present.
 *
 * @example
 * const bird = await loadBird("bird/", { evidence: false });
 */
export async function loadBird(dir: string, { evidence = true }: BirdOptions = {}): Promise<DataSet> {
  const parts = birdParts(dir);
  const files = need(
    dir,
    parts.map((part) => part.questions),
    "train.json with train_databases/, or dev.json or mini_dev_sqlite.json with dev_databases/",
  );
  const { drafts, rejected } = readFiles(files, (json, options) => parseBird(json, { ...options, evidence }));
  const { databases, file } = databaseFolder(
    parts.map((part) => part.databases),
    PUBLISHED,
  );
  return assemble(basename(resolve(dir)), drafts, databases, { rejected, file, layout: "bird" });
}

/**
 * Replaces the evaluation questions of a data set by those of a file in Spider's or BIRD's format: Spider-Syn and
 * Spider-DK ask other questions about Spider's databases.
 */
export async function withQuestionsFrom(
  data: DataSet,
  path: string,
  { evidence = true }: BirdOptions = {},
): Promise<DataSet> {
  const file = basename(path);
  const isBird = mentions(path, "SQL");
  const parse = (json: string, options: ParseOptions): QuestionFile =>
    isBird ? parseBird(json, { ...options, evidence }) : parseSpider(json, options);
  const { drafts, rejected } = parse(readText(path), { file, split: "eval" });
  const asked = drafts.map((draft) => ({ ...draft, split: "eval" as const }));
  const { layout, file: read, databases } = data;
  const name = `${data.name}+${file.replace(/\.json$/, "")}`;
  const made = await assemble(name, asked, databases, {
    rejected,
    ...(layout && { layout }),
    ...(read && { file: read }),
  });
  return { ...made, questions: [...data.questions.filter(({ split }) => split === "train"), ...made.questions] };
}

/** Finds BIRD's train and dev sets in a folder. Mini-Dev has other questions about the dev databases. */
export function birdParts(dir: string): { readonly questions: string; readonly databases: string }[] {
  const names = { train: ["train.json"], dev: ["dev.json", "mini_dev_sqlite.json"] };
  return Object.entries(names).flatMap(([split, files]) =>
    [dir, join(dir, split)]
      .flatMap((root) =>
        files.map((file) => ({ questions: join(root, file), databases: join(root, `${split}_databases`) })),
      )
      .filter(({ questions, databases }) => existsSync(questions) && existsSync(databases))
      .slice(0, 1),
  );
}

function need(dir: string, found: string[], expected: string): string[] {
  if (found.length > 0) return found;
  throw new QuestionLoadError({
    what: "folder lacks the expected files",
    value: dir,
    remedy: `it should hold ${expected}`,
  });
}
