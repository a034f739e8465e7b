// The 95 % confidence interval of a rate over independent trials.

/** 97.5 % point of the normal distribution. */
export const Z = 1.959963984540054;

/** Lower and upper end, each from 0 to 1. */
export type Interval = readonly [number, number];

/**
 * Wilson's score interval: valid for few trials and for rates of 0 and 1. `successes` may be a fraction.
 *
 * @example
 * wilson(42, 50); // the 95 % interval of 84 %
 */
export function wilson(successes: number, trials: number): Interval | null {
  if (trials === 0) return null;
  const rate = successes / trials;
  const spread = Z ** 2 / trials;
  const centre = (rate + spread / 2) / (1 + spread);
  const half = (Z / (1 + spread)) * Math.sqrt((rate * (1 - rate)) / trials + spread / (4 * trials));
  return [rate === 0 ? 0 : Math.max(0, centre - half), rate === 1 ? 1 : Math.min(1, centre + half)];
}
