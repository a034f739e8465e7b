// The callback that shows a training while it runs.
import { UsageError } from "../errors.ts";
import { type EpisodeRecord, formatTranscript } from "../gym/evaluation/index.ts";
import type { TrainerCallback, TrainingView } from "./callbacks.ts";
import type { EpisodeLine } from "./run/records.ts";

export interface LiveVisualizationOptions {
  /** Steps between updates of the reward curve; 0 for never. @default 10 */
  readonly reward_every?: number;
  /** Steps between transcripts of an episode on an evaluation question; 0 for never. @default 50 */
  readonly transcript_every?: number;
  /** Steps between measurements of success on training and evaluation questions; 0 for never. @default 100 */
  readonly success_every?: number;
  /** Episodes on each split in such a measurement. @default 3 */
  readonly success_episodes?: number;
  /** Rewards of steps before this training was resumed, for the curve. @default none */
  readonly rewards?: readonly RewardPoint[];
  /** Where to show the views: a terminal, a notebook, a page's feed, or several. @default console.log of the text */
  readonly show?: Show | readonly Show[];
}

/** Shows a view; its result is awaited. */
export type Show = (view: LiveView) => unknown;

/** A view as text and as its data; plain JSON. */
export type LiveView = { readonly step: number; readonly total_steps: number; readonly text: string } & (
  | { readonly kind: "reward"; readonly points: readonly RewardPoint[] }
  | { readonly kind: "transcript"; readonly episode: EpisodeRecord }
  | { readonly kind: "success"; readonly points: readonly SuccessPoint[] }
);

/** The mean reward of a step's episodes. */
export interface RewardPoint {
  readonly step: number;
  readonly reward: number;
}

/** Success rates of a few greedy episodes on each split. */
export interface SuccessPoint {
  readonly step: number;
  readonly train: number;
  readonly eval: number;
}

type Kind = LiveView["kind"];

/**
 * Shows the reward curve, transcripts, and success on training and evaluation questions.
 * Transcript and success are also shown before the first step, and everything after the last one.
 *
 * @example
 * const live = new LiveVisualizationCallback({ reward_every: 1, transcript_every: 10 });
 * await buildTrainer({ model, data, config, callbacks: [live] }).train();
 */
export class LiveVisualizationCallback implements TrainerCallback {
  readonly rewards: RewardPoint[] = [];
  readonly success: SuccessPoint[] = [];
  readonly #every: Readonly<Record<Kind, number>>;
  readonly #episodes: number;
  readonly #show: readonly Show[];
  /** Step at which each kind was last shown. */
  readonly #shown = new Map<Kind, number>();

  constructor(options: LiveVisualizationOptions = {}) {
    const { reward_every = 10, transcript_every = 50, success_every = 100, success_episodes = 3 } = options;
    for (const [name, value] of Object.entries({ reward_every, transcript_every, success_every, success_episodes })) {
      if (Number.isInteger(value) && value >= (name === "success_episodes" ? 1 : 0)) continue;
      throw new UsageError({
        what: `${name} is no count`,
        value,
        remedy: name === "success_episodes" ? "give 1 or more" : "give a number of steps, or 0 for never",
      });
    }
    this.#every = { reward: reward_every, transcript: transcript_every, success: success_every };
    this.#episodes = success_episodes;
    this.rewards.push(...(options.rewards ?? []));
    this.#show = [options.show ?? (({ text }: LiveView) => console.log(text))].flat();
  }

  async on_train_begin(view: TrainingView): Promise<void> {
    const later = this.rewards.findIndex(({ step }) => step > view.state.step); // steps that a resumed run repeats
    if (later >= 0) this.rewards.splice(later);
    for (const kind of KINDS) if (this.#every[kind] > 0) await this.#showKind(kind, view);
  }

  async on_step_end(view: TrainingView, { episodes }: { readonly episodes: readonly EpisodeLine[] }): Promise<void> {
    const { step } = view.state;
    const reward = mean(episodes.map(({ total_reward }) => total_reward));
    if (reward !== null) this.rewards.push({ step, reward });
    for (const kind of KINDS) {
      if (this.#every[kind] > 0 && step % this.#every[kind] === 0) await this.#showKind(kind, view);
    }
  }

  async on_train_end(view: TrainingView): Promise<void> {
    for (const kind of KINDS) {
      if (this.#every[kind] > 0 && this.#shown.get(kind) !== view.state.step) await this.#showKind(kind, view);
    }
  }

  async #showKind(kind: Kind, view: TrainingView): Promise<void> {
    if (kind === "reward") await this.#reward(view);
    else if (kind === "transcript") await this.#transcript(view);
    else await this.#success(view);
  }

  async #reward({ state: { step }, total_steps }: TrainingView): Promise<void> {
    if (this.rewards.length === 0) return;
    const recent = this.rewards.slice(-40).map(({ reward }) => reward);
    const text = `step ${step}: reward ${recent.at(-1)!.toFixed(3)}  ${sparkline(recent)}`;
    await this.#send({ kind: "reward", step, total_steps, text, points: [...this.rewards] });
  }

  async #transcript({ state: { step }, total_steps, play }: TrainingView): Promise<void> {
    const [episode] = await play("eval", 1);
    if (!episode) return;
    const text = `step ${step}: ${formatTranscript(episode)}`;
    await this.#send({ kind: "transcript", step, total_steps, text, episode });
  }

  async #success({ state: { step }, total_steps, play }: TrainingView): Promise<void> {
    const played = async (split: "train" | "eval") =>
      (await play(split, this.#episodes)).map(({ correctness }) => correctness).filter((value) => value !== null);
    const [trained, held] = [await played("train"), await played("eval")];
    const [train, evaluated] = [mean(trained), mean(held)];
    if (train === null || evaluated === null) return; // no episode could be scored
    this.success.push({ step, train, eval: evaluated });
    const right = (values: readonly number[]) => `${values.filter((value) => value === 1).length} of ${values.length}`;
    const text = `step ${step}, a glance: ${right(trained)} training questions right, ${right(held)} evaluation questions`;
    await this.#send({ kind: "success", step, total_steps, text, points: [...this.success] });
  }

  async #send(view: LiveView): Promise<void> {
    this.#shown.set(view.kind, view.step);
    for (const show of this.#show) await show(view);
  }
}

const KINDS: readonly Kind[] = ["reward", "transcript", "success"];

/**
 * Draws numbers as block characters. The scale is 0 to 1, or wider if values exceed it, so that curves of different
 * steps can be compared.
 */
export function sparkline(values: readonly number[]): string {
  const [low, high] = [Math.min(0, ...values), Math.max(1, ...values)];
  const blocks = "▁▂▃▄▅▆▇█";
  return values.map((value) => blocks[Math.round((7 * (value - low)) / (high - low))]).join("");
}

/** Mean of the scored values; null without any. */
function mean(values: readonly (number | null)[]): number | null {
  const scored = values.filter((value) => value !== null);
  return scored.length === 0 ? null : scored.reduce((sum, value) => sum + value, 0) / scored.length;
}
