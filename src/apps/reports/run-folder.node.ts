// A run's folder: reads its records, with errors that name file and line, and writes its pages.
import { createReadStream, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { messageOf, SqlEnvError, UsageError } from "../../errors.ts";
import type { Comparison, EpisodeLine, MetricLine, TimingLine, TrainingResult, Warning } from "../../rl/run/records.ts";
import { type ActionStats, countActions } from "./action-stats.ts";
import { comparisonHtml, comparisonMarkdown } from "./comparison.ts";
import { headline } from "./evaluation-summary.ts";
import { learningCurve } from "./learning-curve.ts";
import { blogMarkdown } from "./model-card.ts";
import { svgToPng } from "./png.node.ts";
import { type RunRecords, runPage, subtitleOf } from "./run-page.ts";
import {
  comparisonSchema,
  episodeSchema,
  metricSchema,
  resultSchema,
  timingSchema,
  warningSchema,
} from "./run-schemas.ts";

/** All records of a run except its episodes, which are only counted. */
export interface Run extends Required<RunRecords> {
  readonly folder: string;
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
export async function readRun(folder: string): Promise<Run> {
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
  const result = readJson(folder, "results.json", resultSchema) as TrainingResult | null;
  return {
    folder,
    run: basename(resolve(folder)),
    config: readConfig(folder),
    metrics: await readLines<MetricLine>(folder, "metrics.jsonl", metricSchema),
    timings: await readLines<TimingLine>(folder, "timings.jsonl", timingSchema),
    warnings: await readLines<Warning>(folder, "warnings.jsonl", warningSchema),
    result,
    comparison: readJson(folder, "comparison.json", comparisonSchema) as Comparison | null,
    habits: await readHabits(folder),
  };
}

/** The training's episodes, in order. */
export async function* readEpisodes(folder: string): AsyncGenerator<EpisodeLine> {
  yield* linesOf<EpisodeLine>(folder, "episodes.jsonl", episodeSchema);
}

export interface WrittenReport {
  /** Paths of the written files. */
  readonly files: readonly string[];
  /** The result in one line; null before the training ends. */
  readonly headline: string | null;
}

/** Writes learning_curve.svg and .png and report.html; comparison.html, comparison.md and summary.md if there are records for them. */
export async function writeReport(run: string | Run): Promise<WrittenReport> {
  if (typeof run === "string") return writeReport(await readRun(run));
  const { folder, metrics, comparison, result } = run;
  const curve = learningCurve(metrics, { title: run.run, subtitle: subtitleOf(run), random: result?.random });
  const pages: Record<string, string | Uint8Array> = {
    "report.html": runPage(run),
    "learning_curve.svg": curve,
    "learning_curve.png": await svgToPng(curve),
    ...(comparison && {
      "comparison.html": comparisonHtml(comparison, { title: `${run.run}: the same questions, side by side` }),
      "comparison.md": comparisonMarkdown(comparison),
    }),
    ...(result && { "summary.md": blogMarkdown({ result, comparison }) }),
  };
  const files = Object.entries(pages).map(([name, content]) => {
    const file = join(folder, name);
    writeFileSync(file, content);
    return file;
  });
  return { files, headline: result ? headline(result) : null };
}

async function readHabits(folder: string): Promise<ActionStats[]> {
  return countActions(readEpisodes(folder));
}

/** The settings of config.yaml; null if there is none. */
export function readConfig(folder: string): Readonly<Record<string, unknown>> | null {
  const file = join(folder, "config.yaml");
  if (!existsSync(file)) return null;
  try {
    return z.record(z.string(), z.unknown()).parse(parseYaml(readFileSync(file, "utf8")));
  } catch (cause) {
    throw broken(file, cause instanceof z.ZodError ? "not a list of settings" : messageOf(cause), cause);
  }
}

function readJson(folder: string, name: string, schema: z.ZodType): unknown {
  const file = join(folder, name);
  if (!existsSync(file)) return null;
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    throw broken(file, cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause), cause);
  }
}

async function readLines<T>(folder: string, name: string, schema: z.ZodType): Promise<T[]> {
  const lines: T[] = [];
  for await (const line of linesOf<T>(folder, name, schema)) lines.push(line);
  return lines;
}

/** Streams a file's records; a broken line is an error unless it is the last one, which a crash may have truncated. */
async function* linesOf<T>(folder: string, name: string, schema: z.ZodType): AsyncGenerator<T> {
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
    yield value as T;
  }
  if (truncatedLine > 0 && number > truncatedLine)
    throw broken(`${file}, line ${truncatedLine}`, messageOf(fault), fault);
}

function broken(where: string, why: string, cause: unknown): SqlEnvError {
  const reason = why.replace(/\s+/g, " ");
  const remedy = "repair or remove it, then run the report again";
  return new SqlEnvError("run_broken", { what: `${where} cannot be read`, value: reason, remedy, cause });
}
