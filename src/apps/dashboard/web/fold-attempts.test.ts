import { expect, test } from "vitest";
import { episodeLine } from "../../../../test/helpers/run-records.ts";
import { firstDifference, foldAttempts } from "./fold-attempts.ts";

const attempt = (n: number, advantage: number, query: string) => {
  const line = episodeLine(1);
  const steps = line.steps.map((step, i) =>
    i === 1 ? { ...step, action: { ...step.action, argument: query } } : step,
  );
  return { n, gold: null, episode: { ...line, generation: n, advantage, steps } };
};

test("equal attempts are folded; the worst is beside the best", () => {
  const group = [
    attempt(0, -0.2, "SELECT 1"),
    attempt(1, 0.5, "SELECT 2"),
    attempt(2, -0.7, "SELECT 3"),
    attempt(3, 0.5, "SELECT 2"),
  ];
  expect(foldAttempts(group).map((same) => same.map(({ n }) => n))).toEqual([[1, 3], [2], [0]]);
  expect(foldAttempts([])).toEqual([]);
});

test("the first difference is the first other action, or none", () => {
  const [a, b] = [attempt(0, 0, "SELECT 1").episode, attempt(1, 0, "SELECT 2").episode];
  expect([firstDifference(a, b), firstDifference(a, a)]).toEqual([1, null]);
  expect(firstDifference({ steps: a.steps.slice(0, 1) }, a)).toBe(1);
});
