// `sqlenv bench grpo --data` with a very small model on the CPU: the parts of a step, alternating between main thread and threads.
import { writeFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());
const config = place.path("bench.yaml");
writeFileSync(
  config,
  "step_budget: 3\nmax_new_tokens: 12\nmax_completion_length: 36\nmax_context_tokens: 512\nlearning_rate: 0.001\n",
);
const shape = ["--questions", "2", "--num-generations", "3", "--steps", "2", "--threads", "1", "--device", "cpu"];
const bench = (...more: string[]) =>
  sqlenvInside(["bench", "grpo", "--data", place.data, "--model", place.model, "--config", config, ...shape, ...more]);

test("alternates steps with environments in the main thread and on threads, and reports their parts", async () => {
  const { code, stdout, stderr } = await bench("--environment-threads", "2", "--json");
  expect(code, stderr).toBe(0);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({ device: "cpu", episodes: 6, steps: 2, ratio: expect.any(Number) });
  expect(result.sides.map((side: { environment_threads: number }) => side.environment_threads)).toEqual([0, 2]);
  for (const { median_s, steps, environment_share, longest_over_median } of result.sides) {
    expect(steps).toHaveLength(2);
    expect(environment_share).toBeGreaterThanOrEqual(0);
    expect(environment_share).toBeLessThan(1);
    expect(longest_over_median).toBeGreaterThanOrEqual(1);
    expect(Object.keys(median_s)).toEqual([
      ...["step", "sampling", "environment", "environment_work", "training", "rest"],
    ]);
    for (const { step, sampling, environment, training, rest, episodes, turns, unscorable } of steps) {
      expect(sampling + environment + training + rest).toBeCloseTo(step, 6);
      expect({ episodes, unscorable }).toEqual({ episodes: 6, unscorable: 0 });
      expect(turns).toBeGreaterThan(0);
    }
  }
  const [main] = result.sides;
  for (const { environment, environment_work } of main.steps) expect(environment_work).toBeCloseTo(environment, 9);
});

test("without threads it measures the main thread only, and prints a table", async () => {
  const { code, stdout, stderr } = await bench();
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/6 episodes per step, 2 steps each after 2 for warmup/);
  expect(stdout).toMatch(/waiting for environments +│? *\d\.\d{3}/);
  expect(stdout).not.toMatch(/speedup of threads/);
});

test.each([
  [["--data", "small", "--tiny"], /--tiny has no effect with --data/],
  [["--data", "small", "--shape", "2x4"], /--shape has no effect with --data/],
  [["--data", "small", "--steps", "0"], /--steps takes a whole number from 1: 0/],
  [["--data", "small", "--questions", "0"], /--questions must be at least 1: 0/],
  [["--data", "bundled", "--environment-threads", "999"], /environment_threads must be at most 64: 999/],
  [["--environment-threads", "2"], /--environment-threads has no effect without --data/],
])("refuses the flags %j", async (flags, message) => {
  const { code, stderr } = await sqlenvInside(["bench", "grpo", ...flags]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});
