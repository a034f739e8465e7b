// What an episode is worth: separate functions, so that each has its own curve. Their weighted sum is what GRPO compares.
import { messageOf, SqlEnvError, UsageError } from "../errors.ts";
import type { Message } from "../players/index.ts";
import { meaningOf } from "./metric-names.ts";
import type { Episode } from "./records.ts";

/** What a reward function is told besides what was said. Lists are in the order of the completions. */
export interface RewardContext {
  readonly episodes: readonly Episode[];
  /** The questions' texts. */
  readonly prompts: readonly string[];
  /** Optimizer step the episodes are for, from 1. */
  readonly step: number;
  /** Adds a number to the step's metrics; several under one name are averaged. */
  log_metric(name: string, value: number): void;
}

/** One number an episode, null where it has no opinion. A completion is everything after the first prompt. */
export type RewardFunction = (
  completions: readonly (readonly Message[])[],
  context: RewardContext,
) => readonly (number | null)[] | Promise<readonly (number | null)[]>;

/** 1 for the right answer, else 0. */
export function rewardCorrectness(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ correctness }) => correctness);
}

/** How near the best result came to the gold answer: Φ, from 0 to 1. */
export function rewardProgress(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ progress }) => progress);
}

/** What looking earned and repeating cost, without the step costs. */
export function rewardOperational(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ operational }) => operational);
}

export const REWARD_FUNCTIONS: readonly RewardFunction[] = [rewardCorrectness, rewardProgress, rewardOperational];

/** A function's name in metrics: `rewardCorrectness` is reward_correctness. */
export function rewardName(reward: RewardFunction): string {
  return OURS.get(reward) ?? (reward.name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase() || "reward");
}

/** Written out, since what packs a page may shorten the names of functions. */
const OURS: ReadonlyMap<RewardFunction, string> = new Map<RewardFunction, string>([
  [rewardCorrectness, "reward_correctness"],
  [rewardProgress, "reward_progress"],
  [rewardOperational, "reward_operational"],
]);

/** Throws UsageError when two functions would share a name in metrics, or the weights are not as many. */
export function checkRewards(functions: readonly RewardFunction[], weights: readonly number[] | null): void {
  const names = functions.map(rewardName);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined)
    throw new UsageError({
      what: "two reward functions have the same name",
      value: twice,
      remedy: "rename one: metrics are kept by name",
    });
  if (weights && weights.length !== functions.length)
    throw new UsageError({
      what: `${functions.length} reward functions (${names.join(", ")}) need as many reward_weights, not`,
      value: weights.length,
      remedy: "give one for each, in this order",
    });
}

export interface Scores {
  /** A row an episode, a column a function. */
  readonly rows: readonly (readonly (number | null)[])[];
  /** What the functions logged, averaged. */
  readonly metrics: Readonly<Record<string, number>>;
}

/** Asks every function. One that throws, or answers with anything but a number or null for each episode, is named. */
export async function score(
  episodes: readonly Episode[],
  functions: readonly RewardFunction[],
  step: number,
): Promise<Scores> {
  const completions = episodes.map(({ messages }) => messages.slice(2));
  const prompts = episodes.map(({ question }) => question);
  const logged: Record<string, number[]> = {};
  const log_metric = (name: string, value: number) => {
    if (meaningOf(name) !== undefined)
      throw new UsageError({ what: "a metric of this name is logged already", value: name, remedy: "choose another" });
    logged[name] = [...(logged[name] ?? []), value];
  };
  const columns = await Promise.all(
    functions.map(async (scoreAll) => {
      const failed = (what: string, value: string | number | undefined, cause?: unknown) =>
        new SqlEnvError("reward_failed", {
          what: `reward function ${scoreAll.name || "(anonymous)"} ${what}`,
          value,
          remedy: "give one number, or null for no opinion, for each completion",
          cause,
        });
      let scores: readonly (number | null)[];
      try {
        scores = await scoreAll(completions, { episodes, prompts, step, log_metric });
      } catch (cause) {
        throw failed("threw", messageOf(cause), cause);
      }
      if (!Array.isArray(scores)) throw failed("did not give a list but", typeof scores);
      if (scores.length !== episodes.length)
        throw failed(
          `gave another number of scores than the ${episodes.length} completions it was given`,
          scores.length,
        );
      const isScore = (value: unknown) => value === null || (typeof value === "number" && Number.isFinite(value));
      const odd = scores.findIndex((value) => !isScore(value));
      if (odd >= 0) throw failed("gave", String(scores[odd]));
      return scores;
    }),
  );
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    // What the environment could not score is nobody's to score: it would count as bad where others have points.
    rows: episodes.map(({ correctness }, i) => columns.map((column) => (correctness === null ? null : column[i]!))),
    metrics: Object.fromEntries(Object.entries(logged).map(([name, values]) => [name, mean(values)])),
  };
}
