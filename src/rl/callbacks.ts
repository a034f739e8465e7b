// What can be done while a training goes on, without touching its loop.
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { EpisodeLine, MetricLine, Place, Standing, TimingLine, Warning } from "./run/records.ts";
import type { TrainerState } from "./run/store.ts";

/** What callbacks may look at, and what they may ask for. */
export interface TrainingView {
  readonly config: GRPOConfig;
  readonly state: TrainerState;
  /** Optimizer steps there will be. */
  readonly total_steps: number;
  /** Plays a few episodes of a split with the model as it is, greedily; none where the split has no questions. Training goes on as if nothing had happened. */
  play(split: "train" | "eval", episodes: number): Promise<EpisodeRecord[]>;
}

/** Any of these; each is awaited. */
export interface TrainerCallback {
  on_train_begin?(view: TrainingView): void | Promise<void>;
  /** After each optimizer step, with the episodes of the generation it learned from. */
  on_step_end?(
    view: TrainingView,
    step: { timing: TimingLine; episodes: readonly EpisodeLine[] },
  ): void | Promise<void>;
  /** With each line of metrics.jsonl that training writes. */
  on_log?(view: TrainingView, metrics: MetricLine): void | Promise<void>;
  on_warning?(view: TrainingView, warning: Warning): void | Promise<void>;
  on_evaluate?(view: TrainingView, standing: Standing): void | Promise<void>;
  on_save?(view: TrainingView, where: string): void | Promise<void>;
  on_train_end?(view: TrainingView): void | Promise<void>;
}

/** An evaluation as numbers for metrics.jsonl. */
export function evaluationMetrics(step: number, standing: Standing): MetricLine {
  const line: Record<string, number> & { step: number } = { step };
  for (const place of ["seen", "unseen"] satisfies Place[]) {
    for (const manner of ["greedy", "sampled"] as const) {
      const { episodes, success_rate, success_ci, mean_reward, mean_steps } = standing[place][manner];
      if (success_rate === null) continue;
      const name = `eval_${place}/${manner}`;
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
