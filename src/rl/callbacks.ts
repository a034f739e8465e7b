// Callbacks of a training.
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import { DECODINGS, EVALUATION_SPLITS } from "./evaluate-model.ts";
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

/** An evaluation as a line of metrics.jsonl. */
export function evaluationMetrics(step: number, evaluation: Evaluation): MetricLine {
  const line: Record<string, number> & { step: number } = { step };
  for (const split of EVALUATION_SPLITS) {
    for (const decoding of DECODINGS) {
      const { episodes, success_rate, success_ci, mean_reward, mean_steps } = evaluation[split][decoding];
      if (success_rate === null) continue;
      const name = `eval_${split}/${decoding}`;
      line[`${name}/episodes`] = episodes;
      line[`${name}/success_rate`] = success_rate;
      line[`${name}/success_ci_low`] = success_ci?.[0] ?? 0;
      line[`${name}/success_ci_high`] = success_ci?.[1] ?? 1;
      line[`${name}/reward`] = mean_reward ?? 0;
      line[`${name}/steps`] = mean_steps ?? 0;
    }
  }
  return line;
}
