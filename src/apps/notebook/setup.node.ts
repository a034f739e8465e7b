// A notebook's setup: the machine, the project's folder, and the data set of its settings.
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { DataSet } from "../../gym/data/index.ts";
import { resolveDataSet } from "../../gym/datasets.node.ts";
import type { GRPOConfig } from "../../rl/index.ts";

/** This package's folder. */
export const PROJECT_ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/[\\/]$/, "");

/** For example "Deno 2.9.6, linux x64, 2 cores". */
export function machine(): string {
  const { deno, node } = process.versions as { deno?: string; node: string };
  const runtime = deno ? `Deno ${deno}` : `Node ${node}`;
  return `${runtime}, ${process.platform} ${process.arch}, ${availableParallelism()} cores`;
}

/** Loads the data set that a config names. */
export function questionsOf({ questions_path, db_dir }: GRPOConfig): Promise<DataSet> {
  return resolveDataSet(questions_path, { dbDir: db_dir === "bundled" ? undefined : db_dir });
}

/** "bundled: 473 training and 203 evaluation questions" */
export function countOf({ name, questions }: DataSet): string {
  const count = (split: string) => questions.filter((question) => question.split === split).length;
  return `${name}: ${count("train")} training and ${count("eval")} evaluation questions`;
}
