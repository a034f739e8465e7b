// A run's folder, read incrementally while another process may be training in it.
import { readFileSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { messageOf, UsageError } from "../../../errors.ts";
import type { EpisodeRecord } from "../../../gym/evaluation/index.ts";
import { trainingProcess } from "../../../rl/run/folder.node.ts";
import { readConfig } from "../../../rl/run/read-folder.node.ts";
import {
  type Comparison,
  comparisonSchema,
  type EpisodeLine,
  environmentDescriptionSchema,
  episodeLineSchema,
  evaluationEpisodeSchema,
  type GoldAnswers,
  goldAnswersSchema,
  type MetricLine,
  metricLineSchema,
  stageEvaluationSchema,
  type TimingLine,
  type TrainingResult,
  timingLineSchema,
  trainingResultSchema,
  type Warning,
  warningSchema,
} from "../../../rl/run/records.ts";
import type { ActionStats } from "../../reports/action-stats.ts";
import { changedSettings } from "../../reports/changed-settings.ts";
import { EpisodeIndex } from "./episode-index.ts";
import { LogTail } from "./log-tail.node.ts";
import { etaOf, latestEvaluation, logPage, totalSteps } from "./progress.ts";
import type { QuestionRecords } from "./questions.ts";
import type {
  EpisodeRow,
  FeedEvent,
  LogName,
  LogPage,
  PresetSettings,
  RunListing,
  RunState,
  RunSummary,
} from "./schemas.ts";

/** Everything read so far; replaced when the folder turns out to hold another run. */
interface Read {
  readonly epoch: string;
  readonly metrics: MetricLine[];
  readonly timings: TimingLine[];
  readonly warnings: Warning[];
  readonly episodes: EpisodeIndex;
  /** Byte range of each episode in the file. */
  readonly ranges: { readonly offset: number; readonly length: number }[];
  readonly tails: Readonly<Record<"metrics" | "timings" | "warnings" | "episodes", LogTail>>;
  readonly problems: Set<string>;
}

export class WatchedRun {
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  #read: Read;
  #refreshing: Promise<void> | null = null;
  #indexing: Promise<void> | null = null;
  #files = new Map<string, { readonly stamp: string; readonly value: unknown }>();

  constructor(folder: string, id: string) {
    this.folder = folder;
    this.id = id;
    this.name = id;
    this.#read = this.#emptyRead();
  }

  /** Reads what is new in the folder. Episodes are indexed in the background and on request only: there may be very many. */
  async refresh({ episodes = true }: { readonly episodes?: boolean } = {}): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = null;
    });
    await this.#refreshing;
    if (!episodes || this.#indexing) return;
    const read = this.#read;
    this.#indexing = this.#index(read)
      .catch((error: unknown) => void read.problems.add(`episodes.jsonl: ${messageOf(error)}`))
      .finally(() => {
        this.#indexing = null;
      });
    // Small additions are indexed at once; large ones are not awaited.
    await Promise.race([this.#indexing, new Promise((resolve) => setTimeout(resolve, 50))]);
  }

  /** Waits until every episode is indexed. */
  async settle(): Promise<void> {
    await this.refresh();
    while (this.#indexing) await this.#indexing;
  }

  listing(): RunListing {
    const { metrics, timings } = this.#read;
    const { config, preset } = this.#settings();
    const result = this.#file("results.json", trainingResultSchema);
    const [random, before] = (["random.json", "before.json"] as const).map(
      (file) => this.#file(file, stageEvaluationSchema)?.evaluation ?? null,
    );
    const step = Math.max(result?.steps ?? 0, timings.at(-1)?.step ?? 0, metrics.at(-1)?.step ?? 0);
    const evaluated = result ? null : latestEvaluation(metrics);
    return {
      id: this.id,
      name: this.name,
      state: this.#state(result, step, random !== null && before !== null),
      model_name: result?.model_name ?? (typeof config?.model_name === "string" ? config.model_name : null),
      config,
      preset,
      step,
      total_steps: result?.steps ?? totalSteps(config, metrics),
      elapsed: timings.at(-1)?.elapsed ?? null,
      random: result?.random ?? random ?? null,
      before: result?.before ?? before ?? null,
      now: result?.after ?? evaluated?.evaluation ?? null,
      now_step: result?.steps ?? evaluated?.step ?? null,
      environment: this.#file("environment.json", environmentDescriptionSchema),
      result: result
        ? {
            seconds: result.seconds,
            steps: result.steps,
            episodes: result.episodes,
            tokens: result.tokens,
            ...(result.paired && { paired: result.paired }),
          }
        : null,
    };
  }

  summary(): RunSummary {
    const { metrics, timings, warnings, episodes, tails, problems } = this.#read;
    const listing = this.listing();
    const sequences = episodes.actionSequences();
    const habits = episodes.habits().length;
    const live = listing.state === "training";
    return {
      ...listing,
      warnings,
      eta: live ? etaOf(listing.step, listing.total_steps, timings) : null,
      episodes: { count: episodes.rows.length, indexed: tails.episodes.share },
      early: sequences?.early ?? null,
      late: sequences?.late ?? null,
      lines: { metrics: metrics.length, timings: timings.length, habits },
      problems: [...problems],
      cursor: this.#cursor(listing),
    };
  }

  /** Rows of a log, starting at `from`. */
  log(name: LogName, from = 0, limit = Number.POSITIVE_INFINITY): LogPage {
    return logPage(this.#log(name), from, limit);
  }

  #log(name: LogName): readonly (MetricLine | TimingLine | ActionStats)[] {
    return name === "habits" ? this.#read.episodes.habits() : this.#read[name];
  }

  /** Changes since a cursor; null if there are none, "reset" if the cursor belongs to an earlier run in this folder. */
  since(cursor: string): FeedEvent | "reset" | null {
    const summary = this.summary();
    if (cursor === summary.cursor) return null;
    const [epoch, ...counts] = cursor.split(".");
    const [metrics, timings, habits] = counts.map(Number);
    if (epoch !== this.#read.epoch || ![metrics, timings, habits].every(Number.isInteger)) return "reset";
    const logs = {
      metrics: this.log("metrics", metrics),
      timings: this.log("timings", timings),
      habits: this.log("habits", Math.max(0, habits! - 1)), // the last step may have been incomplete
    };
    return { summary, logs };
  }

  get episodes(): EpisodeIndex {
    return this.#read.episodes;
  }

  /** Full episodes, in the order of the rows. */
  async readEpisodes(rows: readonly EpisodeRow[]): Promise<EpisodeLine[]> {
    if (rows.length === 0) return []; // the file may not exist yet
    const { ranges } = this.#read;
    const file = await open(join(this.folder, "episodes.jsonl"), "r");
    try {
      const lines: EpisodeLine[] = [];
      for (const { n } of rows) {
        const { offset, length } = ranges[n]!;
        const bytes = Buffer.alloc(length);
        await file.read(bytes, 0, length, offset);
        lines.push(JSON.parse(bytes.toString("utf8")) as EpisodeLine);
      }
      return lines;
    } finally {
      await file.close();
    }
  }

  /** The compared questions, each with the episodes of the players so far. */
  comparison(): Comparison {
    const whole = this.#file("comparison.json", comparisonSchema);
    if (whole) return whole;
    const played = (["random", "before"] as const).flatMap((player) => {
      const file = this.#file(`${player}.json`, stageEvaluationSchema);
      return file ? [{ player, compared: file.compared }] : [];
    });
    const questions = (played[0]?.compared ?? []).map((first) => ({
      question_id: first.question_id,
      question: first.question,
      database_name: first.database_name,
      seen: first.seen,
      episodes: played.flatMap(({ compared }) => compared.find((e) => e.question_id === first.question_id) ?? []),
    }));
    return { players: played.map(({ player }) => player), questions };
  }

  /** The records from which the evaluation's questions are listed. */
  questionRecords(): QuestionRecords {
    const [before, after] = [this.#episodesOf("before"), this.#episodesOf("after")];
    const evaluation = before ? { before, after: after ?? [] } : null;
    return { comparison: this.comparison(), evaluation, gold: this.gold };
  }

  get gold(): GoldAnswers | null {
    return this.#file("gold.json", goldAnswersSchema);
  }

  /** An evaluation's greedy episodes, cached until the file changes; null if missing. */
  #episodesOf(stage: "before" | "after"): readonly EpisodeRecord[] | null {
    const file = `evaluation-${stage}.jsonl`;
    const stamp = this.#stamp(file);
    if (stamp === "") return null;
    const known = this.#files.get(file);
    if (known?.stamp === stamp) return known.value as readonly EpisodeRecord[];
    const lines = readFileSync(join(this.folder, file), "utf8").split("\n").filter(Boolean);
    const value = lines.flatMap((line) => this.#parsed(file, line, evaluationEpisodeSchema) ?? []);
    this.#files.set(file, { stamp, value });
    return value;
  }

  async #refresh(): Promise<void> {
    const read = this.#read;
    const readNew = <T>(name: "metrics" | "timings" | "warnings", schema: z.ZodType<T>) =>
      read.tails[name].read((lines) => {
        for (const { text } of lines) {
          const value = this.#parsed<T>(`${name}.jsonl`, text, schema);
          if (value !== null) (read[name] as T[]).push(value);
        }
      });
    const same = [
      await readNew("metrics", metricLineSchema),
      await readNew("timings", timingLineSchema),
      await readNew("warnings", warningSchema),
    ];
    if (same.every(Boolean)) return;
    this.#read = this.#emptyRead(); // the run was resumed from an earlier step, or restarted
    await this.#refresh();
  }

  async #index(read: Read): Promise<void> {
    const same = await read.tails.episodes.read((lines) => {
      for (const { text, offset, length } of lines) {
        const line = this.#episode(text);
        if (line === null) continue;
        read.episodes.add(line);
        read.ranges.push({ offset, length });
      }
    });
    if (!same && this.#read === read) this.#read = this.#emptyRead();
  }

  /** Checks only what the index needs: there may be 100,000 lines. */
  #episode(text: string): EpisodeLine | null {
    try {
      const line = JSON.parse(text) as EpisodeLine;
      if (Array.isArray(line.steps) && line.steps.every((step) => typeof step?.action?.action_type === "string"))
        if (typeof line.step === "number" && typeof line.question === "string") return line;
    } catch {}
    return this.#parsed("episodes.jsonl", text, episodeLineSchema) && null; // records the problem
  }

  #parsed<T>(file: string, text: string, schema: z.ZodType<T>): T | null {
    try {
      const value: unknown = JSON.parse(text);
      schema.parse(value);
      return value as T;
    } catch {
      this.#read.problems.add(`${file} has lines that cannot be read; they are skipped`);
      return null;
    }
  }

  /** A small file, cached until it changes; null if missing. */
  #file<T>(name: string, schema: z.ZodType<T>): T | null {
    const stamp = this.#stamp(name);
    if (stamp === "") return null;
    const known = this.#files.get(name);
    if (known?.stamp === stamp) return known.value as T | null;
    let value: unknown = null;
    try {
      value = schema.parse(JSON.parse(readFileSync(join(this.folder, name), "utf8")));
    } catch {
      this.#read.problems.add(`${name} cannot be read`);
    }
    this.#files.set(name, { stamp, value });
    return value as T | null;
  }

  /** The settings, and how they differ from the nearest preset. */
  #settings(): Settings {
    const stamp = this.#stamp("config.yaml");
    const known = this.#files.get("config.yaml");
    if (known?.stamp === stamp) return known.value as Settings;
    let value: Settings = { config: null, preset: null };
    try {
      const config = readConfig(this.folder);
      value = { config, preset: config && presetOf(config) };
    } catch {
      this.#read.problems.add("config.yaml cannot be read");
    }
    this.#files.set("config.yaml", { stamp, value });
    return value;
  }

  #stamp(name: string): string {
    const stat = statSync(join(this.folder, name), { throwIfNoEntry: false });
    return stat ? `${stat.mtimeMs}:${stat.size}` : "";
  }

  #state(result: TrainingResult | null, step: number, played: boolean): RunState {
    if (result) return "finished";
    if (trainingProcess(this.folder) === null) return "stopped";
    const total = totalSteps(this.#settings().config, this.#read.metrics);
    return played && (total === null || step < total) ? "training" : "evaluating";
  }

  #cursor({ state }: RunListing): string {
    const { epoch, metrics, timings, warnings, episodes, problems } = this.#read;
    const files = ["results.json", "comparison.json", "random.json", "before.json", "evaluation-after.jsonl"].map(
      (name) => this.#stamp(name),
    );
    return [
      epoch,
      metrics.length,
      timings.length,
      episodes.habits().length,
      episodes.rows.length,
      warnings.length,
      problems.size,
      state,
      files.filter(Boolean).length,
    ].join(".");
  }

  #emptyRead(): Read {
    const tail = (name: string) => new LogTail(join(this.folder, `${name}.jsonl`));
    return {
      epoch: crypto.randomUUID().slice(0, 8),
      metrics: [],
      timings: [],
      warnings: [],
      ranges: [],
      episodes: new EpisodeIndex(),
      tails: {
        metrics: tail("metrics"),
        timings: tail("timings"),
        warnings: tail("warnings"),
        episodes: tail("episodes"),
      },
      problems: new Set(),
    };
  }
}

interface Settings {
  readonly config: Readonly<Record<string, unknown>> | null;
  readonly preset: PresetSettings | null;
}

function presetOf(config: Readonly<Record<string, unknown>>): PresetSettings {
  const { preset, changed } = changedSettings(config);
  return { name: preset, usual: Object.fromEntries(changed.map(({ key, usual }) => [key, usual])) };
}

/** An episode's row by its number; throws UsageError. */
export function findEpisode(run: WatchedRun, n: number): EpisodeRow {
  const row = run.episodes.rows[n];
  if (row) return row;
  throw new UsageError({
    what: "no such episode",
    value: n,
    remedy: `${run.name} has ${run.episodes.rows.length}, numbered from 0`,
  });
}
