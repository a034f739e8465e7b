import { expect, test } from "vitest";
import { groupRuns, meanLine } from "./run-groups.ts";

const run = (seed: number, learning_rate: number, name: string | null = "starter") => ({
  config: { seed, learning_rate, reward: { cap: 1 }, output_dir: `runs/${seed}` },
  preset: { name, usual: learning_rate === 1 ? { seed: "42" } : { seed: "42", learning_rate: "1" } },
  model_name: "m",
});

test("runs that differ only in seed and folder are one group, named by what differs from the preset", () => {
  const runs = [run(1, 1), run(2, 2), run(3, 1), run(4, 2), run(5, 3, null)];
  const groups = groupRuns(runs, "seeds", (one) => one);
  expect(groups.map(({ label, runs: members }) => [label, members.map(({ config }) => config.seed)])).toEqual([
    ["starter", [1, 3]],
    ["starter, learning_rate 2", [2, 4]],
    ["no preset, learning_rate 3", [5]],
  ]);
  expect(groupRuns(runs, "preset", (one) => one).map(({ label }) => label)).toEqual(["starter", "no preset"]);
  expect(groupRuns(runs, "model", (one) => one)).toHaveLength(1);
});

test("the mean is over the steps that all runs have, with the lowest and the highest value", () => {
  const line = (x: number[], y: number[]) => ({ label: "", colour: "--ink", points: { x, y } });
  const time = (x: number[]) => x.map((step) => 10 * step);
  const [a, b] = [
    [1, 2, 4],
    [2, 4, 5],
  ] as const;
  const mean = meanLine(
    [
      { line: line(time([...a]), [0, 1, 2]), steps: a },
      { line: line([30, 50, 60], [3, 4, 5]), steps: b },
    ],
    "both",
  );
  expect(mean.points).toEqual({ x: [25, 45], y: [2, 3] });
  expect(mean.band).toEqual({ low: { x: [25, 45], y: [1, 2] }, high: { x: [25, 45], y: [3, 4] } });
});
