// One run as the dashboard sees it: its folder, read as it grows, also while another process trains in it.
import { readFileSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { messageOf, UsageError } from "../../../errors.ts";
import type { EpisodeRecord } from "../../../gym/evaluation/index.ts";
import { trainingProcess } from "../../../rl/run/folder.node.ts";
import type {
  Comparison,
  EpisodeLine,
  MetricLine,
  Standing,
  TimingLine,
  TrainingResult,
  Warning,
} from "../../../rl/run/records.ts";
import type { Habits } from "../../reports/action-stats.ts";
import { readConfig } from "../../reports/run-folder.node.ts";
import {
  comparisonSchema,
  episodeSchema,
  metricSchema,
  playedFileSchema,
  resultSchema,
  timingSchema,
  warningSchema,
} from "../../reports/run-schemas.ts";
import { EpisodeIndex } from "./episode-index.ts";
import { Tail } from "./log-tail.node.ts";
import { etaOf, pageOf, standingAt, totalSteps } from "./progress.ts";
import type { EpisodeRow, FeedEvent, LogName, LogPage, RunListing, RunState, RunSummary } from "./schemas.ts";

/** random.json and before.json. */
interface Played {
  readonly standing: Standing;
  readonly compared: readonly EpisodeRecord[];
}

/** What is kept of a folder until it turns out to be another run's. */
interface Read {
  readonly epoch: string;
  readonly metrics: MetricLine[];
  readonly timings: TimingLine[];
  readonly warnings: Warning[];
  readonly episodes: EpisodeIndex;
  /** Of each episode in the file. */
  readonly places: { readonly offset: number; readonly length: number }[];
  readonly tails: Readonly<Record<"metrics" | "timings" | "warnings" | "episodes", Tail>>;
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
    this.#read = this.#fresh();
  }

  /** Takes in what is new in the folder. Episodes are taken in behind the scenes, and only when asked for: there may be very many. */
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
    // A file that has grown a little is taken in at once; a large one is not waited for.
    await Promise.race([this.#indexing, new Promise((resolve) => setTimeout(resolve, 50))]);
  }

  /** Waits until every episode there is has been taken in. */
  async settle(): Promise<void> {
    await this.refresh();
    while (this.#indexing) await this.#indexing;
  }

  listing(): RunListing {
    const { metrics, timings } = this.#read;
    const config = this.#config();
    const result = this.#file<TrainingResult>("results.json", resultSchema);
    const [random, before] = (["random.json", "before.json"] as const).map(
      (file) => this.#file<Played>(file, playedFileSchema)?.standing ?? null,
    );
    const step = Math.max(result?.steps ?? 0, timings.at(-1)?.step ?? 0, metrics.at(-1)?.step ?? 0);
    const evaluated = result ? null : standingAt(metrics);
    return {
      id: this.id,
      name: this.name,
      state: this.#state(result, step, random !== null && before !== null),
      model_name: result?.model_name ?? (typeof config?.model_name === "string" ? config.model_name : null),
      config,
      step,
      total_steps: result?.steps ?? totalSteps(config, metrics),
      elapsed: timings.at(-1)?.elapsed ?? null,
      random: result?.random ?? random ?? null,
      before: result?.before ?? before ?? null,
      now: result?.after ?? evaluated?.standing ?? null,
      now_step: result?.steps ?? evaluated?.step ?? null,
      result: result
        ? { seconds: result.seconds, steps: result.steps, episodes: result.episodes, tokens: result.tokens }
        : null,
    };
  }

  summary(): RunSummary {
    const { metrics, timings, warnings, episodes, tails, problems } = this.#read;
    const listing = this.listing();
    const manners = episodes.manners();
    const habits = episodes.habits().length;
    const live = listing.state === "training";
    return {
      ...listing,
      warnings,
      eta: live ? etaOf(listing.step, listing.total_steps, timings) : null,
      episodes: { count: episodes.rows.length, indexed: tails.episodes.share },
      early: manners?.early ?? null,
      late: manners?.late ?? null,
      lines: { metrics: metrics.length, timings: timings.length, habits },
      problems: [...problems],
      cursor: this.#cursor(listing),
    };
  }

  /** Rows of a log from this one on. */
  log(name: LogName, from = 0, limit = Number.POSITIVE_INFINITY): LogPage {
    return pageOf(this.#log(name), from, limit);
  }

  #log(name: LogName): readonly (MetricLine | TimingLine | Habits)[] {
    return name === "habits" ? this.#read.episodes.habits() : this.#read[name];
  }

  /** What is new since a cursor; null when nothing is, "reset" when the cursor is of another life of the run. */
  since(cursor: string): FeedEvent | "reset" | null {
    const summary = this.summary();
    if (cursor === summary.cursor) return null;
    const [epoch, ...counts] = cursor.split(".");
    const [metrics, timings, habits] = counts.map(Number);
    if (epoch !== this.#read.epoch || ![metrics, timings, habits].every(Number.isInteger)) return "reset";
    const logs = {
      metrics: this.log("metrics", metrics),
      timings: this.log("timings", timings),
      habits: this.log("habits", Math.max(0, habits! - 1)), // the last step may have been half written
    };
    return { summary, logs };
  }

  get episodes(): EpisodeIndex {
    return this.#read.episodes;
  }

  /** Episodes as they were written, in the order of the rows. */
  async readEpisodes(rows: readonly EpisodeRow[]): Promise<EpisodeLine[]> {
    if (rows.length === 0) return []; // there may be no file yet
    const { places } = this.#read;
    const file = await open(join(this.folder, "episodes.jsonl"), "r");
    try {
      const lines: EpisodeLine[] = [];
      for (const { n } of rows) {
        const { offset, length } = places[n]!;
        const bytes = Buffer.alloc(length);
        await file.read(bytes, 0, length, offset);
        lines.push(JSON.parse(bytes.toString("utf8")) as EpisodeLine);
      }
      return lines;
    } finally {
      await file.close();
    }
  }

  /** The same questions by each player there is so far. */
  comparison(): Comparison {
    const whole = this.#file<Comparison>("comparison.json", comparisonSchema);
    if (whole) return whole;
    const played = (["random", "before"] as const).flatMap((player) => {
      const file = this.#file<Played>(`${player}.json`, playedFileSchema);
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

  async #refresh(): Promise<void> {
    const read = this.#read;
    const take = <T>(name: "metrics" | "timings" | "warnings", schema: z.ZodType) =>
      read.tails[name].read((lines) => {
        for (const { text } of lines) {
          const value = this.#parsed<T>(`${name}.jsonl`, text, schema);
          if (value !== null) (read[name] as T[]).push(value);
        }
      });
    const same = [
      await take<MetricLine>("metrics", metricSchema),
      await take<TimingLine>("timings", timingSchema),
      await take<Warning>("warnings", warningSchema),
    ];
    if (same.every(Boolean)) return;
    this.#read = this.#fresh(); // a run that was taken up again from an earlier step, or begun anew
    await this.#refresh();
  }

  async #index(read: Read): Promise<void> {
    const same = await read.tails.episodes.read((lines) => {
      for (const { text, offset, length } of lines) {
        const line = this.#episode(text);
        if (line === null) continue;
        read.episodes.add(line);
        read.places.push({ offset, length });
      }
    });
    if (!same && this.#read === read) this.#read = this.#fresh();
  }

  /** Of a hundred thousand lines, the shape is checked only as far as the index needs it. */
  #episode(text: string): EpisodeLine | null {
    try {
      const line = JSON.parse(text) as EpisodeLine;
      if (Array.isArray(line.steps) && line.steps.every((step) => typeof step?.action?.action_type === "string"))
        if (typeof line.step === "number" && typeof line.question === "string") return line;
    } catch {}
    return this.#parsed<EpisodeLine>("episodes.jsonl", text, episodeSchema) && null; // says what is wrong
  }

  #parsed<T>(file: string, text: string, schema: z.ZodType): T | null {
    try {
      const value: unknown = JSON.parse(text);
      schema.parse(value);
      return value as T;
    } catch {
      this.#read.problems.add(`${file} has lines that cannot be read; they are left out`);
      return null;
    }
  }

  /** A small file, read again when it has changed; null when it is not there. */
  #file<T>(name: string, schema: z.ZodType): T | null {
    const stamp = this.#stamp(name);
    if (stamp === "") return null;
    const known = this.#files.get(name);
    if (known?.stamp === stamp) return known.value as T | null;
    let value: unknown = null;
    try {
      value = JSON.parse(readFileSync(join(this.folder, name), "utf8"));
      schema.parse(value);
    } catch {
      value = null;
      this.#read.problems.add(`${name} cannot be read`);
    }
    this.#files.set(name, { stamp, value });
    return value as T | null;
  }

  #config(): Readonly<Record<string, unknown>> | null {
    const stamp = this.#stamp("config.yaml");
    const known = this.#files.get("config.yaml");
    if (known?.stamp === stamp) return known.value as Record<string, unknown> | null;
    let value: Readonly<Record<string, unknown>> | null = null;
    try {
      value = readConfig(this.folder);
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
    const total = totalSteps(this.#config(), this.#read.metrics);
    return played && (total === null || step < total) ? "training" : "evaluating";
  }

  #cursor({ state }: RunListing): string {
    const { epoch, metrics, timings, warnings, episodes, problems } = this.#read;
    const files = ["results.json", "comparison.json", "random.json", "before.json"].map((name) => this.#stamp(name));
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

  #fresh(): Read {
    const tail = (name: string) => new Tail(join(this.folder, `${name}.jsonl`));
    return {
      epoch: crypto.randomUUID().slice(0, 8),
      ...{ metrics: [], timings: [], warnings: [], places: [] },
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

/** The row of an episode, by its number. */
export function episodeNumbered(run: WatchedRun, n: number): EpisodeRow {
  const row = run.episodes.rows[n];
  if (row) return row;
  throw new UsageError({
    what: "no such episode",
    value: n,
    remedy: `${run.name} has ${run.episodes.rows.length}, numbered from 0`,
  });
}
