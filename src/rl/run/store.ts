// Where a run is kept: logs that grow line by line, small files, and checkpoints. A folder on disk (folder.node.ts), or memory.

import type { Sums } from "../metrics.ts";
import type { QueueState } from "../task-queue.ts";

/** What a checkpoint holds besides the engine's numbers. */
export interface TrainerState {
  /** Optimizer steps done. */
  readonly step: number;
  /** Generations played. */
  readonly generation: number;
  readonly episodes: number;
  /** Tokens of prompts and completions so far. */
  readonly tokens: number;
  /** Seconds of training so far. */
  readonly elapsed: number;
  /** The step of the newest evaluation on the way. */
  readonly evaluated: number;
  /** Metrics since the last line of metrics.jsonl: their sums, and how many steps each is of. */
  readonly since_log: Sums;
  /** Codes of warnings that still hold, and by code the steps in a row in which it held or did not (diagnostics.ts). */
  readonly warned: readonly string[];
  readonly streaks?: Readonly<Record<string, number>> | undefined;
  /** Only of trainings with dynamic_sampling or skip_solved. */
  readonly queue?: QueueState | undefined;
}

/** The state of a training before its first step. */
export const INITIAL_STATE: TrainerState = {
  step: 0,
  generation: 0,
  episodes: 0,
  tokens: 0,
  elapsed: 0,
  evaluated: 0,
  since_log: {},
  warned: [],
};

export interface Checkpoint {
  readonly state: TrainerState;
  /** Where the engine's numbers are; null in memory. */
  readonly dir: string | null;
}

/** A moment to resume from: the counters, and what of the logs belongs to them. */
export interface RestPoint {
  readonly state: TrainerState;
  readonly logs: LogLengths;
}

export interface RunStore {
  /** Where it is, for people. */
  readonly name: string;
  /** Adds lines to a log, in one write. */
  append(log: Log, ...records: readonly object[]): void;
  /** Writes a small file, whole or not at all. */
  write(file: string, text: string): void;
  read(file: string): string | null;
  /** How long each log is now. */
  lengths(): LogLengths;
  /** Keeps the state, the engine's numbers (which `save` writes into a folder) and the logs' lengths, all or nothing. */
  checkpoint(state: TrainerState, save: (dir: string) => Promise<void>, keep: number, logs?: LogLengths): Promise<void>;
  /** The newest checkpoint; null for none. */
  newest(): Checkpoint | null;
  /** Cuts the logs back to where they were at the newest checkpoint, or to nothing. */
  rewind(): void;
}

export const LOGS = ["metrics.jsonl", "timings.jsonl", "episodes.jsonl", "warnings.jsonl"] as const;
export type Log = (typeof LOGS)[number];
/** Bytes of each log. */
export type LogLengths = Readonly<Record<Log, number>>;

/**
 * Keeps everything in memory: for tests, notebooks and pages. Nothing can be resumed from it.
 *
 * @example
 * const store = new MemoryStore();
 * await buildTrainer({ model, data, config, store }).train();
 */
export class MemoryStore implements RunStore {
  readonly name = "memory";
  readonly logs: Record<Log, object[]> = {
    "metrics.jsonl": [],
    "timings.jsonl": [],
    "episodes.jsonl": [],
    "warnings.jsonl": [],
  };
  readonly files = new Map<string, string>();

  append(log: Log, ...records: readonly object[]): void {
    this.logs[log].push(...records);
  }

  write(file: string, text: string): void {
    this.files.set(file, text);
  }

  read(file: string): string | null {
    const log = Object.hasOwn(this.logs, file) ? this.logs[file as Log] : null;
    return log ? log.map((record) => `${JSON.stringify(record)}\n`).join("") : (this.files.get(file) ?? null);
  }

  lengths(): LogLengths {
    return { "metrics.jsonl": 0, "timings.jsonl": 0, "episodes.jsonl": 0, "warnings.jsonl": 0 }; // nothing is cut
  }

  async checkpoint(): Promise<void> {}

  newest(): null {
    return null;
  }

  rewind(): void {}
}
