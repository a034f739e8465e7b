// --data, --difficulty, --database and --split: which questions a command uses.
import type { Command } from "commander";
import { nearest, UsageError } from "../../../errors.ts";
import { type DataSet, DIFFICULTIES, type Difficulty, SPLITS, type Split } from "../../../gym/data/index.ts";
import { DATA, DB_DIR } from "./common.ts";

export interface QuestionFlags {
  readonly data: string;
  readonly dbDir?: string;
  readonly split?: Split;
  readonly difficulty?: Difficulty[];
  readonly database?: string[];
}

/** Adds --data, --db-dir, --difficulty and --database. */
export function addQuestionOptions(command: Command): Command {
  return addFilterOptions(
    command
      .optionsGroup("Question options:")
      .option("--data <name>", DATA, "bundled")
      .option("--db-dir <folder>", DB_DIR),
  );
}

/** Adds --difficulty and --database. */
export function addFilterOptions(command: Command): Command {
  return command
    .option("--difficulty <list>", `only these difficulties: ${DIFFICULTIES.join(",")}`, (text: string) =>
      listOf("--difficulty", text, DIFFICULTIES),
    )
    .option("--database <list>", "only questions on these databases", (text: string) => text.split(","));
}

/** Parses --split. */
export function splitNamed(text: string): Split {
  return one("--split", text, SPLITS);
}

/** Parses a comma-separated list of allowed values. */
export function listOf<T extends string>(option: string, text: string, allowed: readonly T[]): T[] {
  return text.split(",").map((word) => one(option, word.trim(), allowed));
}

/** Refuses databases that are not in the data set. */
export function checkDatabases(names: readonly string[] | undefined, { databases }: DataSet): void {
  for (const name of names ?? []) one("--database", name, databases.names);
}

/** Refuses a split without questions. */
export function checkSplit(split: Split, { questions, name }: DataSet): void {
  if (questions.some((question) => question.split === split)) return;
  const other = split === "eval" ? "train" : "eval";
  throw new UsageError({
    what: `the data set has no ${split} questions, only ${questions.length} ${other} ${questions.length === 1 ? "question" : "questions"}`,
    value: name,
    remedy: `use --split ${other}, mark questions with "split": "${split}", or put them into questions_${split}.json`,
  });
}

function one<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === text);
  if (found !== undefined) return found;
  const guess = nearest(text, allowed);
  throw new UsageError({
    what: `invalid ${option}`,
    value: text,
    remedy: guess ? `did you mean ${guess}?` : `use ${allowed.slice(0, 12).join(", ")}`,
  });
}
