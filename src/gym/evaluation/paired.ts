// Compares two players on the same questions and tests whether the difference is significant.
//  - McNemar's exact test assumes independent questions.
//  - The permutation test flips the sign of whole databases: questions on one database succeed and fail together.
import { random } from "../../random.ts";
import { studentT } from "./cluster.ts";
import { type Interval, Z } from "./wilson.ts";

/** One question that both players answered. */
export interface PairedOutcome {
  readonly database: string;
  readonly a: boolean;
  readonly b: boolean;
}

/** Rates are 0–1; the difference is b − a. */
export interface PairedComparison {
  readonly questions: number;
  readonly databases: number;
  readonly a: number;
  readonly b: number;
  readonly difference: number;
  /** 95 % interval over databases, never narrower than over questions; null for fewer than two databases. */
  readonly difference_ci: Interval | null;
  /** Number of questions that only a (only b) answered right. */
  readonly only_a: number;
  readonly only_b: number;
  /** Two-sided p values. */
  readonly mcnemar_p: number;
  readonly permutation_p: number;
  /** Number of sign patterns tried; if it is `2 ** databases`, all of them. */
  readonly permutations: number;
}

/**
 * Compares two players. Throws RangeError if there are no questions.
 *
 * @example
 * const outcomes = [{ database: "shop", a: true, b: false }, { database: "zoo", a: true, b: true }];
 * const { difference, permutation_p } = comparePaired(outcomes, 1);
 */
export function comparePaired(outcomes: readonly PairedOutcome[], seed: number): PairedComparison {
  if (outcomes.length === 0) throw new RangeError("comparePaired: there are no questions");
  const clusters = new Map<string, { difference: number; trials: number }>();
  for (const { database, a, b } of outcomes) {
    const { difference, trials } = clusters.get(database) ?? { difference: 0, trials: 0 };
    clusters.set(database, { difference: difference + Number(b) - Number(a), trials: trials + 1 });
  }
  const counted = [...clusters.values()];
  const count = (test: (outcome: PairedOutcome) => boolean) => outcomes.filter(test).length;
  const [only_a, only_b] = [count(({ a, b }) => a && !b), count(({ a, b }) => b && !a)];
  const { p, permutations } = signFlips(
    counted.map(({ difference }) => difference),
    seed,
  );
  return {
    questions: outcomes.length,
    databases: counted.length,
    a: count(({ a }) => a) / outcomes.length,
    b: count(({ b }) => b) / outcomes.length,
    difference: (only_b - only_a) / outcomes.length,
    difference_ci: differenceInterval(counted, only_a, only_b),
    only_a,
    only_b,
    mcnemar_p: mcnemar(only_a, only_b),
    permutation_p: p,
    permutations,
  };
}

/**
 * McNemar's exact test: the two-sided probability of a split at least this uneven if each discordant question were a
 * fair coin toss.
 */
export function mcnemar(onlyA: number, onlyB: number): number {
  const n = onlyA + onlyB;
  const fewer = Math.min(onlyA, onlyB);
  if (2 * fewer === n) return 1;
  let logTerm = -n * Math.LN2; // log probability of 0 heads in n tosses
  let sum = Math.exp(logTerm);
  for (let i = 1; i <= fewer; i++) {
    logTerm += Math.log((n - i + 1) / i);
    sum += Math.exp(logTerm);
  }
  return Math.min(1, 2 * sum);
}

const MAX_EXACT_CLUSTERS = 20; // a million sign patterns take a few milliseconds
const SAMPLED_PATTERNS = 100_000; // near p = 0.05 the standard error is then about 0.001

/**
 * The share of sign patterns whose sum is at least as far from 0 as the observed one: over all patterns, or over a
 * seeded sample plus the observed pattern.
 */
export function signFlips(
  differences: readonly number[],
  seed: number,
): { readonly p: number; readonly permutations: number } {
  const seen = Math.abs(differences.reduce((sum, difference) => sum + difference, 0));
  if (differences.length <= MAX_EXACT_CLUSTERS) {
    const patterns = 2 ** differences.length;
    let [sum, atLeast] = [differences.reduce((total, difference) => total + difference, 0), 0];
    const signs = differences.map(() => 1);
    for (let pattern = 0; pattern < patterns; pattern++) {
      if (Math.abs(sum) >= seen) atLeast++;
      // Consecutive patterns of a Gray code differ in one sign, at the lowest bit that changes.
      const flipped = Math.min(differences.length - 1, 31 - Math.clz32((pattern + 1) & -(pattern + 1)));
      if (flipped < 0) break;
      signs[flipped]! *= -1;
      sum += 2 * signs[flipped]! * differences[flipped]!;
    }
    return { p: atLeast / patterns, permutations: patterns };
  }
  const r = random("sign flips", seed);
  let atLeast = 1;
  for (let pattern = 0; pattern < SAMPLED_PATTERNS; pattern++) {
    let sum = 0;
    for (const difference of differences) sum += r.chance(0.5) ? difference : -difference;
    if (Math.abs(sum) >= seen) atLeast++;
  }
  return { p: atLeast / (SAMPLED_PATTERNS + 1), permutations: SAMPLED_PATTERNS };
}

/**
 * A t interval on how far the databases' differences spread around the common one. If the interval of paired questions
 * is wider, it is used instead: a few databases that happen to agree prove little.
 */
function differenceInterval(
  clusters: readonly { readonly difference: number; readonly trials: number }[],
  onlyA: number,
  onlyB: number,
): Interval | null {
  if (clusters.length < 2) return null;
  const total = clusters.reduce((sum, { trials }) => sum + trials, 0);
  const mean = clusters.reduce((sum, { difference }) => sum + difference, 0) / total;
  const spread = clusters.reduce((sum, { difference, trials }) => sum + (difference - mean * trials) ** 2, 0);
  const deviation = Math.sqrt((clusters.length / (clusters.length - 1)) * spread) / total;
  const half = studentT(clusters.length - 1) * deviation;
  const [low, high] = pairedInterval(onlyA, onlyB, total);
  return [Math.max(-1, Math.min(low, mean - half)), Math.min(1, Math.max(high, mean + half))];
}

/**
 * Agresti and Min's interval of a paired difference: Wald's with half a question added to each of the four cells, so
 * that it has a width even without discordant questions.
 */
function pairedInterval(onlyA: number, onlyB: number, questions: number): Interval {
  const [a, b, n] = [onlyA + 0.5, onlyB + 0.5, questions + 2];
  const mean = (b - a) / n;
  const half = (Z * Math.sqrt(a + b - (b - a) ** 2 / n)) / n;
  return [mean - half, mean + half];
}
