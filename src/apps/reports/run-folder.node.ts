// A run's folder: its records read, with errors that name file and line, and its pages written.
import { createReadStream, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { messageOf, SqlEnvError, UsageError } from "../../errors.ts";
import type { Comparison, EpisodeLine, MetricLine, TimingLine, TrainingResult, Warning } from "../../rl/run/records.ts";
import { type Habits, habitsOf } from "./action-stats.ts";
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

/** All records of a run but its episodes, of which only counts are kept. */
export interface Run extends Required<RunRecords> {
  readonly folder: string;
}

/** Files by which a run's folder is known. */
export const RUN_FILES = [
  "config.yaml",
  "metrics.jsonl",
  "timings.jsonl",
  "warnings.jsonl",
  "results.json",
  "comparison.json",
];

/** Reads a run's folder; files that are not there yet are empty or null. A last line that was being written is left out. */
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

/** The training's episodes, one after the other. */
export async function* readEpisodes(folder: string): AsyncGenerator<EpisodeLine> {
  yield* linesOf<EpisodeLine>(folder, "episodes.jsonl", episodeSchema);
}

export interface WrittenReport {
  /** Paths of what was written. */
  readonly files: readonly string[];
  /** What improved, in one line; null before the end of the training. */
  readonly headline: string | null;
}

/** Writes learning_curve.svg and .png and report.html; comparison.html and .md, and summary.md, once there are records for them. */
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

async function readHabits(folder: string): Promise<Habits[]> {
  return habitsOf(readEpisodes(folder));
}

/** The settings of config.yaml; null where there is none. */
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

/** A file's records, read as a stream; a broken line is an error unless it is the last, which a crash may have cut. */
async function* linesOf<T>(folder: string, name: string, schema: z.ZodType): AsyncGenerator<T> {
  const file = join(folder, name);
  if (!existsSync(file)) return;
  let [number, cutLine] = [0, 0];
  let fault: unknown;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })) {
    number++;
    if (line.trim() === "") continue;
    if (cutLine > 0) break;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      [cutLine, fault] = [number, cause];
      continue;
    }
    const parsed = schema.safeParse(value);
    if (!parsed.success) throw broken(`${file}, line ${number}`, z.prettifyError(parsed.error), parsed.error);
    yield value as T;
  }
  if (cutLine > 0 && number > cutLine) throw broken(`${file}, line ${cutLine}`, messageOf(fault), fault);
}

function broken(place: string, why: string, cause: unknown): SqlEnvError {
  const reason = why.replace(/\s+/g, " ");
  const remedy = "repair or remove it, then run the report again";
  return new SqlEnvError("run_broken", { what: `${place} cannot be read`, value: reason, remedy, cause });
}
