import fc from "fast-check";
import { expect, test } from "vitest";
import { clusterInterval } from "./cluster.ts";
import { wilson } from "./wilson.ts";

test("wilson gives the published values", () => {
  // Newcombe 1998, table I: the score method without continuity correction.
  const cases: readonly [number, number, number, number][] = [
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ];
  for (const [successes, trials, low, high] of cases) {
    const interval = wilson(successes, trials)!;
    expect(interval[0]).toBeCloseTo(low, 4);
    expect(interval[1]).toBeCloseTo(high, 4);
  }
  expect(wilson(0, 0)).toBeNull();
});

test("wilson contains the rate, stays in 0–1, narrows with more trials and is symmetric", () => {
  const counts = fc
    .integer({ min: 1, max: 500 })
    .chain((n) => fc.tuple(fc.integer({ min: 0, max: n }), fc.constant(n)));
  fc.assert(
    fc.property(counts, ([k, n]) => {
      const [low, high] = wilson(k, n)!;
      expect(low).toBeGreaterThanOrEqual(0);
      expect(high).toBeLessThanOrEqual(1);
      expect(low).toBeLessThanOrEqual(k / n);
      expect(high).toBeGreaterThanOrEqual(k / n);
      const [low2, high2] = wilson(4 * k, 4 * n)!;
      expect(high2 - low2).toBeLessThan(high - low);
      expect(wilson(n - k, n)![0]).toBeCloseTo(1 - high, 12);
    }),
  );
});

test("clusterInterval is the t interval of the clusters' rates when they have the same size", () => {
  const rates = [0.4, 0.6, 0.7, 0.9];
  const mean = 0.65;
  const error = Math.sqrt(rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / 3 / 4);
  const [low, high] = clusterInterval(rates.map((rate) => ({ successes: rate * 100, trials: 100 })))!;
  expect(low).toBeCloseTo(mean - 3.1824 * error, 6);
  expect(high).toBeCloseTo(Math.min(1, mean + 3.1824 * error), 6);
});

test("clusterInterval is never narrower than wilson, and needs two clusters", () => {
  const alike = [1, 2, 3].map(() => ({ successes: 10, trials: 10 }));
  expect(clusterInterval(alike)).toEqual(wilson(30, 30));
  expect(clusterInterval([{ successes: 3, trials: 9 }])).toBeNull();
  expect(
    clusterInterval([
      { successes: 3, trials: 9 },
      { successes: 0, trials: 0 },
    ]),
  ).toBeNull();
  expect(clusterInterval([])).toBeNull();
});
