// Callbacks of a training.
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { EpisodeLine, Evaluation, MetricLine, TimingLine, Warning } from "./run/records.ts";
import type { TrainerState } from "./run/store.ts";

/** The part of a training that callbacks can read and use. */
export interface TrainingView {
  readonly config: GRPOConfig;
  readonly state: TrainerState;
  /** Optimizer steps of the whole training. */
  readonly total_steps: number;
  /** Plays a few greedy episodes of a split with the current model; none if the split has no tasks. The training is not affected. */
  play(split: "train" | "eval", episodes: number): Promise<EpisodeRecord[]>;
}

/** All methods are optional; each is awaited. */
export interface TrainerCallback {
  on_train_begin?(view: TrainingView): void | Promise<void>;
  /** Called after each optimizer step, with the episodes of the batch that it learned from. */
  on_step_end?(
    view: TrainingView,
    step: { timing: TimingLine; episodes: readonly EpisodeLine[] },
  ): void | Promise<void>;
  /** Called with each line of metrics.jsonl that training writes. */
  on_log?(view: TrainingView, metrics: MetricLine): void | Promise<void>;
  on_warning?(view: TrainingView, warning: Warning): void | Promise<void>;
  on_evaluate?(view: TrainingView, evaluation: Evaluation): void | Promise<void>;
  on_save?(view: TrainingView, where: string): void | Promise<void>;
  on_train_end?(view: TrainingView): void | Promise<void>;
}

export type TrainerEvent = keyof TrainerCallback;
export type EventDetails<E extends TrainerEvent> =
  Parameters<NonNullable<TrainerCallback[E]>> extends [TrainingView, ...infer Rest] ? Rest : never;

/** Calls a method of each callback, one after the other. */
export async function notify<E extends TrainerEvent>(
  callbacks: readonly TrainerCallback[],
  event: E,
  view: TrainingView,
  details: EventDetails<E>,
): Promise<void> {
  for (const callback of callbacks) {
    const method = callback[event] as ((view: TrainingView, ...details: unknown[]) => unknown) | undefined;
    await method?.call(callback, view, ...details);
  }
}
