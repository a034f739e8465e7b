// The 95 % confidence interval of a rate over clusters: questions on one database succeed and fail together.
import { type Interval, wilson } from "./wilson.ts";

/** Successes and trials of one cluster. */
export interface Cluster {
  readonly successes: number;
  readonly trials: number;
}

// 97.5 % points of Student's t for 1, 2, … 30 degrees of freedom.
const T = [
  12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281, 2.201, 2.1788, 2.1604, 2.1448, 2.1314,
  2.1199, 2.1098, 2.1009, 2.093, 2.086, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];

/**
 * A t interval on the variance between clusters, with n − 1 degrees of freedom for n clusters, clamped to 0–1. It is
 * never narrower than Wilson's: a few clusters that happen to agree prove little. Null for fewer than two clusters.
 */
export function clusterInterval(clusters: readonly Cluster[]): Interval | null {
  const counted = clusters.filter(({ trials }) => trials > 0);
  const total = counted.reduce((sum, { trials }) => sum + trials, 0);
  const successes = counted.reduce((sum, cluster) => sum + cluster.successes, 0);
  const plain = wilson(successes, total);
  if (counted.length < 2 || !plain) return null;
  const rate = successes / total;
  // Variance of the ratio estimator: how far each cluster deviates from the common rate.
  const surplus = counted.reduce((sum, cluster) => sum + (cluster.successes - rate * cluster.trials) ** 2, 0);
  const deviation = Math.sqrt((counted.length / (counted.length - 1)) * surplus) / total;
  const half = studentT(counted.length - 1) * deviation;
  return [Math.max(0, Math.min(plain[0], rate - half)), Math.min(1, Math.max(plain[1], rate + half))];
}

/** The 97.5 % point of Student's t. */
export function studentT(degrees: number): number {
  return T[degrees - 1] ?? 2;
}
