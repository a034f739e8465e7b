// Dynamic sampling, skipped questions and turn-level credit in a killed and resumed training: the same bytes as uninterrupted.
import { existsSync, readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { ended, sqlenv, start } from "../helpers/cli-process.ts";
import { type Moment, signalAt, TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

const REFILL = {
  ...{ "--dynamic-sampling": 2, "--skip-solved": 2, "--turn-credit": 0.25, "--max-steps": 8, "--save-steps": 2 },
  ...{ "--num-generations": 6, "--per-device-train-batch-size": 12, "--learning-rate": 0.02, "--logging-steps": 1 },
};
/** Several rollout batches per step, so that checkpoints fall between them. */
const ACCUMULATED = { ...REFILL, "--gradient-accumulation-steps": 2, "--steps-per-generation": 1, "--max-steps": 4 };
/** A rollout batch makes two steps and is trained on twice: its questions must not be asked again after a resume. */
const SLICED = { ...REFILL, "--per-device-train-batch-size": 6, "--steps-per-generation": 2, "--num-iterations": 2 };

test.each([
  ["refilled", REFILL],
  ["accumulated", ACCUMULATED],
  ["sliced", SLICED],
])("%s", async (name, settings) => {
  const [reference, run] = [`${name} left alone`, `${name} killed`];
  const alone = await place.train(reference, settings);
  expect(alone.code, alone.stderr).toBe(0);
  const metrics = place.lines(reference, "metrics.jsonl").filter((line) => "groups/asked" in line);
  expect(metrics.some((line) => line["groups/refilled"] > 0 && line["groups/kept"] > 0)).toBe(true);
  expect(metrics.some((line) => line["questions/skipped"] > 0)).toBe(true);
  expect(place.lines(reference, "episodes.jsonl").some(({ dropped }) => dropped)).toBe(true);

  const moments: Moment[] = [
    place.logged("timings.jsonl", 2),
    place.logged("episodes.jsonl", 3),
    place.logged("metrics.jsonl", 3),
    place.logged("timings.jsonl", 5),
  ];
  let kills = 0;
  for (const moment of moments) {
    const isBegun = existsSync(place.path(run, "config.yaml"));
    const child = start(isBegun ? ["train", "--resume", place.path(run)] : place.args(run, settings));
    const end = ended(child);
    if (await signalAt(child, run, moment, "SIGKILL")) kills++;
    await end;
  }
  expect(kills).toBeGreaterThan(1);
  const threads = ["--threads", "2", "--environment-threads", "2"];
  const resumed = await sqlenv(["train", "--resume", place.path(run), ...threads]);
  expect(resumed.code, resumed.stderr).toBe(0);
  for (const file of ["metrics.jsonl", "episodes.jsonl", "warnings.jsonl", "model/model.safetensors"])
    expect(readFileSync(place.path(run, file)).equals(readFileSync(place.path(reference, file))), file).toBe(true);
});
