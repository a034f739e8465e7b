// Which questions a command is about: options shared by eval and play.
import type { Command } from "commander";
import { nearest, UsageError } from "../errors.ts";
import { type DataSet, DIFFICULTIES, type Difficulty, SPLITS, type Split } from "../questions/index.ts";

export interface FilterFlags {
  readonly data: string;
  readonly split?: Split;
  readonly difficulty?: Difficulty[];
  readonly database?: string[];
}

/** Adds --data, --difficulty and --database. */
export function addFilterOptions(command: Command): Command {
  return command
    .option("--data <name>", "data set: bundled, spider10[:path], an imported name or a path", "bundled")
    .option("--difficulty <list>", `some of ${DIFFICULTIES.join(",")}`, (text: string) =>
      listOf("--difficulty", text, DIFFICULTIES),
    )
    .option("--database <list>", "only questions on these databases", (text: string) => text.split(","));
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
