// A training that is killed or interrupted and then resumed ends with the same bytes as an uninterrupted one.
import { existsSync, readFileSync } from "node:fs";
import { random } from "sqlenv";
import { afterAll, describe, expect, test } from "vitest";
import { ALL, some } from "../helpers/cases.ts";
import { ended, sqlenv, start } from "../helpers/cli-process.ts";
import { type Moment, signalAt, TrainingPlace } from "../helpers/training-place.ts";

/** Settings that exercise different code paths of the trainer's bookkeeping. */
const EVALUATED = { "--max-steps": 6, "--eval-steps": 2, "--eval-episodes": 2, "--save-steps": 2 };
const FOUR_STEPS_A_GENERATION = {
  ...{ "--max-steps": 8, "--per-device-train-batch-size": 3, "--generation-batch-size": 6, "--save-steps": 3 },
  ...{ "--num-iterations": 2, "--beta": 0.05, "--logging-steps": 3 },
  ...{
    "--sync-ref-model": "true",
    "--ref-model-sync-steps": 2,
    "--use-adaptive-entropy": "true",
    "--entropy-target": 3,
  },
};
const TWO_GENERATIONS_A_STEP = {
  ...{ "--max-steps": 6, "--per-device-train-batch-size": 3, "--logging-steps": 4 },
  ...{ "--gradient-accumulation-steps": 2, "--steps-per-generation": 1 },
};
type Settings = Readonly<Record<`--${string}`, number | string>>;

const place = await TrainingPlace.make();
afterAll(() => place.remove());

const written = (file: string) => place.written(file);
const logged = (log: string, step: number) => place.logged(log, step);

/** A random moment during that step; some kinds are short, so the next step is late enough. */
function during(step: number, seed: number): Moment {
  const moment = random("moment", seed, step).pick([
    logged("episodes.jsonl", step),
    logged("timings.jsonl", step),
    logged("metrics.jsonl", step),
    written(`checkpoints/.step-${step}`),
    written(`checkpoints/step-${step}`),
  ]);
  const late = logged("timings.jsonl", step + 1);
  return (run) => moment(run) || late(run);
}

const references = new Map<Settings, Promise<string>>();
/** The name of an uninterrupted run with these settings. */
function leftAlone(settings: Settings): Promise<string> {
  const run = `left alone ${references.size}`;
  const reference =
    references.get(settings) ??
    place.trainInside(run, settings).then(({ code, stderr }) => {
      expect(code, stderr).toBe(0);
      return run;
    });
  references.set(settings, reference);
  return reference;
}

async function resume(run: string): Promise<void> {
  const { code, stderr } = await sqlenv(["train", "--resume", place.path(run), "--threads", "2"]);
  expect(code, stderr).toBe(0);
}

async function expectAsLeftAlone(run: string, settings: Settings): Promise<void> {
  const reference = await leftAlone(settings);
  for (const file of ["metrics.jsonl", "episodes.jsonl", "comparison.json", "model/model.safetensors"])
    expect(readFileSync(place.path(run, file)).equals(readFileSync(place.path(reference, file))), file).toBe(true);
  const steps = (of: string) => place.lines(of, "timings.jsonl").map(({ step }) => step);
  expect(steps(run)).toEqual(steps(reference));
  const files = (of: string) => place.files(of).filter((file) => !/^checkpoints\/step-/.test(file));
  expect(files(run)).toEqual(files(reference));
}

describe.concurrent("SIGKILL at any moment, then --resume", () => {
  const killed: [string, Settings, (seed: number) => Moment[]][] = [
    [
      "with evaluations on the way",
      EVALUATED,
      (seed) => [written("random.json"), during(1, seed), during(4, seed), written("results.json")],
    ],
    [
      "with four optimizer steps per rollout batch, a KL term whose reference moves and an adaptive entropy bonus",
      FOUR_STEPS_A_GENERATION,
      (seed) => [during(3, seed), during(6, seed)],
    ],
  ];
  test.each(some(1, killed))("%s", async (run, settings, moments) => {
    let kills = 0;
    for (const moment of moments(7)) {
      const isBegun = existsSync(place.path(run, "config.yaml"));
      const child = start(isBegun ? ["train", "--resume", place.path(run)] : place.args(run, settings));
      const end = ended(child);
      if (await signalAt(child, run, moment, "SIGKILL")) kills++;
      await end;
    }
    expect(kills).toBeGreaterThan(1); // a run may end before the signal, but not usually
    await resume(run);
    await expectAsLeftAlone(run, settings);
  });
});

describe.skipIf(!ALL).concurrent("Ctrl-C", () => {
  test.each<[string, Settings]>([
    ["keeps every step", EVALUATED],
    ["finishes a step whose gradients wait for more", TWO_GENERATIONS_A_STEP],
  ])("%s, says how to resume, and nothing is different in the end", async (run, settings) => {
    const child = start([...place.args(run, { ...settings, "--save-steps": 100 }), "--json"]);
    const end = ended(child);
    await signalAt(child, run, logged("timings.jsonl", 2), "SIGINT");
    const { code, stdout, stderr } = await end;
    expect({ code, stdout }).toEqual({ code: 130, stdout: "" });
    expect(stderr).toContain(` train --resume ${place.path(run)}`);
    const reached = place.lines(run, "timings.jsonl").at(-1)!.step;
    expect(existsSync(place.path(run, "checkpoints", `step-${reached}`, "engine.safetensors"))).toBe(true);
    await resume(run);
    await expectAsLeftAlone(run, settings);
  });
});
