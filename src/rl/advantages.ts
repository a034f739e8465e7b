// Rewards → advantages: how much better an episode did than the others of its group.
//
// GRPO needs no value network: several episodes are sampled for each task (a group), and their mean reward is the
// baseline. Formulas, names and the 1e-4 are TRL 1.16's (GRPOTrainer._generate_and_score_completions).
import { UsageError } from "../errors.ts";

/** Keeps advantages of groups whose rewards hardly differ from becoming huge. */
const EPSILON = 1e-4;
/** A standard deviation up to this is rounding (torch.isclose to 0). */
const ZERO_STD = 1e-8;

export interface AdvantageOptions {
  /** Completions of each task; rows of one task, a group, are adjacent. */
  readonly num_generations: number;
  /** One weight per reward function; null: all 1. */
  readonly reward_weights?: readonly number[] | null;
  /** Divide by the standard deviation of the group, of the batch, or not at all (true: group, false: none). */
  readonly scale_rewards?: "group" | "batch" | "none" | boolean;
  /** Normalize the sum of the rewards, or normalize each reward by itself and add the results (GDPO). */
  readonly multi_objective_aggregation?: "sum_then_normalize" | "normalize_then_sum";
  /** Names of the reward functions, for the metrics. */
  readonly reward_names?: readonly string[];
  /**
   * Indices of the rows to learn from, in whole groups; other rows get advantage 0 and do not count in any std.
   * @default all
   */
  readonly learned?: readonly number[];
}

export interface Advantages {
  /**
   * One per row; exactly 0 if there is nothing to learn: equal rewards in the group, no score, or a row that is not in
   * `learned`.
   */
  readonly advantages: number[];
  /** Weighted sum of each row's rewards; null when no function scored it. */
  readonly rewards: (number | null)[];
  /** reward, reward_std, frac_reward_zero_std, rewards/{name}/mean and /std; NaN if nothing was scored. */
  readonly metrics: Record<string, number>;
}

/**
 * @param rows [completions × reward functions]; null if a function does not score a completion
 *
 * @example
 * const rewards = [[1], [0], [1], [1]]; // four completions of one question, one reward function
 * const { advantages } = computeAdvantages(rewards, { num_generations: 4 });
 */
export function computeAdvantages(
  rows: readonly (readonly (number | null)[])[],
  {
    num_generations,
    reward_weights = null,
    scale_rewards = "group",
    multi_objective_aggregation = "sum_then_normalize",
    reward_names = [],
    learned,
  }: AdvantageOptions,
): Advantages {
  const functions = rows[0]?.length ?? 0;
  const weights = reward_weights ?? Array.from({ length: functions }, () => 1);
  check(rows, weights, num_generations);

  const scale = scale_rewards === true ? "group" : scale_rewards === false ? "none" : scale_rewards;
  const totals = rows.map((row) => weightedSum(row, weights));
  const normalize = (of: readonly number[] | null) => {
    const pick = <T>(values: readonly T[]) => (of ? of.map((i) => values[i]!) : values);
    return multi_objective_aggregation === "sum_then_normalize"
      ? normalizeSums(pick(totals), num_generations, scale)
      : sumNormalized(pick(rows), weights, num_generations);
  };
  const { advantages: all, stds } = normalize(null);
  const some = learned && learned.length < rows.length ? normalize(learned).advantages : null;
  const placed = new Map(some?.map((advantage, n) => [learned![n]!, advantage]));
  const advantages = some ? rows.map((_, i) => placed.get(i) ?? 0) : all;

  const metrics: Record<string, number> = {};
  for (const [k, name] of reward_names.entries()) {
    const scores = rows.map((row) => row[k]!);
    metrics[`rewards/${name}/mean`] = mean(scores);
    metrics[`rewards/${name}/std`] = sampleStd(scores);
  }
  metrics.reward = mean(totals);
  metrics.reward_std = sampleStd(totals);
  metrics.frac_reward_zero_std = mean(stds.map((std) => (std <= ZERO_STD ? 1 : 0)));
  return { advantages, rewards: totals, metrics };
}

/** A_i = (r_i − mean of its group) / (std + 1e-4), r_i the weighted sum. */
function normalizeSums(totals: readonly (number | null)[], size: number, scale: "group" | "batch" | "none") {
  const batchStd = sampleStd(totals);
  const stds: number[] = [];
  const advantages: number[] = [];
  for (const group of groupsOf(totals, size)) {
    const centre = mean(group);
    const groupStd = sampleStd(group);
    const std = scale === "batch" ? batchStd : groupStd;
    for (const total of group) {
      stds.push(std);
      const learnable = total !== null && groupStd > ZERO_STD;
      advantages.push(learnable ? (total - centre) / (scale === "none" ? 1 : std + EPSILON) : 0);
    }
  }
  return { advantages, stds };
}

/**
 * GDPO: each reward is normalized within its group, so that none dominates; then the sums are normalized over the
 * batch.
 */
function sumNormalized(rows: readonly (readonly (number | null)[])[], weights: readonly number[], size: number) {
  const normalized = groupsOf(rows, size).flatMap((group) => {
    const columns = weights.map((_, k) => zScores(group.map((row) => row[k]!)));
    return group.map((row, i) =>
      isUnscored(row)
        ? null
        : (weightedSum(
            columns.map((column) => column[i]!),
            weights,
          ) ?? 0),
    );
  });
  const std = sampleStd(normalized);
  return { advantages: zScores(normalized).map((z) => z ?? 0), stds: normalized.map(() => std) };
}

/** (x − mean) / (std + 1e-4); null if x is null or the only value. */
function zScores(values: readonly (number | null)[]): (number | null)[] {
  const [centre, std] = [mean(values), sampleStd(values)];
  return values.map((x) => (x === null || Number.isNaN(std) ? null : (x - centre) / (std + EPSILON)));
}

/** Σ_k w_k · r_k over the functions that scored; null when none did. */
function weightedSum(row: readonly (number | null)[], weights: readonly number[]): number | null {
  return isUnscored(row) ? null : row.reduce<number>((total, r, k) => total + (r === null ? 0 : weights[k]! * r), 0);
}

function isUnscored(row: readonly (number | null)[]): boolean {
  return row.every((r) => r === null);
}

/** Mean of the values that are not null; NaN if there are none. */
function mean(values: readonly (number | null)[]): number {
  const known = values.filter((x) => x !== null);
  return known.reduce((total, x) => total + x, 0) / known.length;
}

/** Sample standard deviation (n − 1) of the values that are not null; NaN of fewer than two. */
function sampleStd(values: readonly (number | null)[]): number {
  const known = values.filter((x) => x !== null);
  if (known.length < 2) return Number.NaN;
  const centre = mean(known);
  return Math.sqrt(known.reduce((total, x) => total + (x - centre) ** 2, 0) / (known.length - 1));
}

function groupsOf<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: values.length / size }, (_, g) => values.slice(g * size, (g + 1) * size));
}

function check(rows: readonly (readonly (number | null)[])[], weights: readonly number[], size: number): void {
  const functions = rows[0]?.length ?? weights.length;
  if (weights.length !== functions)
    throw new UsageError({
      what: `${functions} reward functions need as many reward_weights, not`,
      value: weights.length,
    });
  if (!Number.isInteger(size) || size < 1 || rows.length % size !== 0)
    throw new UsageError({
      what: `${rows.length} completions do not make groups of num_generations`,
      value: size,
      remedy: "give every question the same number of completions",
    });
  const odd = rows.findIndex((row) => row.length !== functions || row.some((r) => r !== null && !Number.isFinite(r)));
  if (odd >= 0)
    throw new UsageError({
      what: `rewards of completion ${odd} must be ${functions} numbers or nulls`,
      value: JSON.stringify(rows[odd]),
      remedy: "return null for a completion that cannot be scored",
    });
}
