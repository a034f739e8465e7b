// The page's copy of a run, updated by the feed.
import { type FeedEvent, LOG_NAMES, type LogName, type LogPage, type RunSummary } from "../server/schemas.ts";
import type { Source } from "./run-source.ts";

export type XAxis = "step" | "time" | "tokens";
export type Columns = Record<string, (number | null)[]>;

export interface Points {
  readonly x: readonly number[];
  readonly y: readonly number[];
}

export class RunModel {
  readonly id: string;
  summary: RunSummary;
  readonly logs: Record<LogName, Columns> = { metrics: {}, timings: {}, habits: {} };

  private constructor(summary: RunSummary) {
    this.id = summary.id;
    this.summary = summary;
  }

  /** Loads a run's summary; `more` resolves when its logs are loaded. */
  static async load(source: Source, id: string): Promise<{ readonly run: RunModel; readonly more: Promise<void> }> {
    const pages = Promise.all(LOG_NAMES.map((name) => source.log(id, name, 0)));
    pages.catch(() => {}); // reported when awaited below
    const run = new RunModel(await source.summary(id));
    const more = (async () => {
      for (const [i, first] of (await pages).entries()) {
        const name = LOG_NAMES[i]!;
        for (let page = first; ; page = await source.log(id, name, run.rows(name))) {
          run.take(name, page);
          // The summary may be newer than the page, and the feed starts where the summary ends.
          if (run.rows(name) >= Math.max(page.total, run.summary.lines[name]) || rowsOf(page) === 0) break;
        }
      }
    })();
    return { run, more };
  }

  rows(name: LogName): number {
    return this.logs[name].step?.length ?? 0;
  }

  /** Applies an event of the feed. */
  apply({ summary, logs }: FeedEvent): void {
    for (const name of LOG_NAMES) this.take(name, logs[name]);
    this.summary = summary;
  }

  /** Writes a page's rows at their positions, replacing older ones. */
  take(name: LogName, { from, columns }: LogPage): void {
    const log = this.logs[name];
    const rows = Math.max(this.rows(name), from + rowsOf({ from, total: 0, columns }));
    for (const key of new Set([...Object.keys(log), ...Object.keys(columns)])) {
      log[key] ??= [];
      const column = log[key];
      while (column.length < rows) column.push(null);
      columns[key]?.forEach((value, i) => {
        column[from + i] = value;
      });
    }
  }

  /** A column's values over steps, seconds or tokens. */
  points(log: LogName, key: string, axis: XAxis): Points {
    const { step: steps = [], [key]: values = [] } = this.logs[log];
    const at = this.#axis(axis);
    const [x, y]: [number[], number[]] = [[], []];
    values.forEach((value, i) => {
      const step = steps[i];
      if (value === null || step === null || step === undefined) return;
      const position = at(step);
      if (position === null) return;
      if (x.at(-1) === position) y[y.length - 1] = value;
      else {
        x.push(position);
        y.push(value);
      }
    });
    return { x, y };
  }

  /** The step whose position on an axis is nearest; null before the first step. */
  stepAt(x: number, axis: XAxis): number | null {
    const at = this.#axis(axis);
    let [best, distance]: [number | null, number] = [null, Number.POSITIVE_INFINITY];
    for (const step of this.logs.metrics.step ?? []) {
      const position = step === null ? null : at(step);
      if (position === null || Math.abs(position - x) >= distance) continue;
      [best, distance] = [Math.max(1, step!), Math.abs(position - x)]; // the episodes of step 0 are an evaluation's
    }
    return best;
  }

  /** Maps a step to its position on an axis. */
  #axis(axis: XAxis): (step: number) => number | null {
    if (axis === "step") return (step) => step;
    const [log, key] = axis === "time" ? (["timings", "elapsed"] as const) : (["metrics", "num_tokens"] as const);
    const { step: steps = [], [key]: values = [] } = this.logs[log];
    const known = new Map<number, number>([[0, 0]]);
    steps.forEach((step, i) => {
      const value = values[i];
      if (step !== null && value !== null && value !== undefined) known.set(step, value);
    });
    return (step) => known.get(step) ?? null;
  }

  /** The last value of a column. */
  last(log: LogName, key: string): number | null {
    return this.logs[log][key]?.findLast((value) => value !== null) ?? null;
  }

  sum(log: LogName, key: string): number {
    return (this.logs[log][key] ?? []).reduce<number>((sum, value) => sum + (value ?? 0), 0);
  }
}

function rowsOf({ columns }: LogPage): number {
  return Object.values(columns)[0]?.length ?? 0;
}
