// What can be done while a training goes on, without touching its loop: callbacks, and the one that shows it live.
import { type EpisodeRecord, formatTranscript } from "../evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { EpisodeLine, MetricLine, Place, Standing, TimingLine, Warning } from "./records.ts";
import type { TrainerState } from "./store.ts";

/** What callbacks may look at, and what they may ask for. */
export interface TrainingView {
  readonly config: GRPOConfig;
  readonly state: TrainerState;
  /** Optimizer steps there will be. */
  readonly total_steps: number;
  /** Plays a few episodes of a split with the model as it is, greedily. Training goes on as if nothing had happened. */
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

export interface LiveVisualizationOptions {
  /** Steps between updates of the reward curve. @default 10 */
  readonly reward_every?: number;
  /** Steps between transcripts of an episode. @default 50 */
  readonly transcript_every?: number;
  /** Steps between comparisons of success on training and evaluation questions. @default 100 */
  readonly success_every?: number;
  /** Episodes on each split for that. @default 3 */
  readonly success_episodes?: number;
  /** Shows it: prints the text, or draws the numbers in a notebook. @default console.log of the text */
  readonly show?: (view: LiveView) => void;
}

/** Something to show, as text and as the numbers behind it. */
export type LiveView =
  | { readonly kind: "reward"; readonly text: string; readonly points: readonly RewardPoint[] }
  | { readonly kind: "transcript"; readonly text: string; readonly episode: EpisodeRecord }
  | { readonly kind: "success"; readonly text: string; readonly points: readonly SuccessPoint[] };

export interface RewardPoint {
  readonly step: number;
  readonly reward: number;
}

export interface SuccessPoint {
  readonly step: number;
  readonly train: number;
  readonly eval: number;
}

/** A coach at the side: the reward's course, a transcript now and then, and whether what is learned carries over. */
export class LiveVisualizationCallback implements TrainerCallback {
  readonly rewards: RewardPoint[] = [];
  readonly success: SuccessPoint[] = [];
  readonly #options: Required<LiveVisualizationOptions>;

  constructor(options: LiveVisualizationOptions = {}) {
    this.#options = {
      reward_every: 10,
      transcript_every: 50,
      success_every: 100,
      success_episodes: 3,
      show: ({ text }) => console.log(text),
      ...options,
    };
  }

  async on_step_end(view: TrainingView, { episodes }: { readonly episodes: readonly EpisodeLine[] }): Promise<void> {
    const { reward_every, transcript_every, success_every, success_episodes, show } = this.#options;
    const { step } = view.state;
    const scored = episodes.flatMap(({ total_reward }) => (total_reward === null ? [] : [total_reward]));
    if (scored.length > 0) this.rewards.push({ step, reward: mean(scored) });
    if (step % reward_every === 0 && this.rewards.length > 0) {
      const recent = this.rewards.slice(-40).map(({ reward }) => reward);
      const text = `step ${step}: reward ${recent.at(-1)!.toFixed(3)}  ${sparkline(recent)}`;
      show({ kind: "reward", text, points: this.rewards });
    }
    if (step % transcript_every === 0) {
      const [episode] = await view.play("eval", 1);
      if (episode) show({ kind: "transcript", text: formatTranscript(episode), episode });
    }
    if (step % success_every === 0) {
      const rate = async (split: "train" | "eval") =>
        mean((await view.play(split, success_episodes)).map(({ correctness }) => correctness ?? 0));
      const point = { step, train: await rate("train"), eval: await rate("eval") };
      this.success.push(point);
      const percent = (share: number) => `${Math.round(100 * share)} %`;
      const text = `step ${step}: right on training questions ${percent(point.train)}, on evaluation questions ${percent(point.eval)}`;
      show({ kind: "success", text, points: this.success });
    }
  }
}

/** Numbers as a line of blocks, lowest to highest. */
export function sparkline(values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const blocks = "▁▂▃▄▅▆▇█";
  return values.map((value) => blocks[high > low ? Math.round((7 * (value - low)) / (high - low)) : 0]).join("");
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

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
