import { expect, test } from "vitest";
import { comparePaired, mcnemar, signFlips } from "./paired.ts";

test("McNemar's exact test gives the values of SciPy's binomtest", () => {
  const cases: readonly [number, number, number][] = [
    [0, 0, 1],
    [5, 5, 1],
    [1, 0, 1],
    [3, 10, 0.09228515625],
    [0, 8, 0.0078125],
    [121, 59, 4.4344492637551645e-6],
    [300, 420, 8.807756168615114e-6],
    [40, 172, 1.0713844677365221e-20],
  ];
  for (const [a, b, p] of cases) {
    expect(mcnemar(a, b) / p).toBeCloseTo(1, 9);
    expect(mcnemar(b, a)).toBe(mcnemar(a, b));
  }
});

test("the permutation test gives the values of SciPy's exact permutation_test, and a sample approximates them", () => {
  expect(signFlips([3, -1, 4, 1, -5, 9, 2, 6], 1)).toEqual({ p: 0.1875, permutations: 256 });
  const differences = [2, 0, 1, -3, 4, 1, 1, -2, 5, 0, 2, 3, -1];
  expect(signFlips(differences, 1).p).toBe(0.173828125);
  const padded = [...differences, ...Array<number>(8).fill(0)]; // more clusters than are enumerated, with the same sums
  const sampled = signFlips(padded, 1);
  expect(sampled.permutations).toBe(100_000);
  expect(Math.abs(sampled.p - 0.173828125)).toBeLessThan(0.005);
  expect(signFlips(padded, 1)).toEqual(sampled);
  expect(signFlips([], 1).p).toBe(1);
});

test("two players are compared question by question, with an interval over databases", () => {
  // Ten databases with ten questions each; b answers this many more right on each.
  const differences = [2, 0, 1, -3, 4, 1, 1, -2, 5, 0];
  const outcomes = differences.flatMap((difference, d) =>
    Array.from({ length: 10 }, (_, i) => ({
      database: `db${d}`,
      a: i < 3 + Math.max(0, -difference),
      b: i < 3 + Math.max(0, difference),
    })),
  );
  const { difference_ci, ...rest } = comparePaired(outcomes, 1);
  expect(rest).toMatchObject({ questions: 100, databases: 10, a: 0.35, b: 0.44, only_a: 5, only_b: 14 });
  expect(rest.difference).toBeCloseTo(0.09, 12);
  expect(rest.mcnemar_p).toBe(mcnemar(5, 14));
  expect(difference_ci![0]).toBeCloseTo(-0.08343204914786238, 4); // SciPy's t interval of the mean
  expect(difference_ci![1]).toBeCloseTo(0.2634320491478624, 4);
  expect(comparePaired(outcomes.slice(0, 10), 1).difference_ci).toBeNull();
});

test("the interval is never narrower than that of paired questions", () => {
  const pairs = (only: number, both: number) =>
    Array.from({ length: 100 }, (_, i) => ({ database: `db${i % 2}`, a: i < both, b: i < both + only }));
  // Each database gains exactly five questions: there is no spread between them.
  const gained = comparePaired(pairs(10, 40), 1).difference_ci!;
  expect(gained[0]).toBeCloseTo(0.03722, 4); // 10/102 ± 1.96 √(11 − 10²/102) / 102
  expect(gained[1]).toBeCloseTo(0.15886, 4);
  // No verdict differs: a difference of a question or two is still possible.
  const [low, high] = comparePaired(pairs(0, 40), 1).difference_ci!;
  expect(low).toBeCloseTo(-0.0192, 3);
  expect(high).toBe(-low);
});
