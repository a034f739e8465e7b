// Trainings whose episodes step on threads: the same bytes for any number of them, also when interrupted and resumed, and a
// training that continues when they die or hang.
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { ended, type Ran, sqlenv, start } from "../helpers/cli-process.ts";
import { signalAt, TrainingPlace } from "../helpers/training-place.ts";

const SETTINGS = { "--eval-steps": 2, "--eval-episodes": 2, "--pass-k": 2, "--pass-questions": 2 };
type Settings = Readonly<Record<string, string | number>>;
const place = await TrainingPlace.make();
afterAll(() => place.remove());
/** With dynamic sampling and a small instruction budget, so that groups are replaced and some statements are stopped. */
const REFILLED = { ...SETTINGS, "--dynamic-sampling": 2, "--max-instructions": 1_000 };
for (const [run, settings] of Object.entries({ "0": SETTINGS, "refilled 0": REFILLED })) {
  const { code, stderr } = await place.trainInside(run, { ...settings, "--environment-threads": 0 });
  if (code !== 0) throw new Error(stderr);
}

function expectSame(run: string, reference = "0"): void {
  const files = ["model/model.safetensors", "episodes.jsonl", "metrics.jsonl", "comparison.json"];
  for (const file of [...files, "random.json", "before.json", "pass_at_k.json"])
    expect(readFileSync(place.path(run, file)).equals(readFileSync(place.path(reference, file))), file).toBe(true);
}

describe("results do not depend on environment threads", () => {
  test.each([1, 3])("%i of them", async (threads) => {
    const { code, stderr } = await place.trainInside(`${threads}`, { ...SETTINGS, "--environment-threads": threads });
    expect(code, stderr).toBe(0);
    expectSame(`${threads}`);
    for (const { environment_work } of place.lines(`${threads}`, "timings.jsonl"))
      expect(environment_work).toBeGreaterThan(0);
  });

  test.each([
    ["stopped", SETTINGS, "0"],
    ["refilled, stopped", REFILLED, "refilled 0"],
  ])("%s and resumed", async (run, settings, other) => {
    const child = start(place.args(run, { ...settings, "--environment-threads": 2 }));
    const end = ended(child);
    await signalAt(child, run, place.logged("episodes.jsonl", 2), "SIGINT");
    expect((await end).code).toBe(130);
    const { code, stderr } = await sqlenv(["train", "--resume", place.path(run)]);
    expect(code, stderr).toBe(0);
    expectSame(run, other);
  });
});

// At the same time: a hanging thread is noticed after half a minute.
describe.concurrent("a training continues", { timeout: 180_000 }, () => {
  const preload = new URL("../helpers/preload/environment-faults.mjs", import.meta.url).href;
  const train = (run: string, fault: string, { once, ...settings }: Settings = {}): Promise<Ran> =>
    sqlenv(place.args(run, { ...settings, "--environment-threads": 2 }), "", {
      ...{ NODE_OPTIONS: `--import=${preload}`, SQLENV_FAULT: fault },
      ...(once !== undefined && { SQLENV_FAULT_ONCE: String(once) }),
    });
  const broken = (run: string) => place.lines(run, "episodes.jsonl").filter(({ error }) => error !== null);

  test.each(["dies", "hangs"])("when a thread %s once", async (fault) => {
    const { code, stdout, stderr } = await train(fault, fault, { once: place.path(`${fault}-once`) });
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/an environment thread was lost \(.*\) with \d+ episodes; another begins/);
    expect(place.lines(fault, "timings.jsonl")).toHaveLength(4);
    for (const { error, advantage, total_reward, correctness } of broken(fault)) {
      expect(error).toBe("the environment's thread was lost");
      expect({ advantage, total_reward, correctness }).toEqual({
        advantage: 0,
        total_reward: null,
        correctness: null,
      });
    }
  });

  test("when every thread dies after a few steps", async () => {
    const { code, stderr } = await train("mortal", "dies", { "--max-steps": 2, "--final-eval-episodes": 1 });
    expect(code, stderr).toBe(0);
    expect(broken("mortal").length).toBeGreaterThan(0);
  });

  test("only where threads can be started", async () => {
    const { code, stderr } = await train("none", "cannot start");
    expect(code).toBe(1);
    expect(stderr).toContain("no environment thread can be started; environments can step in the main thread");
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });
});
