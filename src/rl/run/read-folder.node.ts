// Reads a run's folder, which a training may still be writing: its records, with errors that name file and line.
import { createReadStream, existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { messageOf, SqlEnvError, UsageError } from "../../errors.ts";
import { renameSettings } from "../config.ts";
import { CONFIG_FILE, checkVersion } from "./config-file.node.ts";
import { GOLD_FILE } from "./gold.ts";
import {
  type Comparison,
  comparisonSchema,
  type EpisodeLine,
  type EvaluationEpisodes,
  episodeLineSchema,
  evaluationEpisodeSchema,
  type GoldAnswers,
  goldAnswersSchema,
  type MetricLine,
  metricLineSchema,
  type TimingLine,
  type TrainingResult,
  timingLineSchema,
  trainingResultSchema,
  type Warning,
  warningSchema,
} from "./records.ts";

/** All records of a run except its episodes, which `readEpisodes` streams. */
export interface RunFolderRecords {
  readonly folder: string;
  /** The folder's name. */
  readonly run: string;
  readonly config: Readonly<Record<string, unknown>> | null;
  readonly metrics: readonly MetricLine[];
  readonly timings: readonly TimingLine[];
  readonly warnings: readonly Warning[];
  /** Null until the training ends. */
  readonly result: TrainingResult | null;
  readonly comparison: Comparison | null;
  /** Null until the training ends, and in folders of versions that did not keep it. */
  readonly evaluation: EvaluationEpisodes | null;
  /** Null in folders of versions that did not keep it. */
  readonly gold: GoldAnswers | null;
}

/** Files that identify a run's folder. */
export const RUN_FILES = [
  "config.yaml",
  "metrics.jsonl",
  "timings.jsonl",
  "warnings.jsonl",
  "results.json",
  "comparison.json",
];

/** Reads a run's folder; missing files are empty or null. An incomplete last line is ignored. */
export async function readRunFolder(folder: string): Promise<RunFolderRecords> {
  if (!existsSync(folder) || !statSync(folder).isDirectory()) {
    throw new UsageError({ what: "no such run", value: folder, remedy: "name a folder that a training wrote" });
  }
  if (!RUN_FILES.some((file) => existsSync(join(folder, file)))) {
    throw new UsageError({
      what: "not a run's folder",
      value: folder,
      remedy: `a run has at least one of ${RUN_FILES.join(", ")}`,
    });
  }
  return {
    folder,
    run: basename(resolve(folder)),
    config: readConfig(folder),
    metrics: await readLines(folder, "metrics.jsonl", metricLineSchema),
    timings: await readLines(folder, "timings.jsonl", timingLineSchema),
    warnings: await readLines(folder, "warnings.jsonl", warningSchema),
    result: readJson(folder, "results.json", trainingResultSchema),
    comparison: readJson(folder, "comparison.json", comparisonSchema),
    evaluation: await readEvaluation(folder),
    gold: readJson(folder, GOLD_FILE, goldAnswersSchema),
  };
}

/** The greedy episodes of both evaluations; null unless both files are there. */
async function readEvaluation(folder: string): Promise<EvaluationEpisodes | null> {
  const files = { before: "evaluation-before.jsonl", after: "evaluation-after.jsonl" } as const;
  if (!Object.values(files).every((file) => existsSync(join(folder, file)))) return null;
  const read = (file: string) => readLines(folder, file, evaluationEpisodeSchema);
  return { before: await read(files.before), after: await read(files.after) };
}

/** The training's episodes, in order. */
export async function* readEpisodes(folder: string): AsyncGenerator<EpisodeLine> {
  yield* linesOf(folder, "episodes.jsonl", episodeLineSchema);
}

/** The settings of config.yaml, by today's names; null if there is none. */
export function readConfig(folder: string): Readonly<Record<string, unknown>> | null {
  const file = join(folder, CONFIG_FILE);
  if (!existsSync(file)) return null;
  let parsed: Record<string, unknown>;
  try {
    parsed = z.record(z.string(), z.unknown()).parse(parseYaml(readFileSync(file, "utf8")));
  } catch (cause) {
    throw broken(file, cause instanceof z.ZodError ? "not a list of settings" : messageOf(cause), cause);
  }
  const { version, ...settings } = parsed;
  checkVersion(version, file);
  return renameSettings(settings).settings;
}

function readJson<T>(folder: string, name: string, schema: z.ZodType<T>): T | null {
  const file = join(folder, name);
  if (!existsSync(file)) return null;
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    throw broken(file, cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause), cause);
  }
}

async function readLines<T>(folder: string, name: string, schema: z.ZodType<T>): Promise<T[]> {
  const lines: T[] = [];
  for await (const line of linesOf(folder, name, schema)) lines.push(line);
  return lines;
}

/** Streams a file's records; a broken line is an error unless it is the last one, which a crash may have truncated. */
async function* linesOf<T>(folder: string, name: string, schema: z.ZodType<T>): AsyncGenerator<T> {
  const file = join(folder, name);
  if (!existsSync(file)) return;
  let [number, truncatedLine] = [0, 0];
  let fault: unknown;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    number++;
    if (line.trim() === "") continue;
    if (truncatedLine > 0) break;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      [truncatedLine, fault] = [number, cause];
      continue;
    }
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw broken(`${file}, line ${number}`, z.prettifyError(parsed.error), parsed.error);
    yield parsed.data;
  }
  if (truncatedLine > 0 && number > truncatedLine)
    throw broken(`${file}, line ${truncatedLine}`, messageOf(fault), fault);
}

function broken(where: string, why: string, cause: unknown): SqlEnvError {
  const reason = why.replace(/\s+/g, " ");
  const remedy = "repair or remove it, then run the report again";
  return new SqlEnvError("run_broken", { what: `${where} cannot be read`, value: reason, remedy, cause });
}
