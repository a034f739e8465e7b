// The store of a run: logs that grow line by line, small files, and checkpoints; a folder on disk (folder.node.ts), or memory.

import { z } from "zod";
import { acceptOldKeys } from "./old-keys.ts";

const count = z.int().min(0);
const trainerStateSchema = z
  .object({
    /** Optimizer steps done. */
    step: count,
    /** Rollout batches played. */
    batches: count,
    episodes: count,
    /** Tokens of prompts and completions so far. */
    tokens: count,
    /** Seconds of training so far. */
    elapsed: z.number(),
    /** The step of the newest evaluation during training. */
    evaluated: count,
    /** Metrics since the last line of metrics.jsonl: by name, the sum and the number of values. */
    since_log: z.record(z.string(), z.tuple([z.number(), z.number()]).readonly()).readonly(),
    /** Codes of warnings that still hold; `streaks` are defined in diagnostics.ts. */
    warned: z.array(z.string()).readonly(),
    streaks: z.record(z.string(), z.int()).readonly().optional(),
    /** Only in trainings with use_adaptive_entropy: the coefficient, and the entropy of the newest step. */
    entropy_control: z.object({ coef: z.number(), entropy: z.number() }).readonly().optional(),
    /** Only in trainings with dynamic_sampling or skip_solved. */
    queue: z
      .object({
        position: count,
        outcomes: z.record(z.string(), z.tuple([count, count, count]).readonly()).readonly(),
      })
      .readonly()
      .optional(),
  })
  .readonly();

/** The state of a checkpoint besides the engine's. */
export type TrainerState = z.infer<typeof trainerStateSchema>;

/** The state of a training before its first step. */
export const INITIAL_STATE: TrainerState = {
  step: 0,
  batches: 0,
  episodes: 0,
  tokens: 0,
  elapsed: 0,
  evaluated: 0,
  since_log: {},
  warned: [],
};

export interface Checkpoint {
  readonly state: TrainerState;
  /** Folder with the engine's state; null if the store is in memory. */
  readonly dir: string | null;
}

export interface RunStore {
  /** Its path, or a name. */
  readonly name: string;
  /** Adds lines to a log, in one write. */
  append(log: Log, ...records: readonly object[]): void;
  /** Writes a small file, whole or not at all. */
  write(file: string, text: string): void;
  read(file: string): string | null;
  /** The current length of each log. */
  lengths(): LogLengths;
  /**
   * Saves the trainer's state, the engine's state (which `save` writes into a folder) and the lengths of the logs, all
   * or nothing.
   */
  checkpoint(state: TrainerState, save: (dir: string) => Promise<void>, keep: number, logs?: LogLengths): Promise<void>;
  /** The newest checkpoint; null for none. */
  newest(): Checkpoint | null;
  /** Truncates the logs to their lengths at the newest checkpoint, or to nothing if there is none. */
  rewind(): void;
}

export const LOGS = ["metrics.jsonl", "timings.jsonl", "episodes.jsonl", "warnings.jsonl"] as const;
export type Log = (typeof LOGS)[number];
const logLengthsSchema = z.record(z.enum(LOGS), count).readonly();
/** Bytes of each log. */
export type LogLengths = z.infer<typeof logLengthsSchema>;

/** trainer.json of a checkpoint: the state, and the lengths of the logs that belong to it. */
export type ResumePoint = z.infer<typeof resumePointSchema>;
export const resumePointSchema = z
  .object({ state: acceptOldKeys(trainerStateSchema, { generation: "batches" }), logs: logLengthsSchema })
  .readonly();

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
