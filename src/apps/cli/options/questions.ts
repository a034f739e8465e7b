// Which questions a command is about: options shared by eval and play.
import type { Command } from "commander";
import { nearest, UsageError } from "../../../errors.ts";
import { type DataSet, DIFFICULTIES, type Difficulty, SPLITS, type Split } from "../../../gym/data/index.ts";

export interface QuestionFlags {
  readonly data: string;
  readonly split?: Split;
  readonly difficulty?: Difficulty[];
  readonly database?: string[];
}

/** Adds --data, --difficulty and --database. */
export function addQuestionOptions(command: Command): Command {
  return command
    .option("--data <name>", "data set: bundled, spider10[:path], an imported name or a path", "bundled")
    .option("--difficulty <list>", `some of ${DIFFICULTIES.join(",")}`, listDifficulties)
    .option("--database <list>", "only questions on these databases", (text: string) => text.split(","));
}

/** Difficulties between commas. */
export function listDifficulties(text: string): Difficulty[] {
  return listOf("--difficulty", text, DIFFICULTIES);
}

/** A split by its name. */
export function splitNamed(text: string): Split {
  return one("--split", text, SPLITS);
}

/** Words between commas, each one of those allowed. */
export function listOf<T extends string>(option: string, text: string, allowed: readonly T[]): T[] {
  return text.split(",").map((word) => one(option, word.trim(), allowed));
}

/** Refuses databases the set does not have. */
export function checkDatabases(names: readonly string[] | undefined, { databases }: DataSet): void {
  for (const name of names ?? []) one("--database", name, databases.names);
}

/** Refuses a split that the set has no questions in. */
export function checkSplit(split: Split, { questions, name }: DataSet): void {
  if (questions.some((question) => question.split === split)) return;
  const other = split === "eval" ? "train" : "eval";
  throw new UsageError({
    what: `the data set has no questions of the split ${split}, but ${questions.length} of ${other}`,
    value: name,
    remedy: `give --split ${other}, or mark questions with "split": "${split}", or put them into a file named questions_${split}.json`,
  });
}

function one<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((candidate) => candidate === text);
  if (found !== undefined) return found;
  const guess = nearest(text, allowed);
  throw new UsageError({
    what: `${option} cannot be`,
    value: text,
    remedy: guess ? `did you mean ${guess}?` : `use ${allowed.slice(0, 12).join(", ")}`,
  });
}
