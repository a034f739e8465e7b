// Which model `sqlenv ask` takes if none is named: one trained on this database, else a pretrained one that is cached.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { UsageError } from "../../../errors.ts";
import { findModel } from "../../../lm/engine/index.node.ts";
import { resumedConfig } from "../../../rl/run/config-file.node.ts";
import { readInputs } from "../../../rl/run/inputs.node.ts";
import type { AskedDatabase } from "./ask-data.ts";

/** A model, and why it was chosen. */
export interface Choice {
  readonly model: string;
  readonly reason: string;
}

/** Pretrained models that follow instructions, the best first. Smaller ones answer next to nothing untrained. */
const PRETRAINED = [
  "Qwen/Qwen2.5-Coder-1.5B-Instruct",
  "Qwen/Qwen3-1.7B",
  "meta-llama/Llama-3.2-1B-Instruct",
  "Qwen/Qwen3-0.6B",
  "Qwen/Qwen2.5-Coder-0.5B-Instruct",
];

/** The models to try, in order: more than one only if the first may be too large for this machine. */
export function chooseModels(asked: AskedDatabase, runs = "runs"): readonly [Choice, ...Choice[]] {
  const trained = chooseRun(asked, runs);
  if (trained) return [trained];
  const [first, ...others] = PRETRAINED.filter((name) => findModel(name) !== undefined).map((model) => ({
    model,
    reason: `a pretrained model in the Hub's cache; no training in ${runs}/ used this database`,
  }));
  if (first) return [first, ...others];
  throw new UsageError({
    what: `no model to ask: no finished training in ${runs}/ used this database, and the Hub's cache has no pretrained model`,
    remedy: `name one with --model (ollama:NAME, Qwen/Qwen3-0.6B …), or train one: sqlenv data make ${asked.source} --out DIR, then sqlenv train --data DIR`,
  });
}

/** Why a training fits the database, the best reason first. */
const KNOWS = [
  "the newest training on this database",
  "the newest training on this data set",
  "the newest training on a database of this name, which has changed since",
] as const;

function chooseRun(asked: AskedDatabase, runs: string): Choice | undefined {
  const sum = asked.file && createHash("sha256").update(asked.file()).digest("hex");
  const knowing = finishedRuns(runs).flatMap(({ run, finished }) => {
    const knows = knowledgeOf(run, asked, sum);
    return knows === -1 ? [] : [{ run, finished, knows }];
  });
  const [best] = knowing.sort((a, b) => a.knows - b.knows || b.finished - a.finished);
  return best && { model: best.run, reason: KNOWS[best.knows]! };
}

/** The index in KNOWS; -1 if the training has nothing to do with the database. */
function knowledgeOf(run: string, { source, name }: AskedDatabase, sum: string | undefined): number {
  const databases = readInputs(run)?.databases ?? {};
  if (sum !== undefined && Object.values(databases).includes(sum)) return 0;
  const { questions_path } = resumedConfig(run);
  if (questions_path === source || resolve(questions_path) === resolve(source)) return 1;
  return Object.hasOwn(databases, name) ? 2 : -1;
}

/** Runs with results and a trained model for SQL. */
function finishedRuns(runs: string): { readonly run: string; readonly finished: number }[] {
  if (!statSync(runs, { throwIfNoEntry: false })?.isDirectory()) return [];
  return readdirSync(runs).flatMap((name) => {
    const run = join(runs, name);
    if (!existsSync(join(run, "results.json")) || !isSqlRun(run)) return [];
    return [{ run, finished: statSync(join(run, "results.json")).mtimeMs }];
  });
}

/** Whether a run has a trained model, and settings that this version reads, and its environment is SQL. */
function isSqlRun(run: string): boolean {
  if (!existsSync(join(run, "model", "config.json"))) return false;
  try {
    return resumedConfig(run).env === null;
  } catch {
    return false; // not a run, of another version, or trained in an environment of its own
  }
}
