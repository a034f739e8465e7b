// Loads question files in the native JSON format, with their databases.
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { basename } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import type { DataSet } from "../dataset.ts";
import type { Split } from "../question.ts";
import { assemble } from "./build-questions.ts";
import { databaseFolder } from "./databases.node.ts";
import { type ParseOptions, parseQuestions, type QuestionFile } from "./parse-questions.ts";

export interface LoadOptions {
  /** @default the first file's name */
  readonly name?: string;
  /** Read "text" in double quotes as a string, in gold queries and in players' queries. @default false */
  readonly doubleQuotedStrings?: boolean;
}

/**
 * Loads one or more question files about the databases in `dbDir`; broken files throw, broken questions are rejected.
 *
 * @example
 * const mine = await loadQuestions("questions.json", "databases/");
 * console.log(mine.questions.length, mine.rejected.length);
 */
export async function loadQuestions(
  paths: string | readonly string[],
  dbDir: string,
  { name, doubleQuotedStrings = false }: LoadOptions = {},
): Promise<DataSet> {
  const files = [paths].flat();
  if (files.length === 0) {
    throw new QuestionLoadError({ what: "no question file given", remedy: "name at least one JSON file" });
  }
  const { drafts, rejected } = readFiles(files, parseQuestions);
  const { databases, file } = databaseFolder(dbDir, { doubleQuotedStrings });
  return assemble(name ?? basename(files[0]!, ".json"), drafts, databases, { rejected, file });
}

/** Reads and joins question files. A record without a split gets the one its file's name implies. */
export function readFiles(
  paths: readonly string[],
  parse: (json: string, options: ParseOptions) => QuestionFile,
): QuestionFile {
  const parts = paths.map((path) => {
    const file = basename(path);
    try {
      return parse(readText(path), { file, split: splitOfFile(path) });
    } catch (error) {
      // Parse errors name the record's file; replace it with the path if the whole file is unreadable.
      if (!(error instanceof QuestionLoadError) || error.value !== file) throw error;
      const { what, remedy, code, cause } = error;
      throw new QuestionLoadError({ what, value: path, remedy, cause }, code);
    }
  });
  return { drafts: parts.flatMap((part) => part.drafts), rejected: parts.flatMap((part) => part.rejected) };
}

/**
 * Infers the split from a file name: eval, dev, test, validation, Spider-DK, Spider-Syn and Spider-Realistic are
 * "eval"; others "train".
 */
export function splitOfFile(path: string): Split {
  return /(?:^|[^a-z])(?:eval|dev|test|val|validation|spider-(?:dk|realistic|syn))(?:[^a-z]|$)/i.test(basename(path))
    ? "eval"
    : "train";
}

const LOOK_BYTES = 65_536; // enough for the first record of every known format; files may be huge

/** Whether a key occurs near the beginning of a JSON file. */
export function mentions(path: string, key: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  const file = openSync(path, "r");
  try {
    const start = Buffer.alloc(LOOK_BYTES);
    return start.toString("utf8", 0, readSync(file, start)).includes(`"${key}"`);
  } finally {
    closeSync(file);
  }
}

/** Reads a question file; throws an error with its path if it is missing. */
export function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    throw new QuestionLoadError({
      what: code === "ENOENT" ? "question file not found" : "question file cannot be read",
      value: path,
      remedy: code === "ENOENT" ? "check the path" : `check its permissions and kind (${code})`,
      cause,
    });
  }
}
