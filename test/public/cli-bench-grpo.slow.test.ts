// `sqlenv bench grpo` on the command line: a very small model, a peer that is a few lines of script, the JSON's shape.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { sqlenv, sqlenvInside } from "../helpers/cli-process.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-bench-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const ARGS = ["bench", "grpo", "--tiny", "--shape", "2x4", "--steps", "2", "--threads", "1", "--json"];

/** A "Python" that plays the script without a model. */
function fakePeer(): string {
  const file = join(scratch, "peer.mjs");
  const program = `#!${process.execPath}
import { createInterface } from "node:readline";
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const hear = async () => JSON.parse((await lines.next()).value);
const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
const { script, num_generations } = await hear();
say({ ready: { versions: { trl: "0" }, parameters: 1 } });
for (const step of script) {
  await hear();
  say({ reset: step.map(({ question_id }) => question_id) });
  await hear();
  const rewards = step.map((_, i) => 0.01 * (i % num_generations));
  for (let turn = 0, live = step.map((_, i) => i); live.length > 0; turn++) {
    say({ step: live.map((episode) => [episode, step[episode].turns[turn]]) });
    const told = await hear();
    live.forEach((episode, i) => { rewards[episode] += told[i].reward; });
    live = live.filter((_, i) => !told[i].done);
  }
  const seconds = { step: 10, sampling: 5, environment: 1, training: 3, rest: 1 };
  const played = { mean_reward: rewards.reduce((sum, r) => sum + r) / rewards.length };
  say({ stepped: { seconds, played, cpu_s: 10 } });
}
`;
  writeFileSync(file, program, { mode: 0o755 });
  return file;
}

test("prints the parts of a step without a peer", async () => {
  const { code, stdout } = await sqlenv(ARGS);
  expect(code).toBe(0);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({ shape: "2x4", questions: 2, generations: 4, steps: 2, peer: null, ratios: null });
  const { median_s, computed_share, grad_norms, steps_s } = result.ours;
  expect(Object.keys(median_s)).toEqual(["step", "sampling", "environment", "training", "rest"]);
  expect(median_s.step).toBeGreaterThan(0);
  expect(computed_share).toBeLessThan(0.6); // groups share their prompt and more
  expect(grad_norms.every((norm: number) => norm > 0)).toBe(true);
  expect(steps_s).toHaveLength(2);
  expect(result.shapes).toHaveLength(1);
});

test.skipIf(!process.env.SQLENV_TEST_ALL)(
  "a peer that computed something else is reported with every number that differs",
  async () => {
    const { code, stderr } = await sqlenvInside([...ARGS, "--peer", fakePeer()]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/the peer played different episodes: episodes undefined instead of 8, .*checksum/);
    expect(stderr).not.toMatch(/mean_reward/); // its environments are ours: the rewards are equal
  },
);

test("an unknown shape is a usage error", async () => {
  const { code, stderr } = await sqlenvInside(["bench", "grpo", "--shape", "3x3"]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/no such shape: 3x3/);
});
