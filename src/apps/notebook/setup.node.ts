// A notebook's files and machine: the project's folder, the data set of its settings, and the trained model.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DataSet } from "../../gym/data/index.ts";
import { resolveDataSet } from "../../gym/datasets.node.ts";
import { rulesOf } from "../../gym/env/index.ts";
import type { LoadedModel } from "../../lm/engine/index.node.ts";
import type { GRPOConfig } from "../../rl/index.ts";
import { writeModelMetadata } from "../../rl/run/model-metadata.node.ts";

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

/** sha256 of a model folder's weights, in hexadecimal. */
export function weightsSha256(folder: string): string {
  return createHash("sha256")
    .update(readFileSync(join(folder, "model.safetensors")))
    .digest("hex");
}

/** Saves a trained model in Hugging Face layout, with the prompt and rules that `play` and `eval` need. */
export async function saveTrainedModel({ engine }: LoadedModel, config: GRPOConfig, folder: string): Promise<void> {
  await engine.saveModel(folder);
  const { prompt, shots, eval_step_budget, step_budget } = config;
  writeModelMetadata(folder, { prompt, shots }, rulesOf(config), eval_step_budget ?? step_budget);
}
