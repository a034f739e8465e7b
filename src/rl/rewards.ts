// Reward functions: separate, so that each has its own curve. GRPO compares their weighted sums.
import { messageOf, SqlEnvError, UsageError } from "../errors.ts";
import type { Message } from "../gym/players/index.ts";
import { meaningOf } from "./metric-names.ts";
import type { Episode } from "./run/records.ts";

/** What a reward function gets besides the completions. Lists are in the order of the completions. */
export interface RewardContext {
  readonly episodes: readonly Episode[];
  /** The texts of the tasks. */
  readonly prompts: readonly string[];
  /** Optimizer step that the episodes are for, from 1. */
  readonly step: number;
  /** Adds a number to the step's metrics; several under one name are averaged. */
  log_metric(name: string, value: number): void;
}

/**
 * Returns one number per episode; null if it does not score an episode. A completion is everything after the first
 * prompt.
 */
export type RewardFunction = (
  completions: readonly (readonly Message[])[],
  context: RewardContext,
) => readonly (number | null)[] | Promise<readonly (number | null)[]>;

/**
 * 1 for the right answer, else 0.
 *
 * @example
 * const trainer = buildTrainer({ model, data, config, rewardFuncs: [rewardCorrectness] });
 */
export function rewardCorrectness(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ correctness }) => correctness);
}

/**
 * How near the best result came to the gold answer: Φ, from 0 to 1.
 *
 * @example
 * const trainer = buildTrainer({ model, data, config, rewardFuncs: [rewardCorrectness, rewardProgress] });
 */
export function rewardProgress(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ progress }) => progress);
}

/**
 * Rewards of new information and costs of repeats, without the step costs.
 *
 * @example
 * const trainer = buildTrainer({ model, data, config, rewardFuncs: [rewardCorrectness, rewardOperational] });
 */
export function rewardOperational(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ operational }) => operational);
}

/**
 * The environment's own reward: the sum over the episode's steps.
 *
 * @example
 * const trainer = new GRPOTrainer({ model, data, config, rewardFuncs: [rewardEnvironment] });
 */
export function rewardEnvironment(_: readonly (readonly Message[])[], { episodes }: RewardContext): (number | null)[] {
  return episodes.map(({ reward }) => reward);
}

export const REWARD_FUNCTIONS: readonly RewardFunction[] = [rewardCorrectness, rewardProgress, rewardOperational];

/** A function's name in metrics: `rewardCorrectness` is reward_correctness. */
export function rewardName(reward: RewardFunction): string {
  return OURS.get(reward) ?? (reward.name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase() || "reward");
}

/** Keyed by the function, not by its name, which bundlers may shorten. */
const OURS: ReadonlyMap<RewardFunction, string> = new Map<RewardFunction, string>([
  [rewardCorrectness, "reward_correctness"],
  [rewardProgress, "reward_progress"],
  [rewardOperational, "reward_operational"],
  [rewardEnvironment, "reward_environment"],
]);

/** Throws UsageError if two functions have the same metric name, or the number of weights differs. */
export function checkRewards(functions: readonly RewardFunction[], weights: readonly number[] | null): void {
  const names = functions.map(rewardName);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined)
    throw new UsageError({
      what: "two reward functions have the same name",
      value: twice,
      remedy: "rename one: metrics are logged by name",
    });
  if (weights && weights.length !== functions.length)
    throw new UsageError({
      what: `${functions.length} reward functions (${names.join(", ")}) need as many reward_weights, not`,
      value: weights.length,
      remedy: "give one for each, in this order",
    });
}

export interface Scores {
  /** [episodes × functions] */
  readonly rows: readonly (readonly (number | null)[])[];
  /** Means of the values that functions logged. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface ScoreOptions {
  /** Seconds that a function may take; null: no limit. @default null */
  readonly timeout?: number | null;
  /** After an abort, functions have GRACE seconds left. */
  readonly signal?: AbortSignal | undefined;
}

/** Seconds that a function has left after a stop request: most end in time, and their scores are kept. */
const GRACE = 2;

/** Throws when the trainer itself logs a metric of this name. */
export function checkMetricName(name: string): void {
  if (meaningOf(name) === undefined) return;
  throw new UsageError({ what: "a metric of this name is logged already", value: name, remedy: "choose another" });
}

/** Calls every function. The error names one that throws, takes too long, or does not return a number or null per episode. */
export async function score(
  episodes: readonly Episode[],
  functions: readonly RewardFunction[],
  step: number,
  { timeout = null, signal }: ScoreOptions = {},
): Promise<Scores> {
  const completions = episodes.map(({ messages }) => messages.slice(2));
  const prompts = episodes.map(({ question }) => question);
  const logged: Record<string, number[]> = {};
  const log_metric = (name: string, value: number) => {
    checkMetricName(name);
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
      const limit = new Limit(timeout, signal);
      try {
        const answer = async () => scoreAll(completions, { episodes, prompts, step, log_metric });
        scores = await Promise.race([answer(), limit.reached]);
      } catch (cause) {
        if (cause instanceof SqlEnvError && cause.code === "reward_failed") throw cause; // names its function already
        if (signal?.aborted && cause === signal.reason) throw cause;
        if (cause === TOO_LONG) throw failed("took longer than reward_timeout allows", `${timeout} seconds`);
        throw failed("threw", messageOf(cause), cause);
      } finally {
        limit.clear();
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
    // Unscorable episodes get no score from any function: any score would rank them against the other episodes of their
    // group.
    rows: episodes.map(({ correctness }, i) => columns.map((column) => (correctness === null ? null : column[i]!))),
    metrics: Object.fromEntries(Object.entries(logged).map(([name, values]) => [name, mean(values)])),
  };
}

const TOO_LONG = Symbol("too long");

/** Rejects after a time, or GRACE seconds after an abort. */
class Limit {
  readonly reached: Promise<never>;
  readonly #timers: ReturnType<typeof setTimeout>[] = [];
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort: () => void;

  constructor(seconds: number | null, signal: AbortSignal | undefined) {
    this.#signal = signal;
    let reject: (reason: unknown) => void;
    this.reached = new Promise((_, fail) => {
      reject = fail;
    });
    const after = (time: number, reason: () => unknown) =>
      void this.#timers.push(setTimeout(() => reject(reason()), 1000 * time));
    this.#onAbort = () => after(GRACE, () => signal?.reason);
    if (seconds !== null) after(seconds, () => TOO_LONG);
    if (signal?.aborted) this.#onAbort();
    else signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  clear(): void {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}
