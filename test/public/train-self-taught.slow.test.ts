// `sqlenv train` with self-taught rounds: their files, and that a killed and resumed run ends with the same bytes.
import { existsSync, readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { ended, sqlenv, start } from "../helpers/cli-process.ts";
import { signalAt, TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

/** The place's model after more SFT on the same transcripts: it is sometimes right. */
const learned = place.path("learned");
const data = ["--model", place.model, "--transcripts", place.path("transcripts.jsonl"), "--out", learned];
const tuned = await sqlenv(["sft", ...data, "--steps", "300", "--batch-tokens", "1000", "--learning-rate", "0.02"]);
if (tuned.code !== 0) throw new Error(tuned.stderr);

const SETTINGS = {
  ...{ "--self-taught-rounds": 2, "--self-taught-samples": 24, "--self-taught-learning-rate": 0.003 },
  ...{ "--model-name": learned, "--max-new-tokens": 40, "--max-completion-length": 120 },
};
const model = (run: string, folder = "model") => readFileSync(place.path(run, folder, "model.safetensors"));

test("rounds run before GRPO, are counted, and are not repeated after a kill", async () => {
  const ran = await place.train("whole", SETTINGS, "--json");
  expect(ran.code, ran.stderr).toBe(0);
  const { self_taught, base, before } = JSON.parse(ran.stdout);
  expect(self_taught).toHaveLength(2);
  for (const { questions, solved, episodes, right, kept, steps } of self_taught) {
    expect([questions, episodes]).toEqual([5, 120]);
    expect(right).toBeGreaterThanOrEqual(solved);
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThanOrEqual(2 * solved);
    expect(steps).toBeGreaterThan(0);
  }
  expect(base.seen.greedy.episodes).toBe(before.seen.greedy.episodes);
  expect(ran.stderr).toMatch(
    /^self-taught round 1: \d+ of 120 episodes right, on \d of 5 questions; fine-tuned on \d+ of them/m,
  );

  const child = start(place.args("killed", SETTINGS));
  const end = ended(child);
  expect(await signalAt(child, "killed", (run) => existsSync(place.path(run, "self-taught-1")), "SIGKILL")).toBe(true);
  await end;
  expect(existsSync(place.path("killed", "self-taught-2"))).toBe(false);
  const resumed = await sqlenv(["train", "--resume", place.path("killed")]);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(resumed.stderr).not.toMatch(/^self-taught round 1:/m);
  for (const folder of ["self-taught-1", "self-taught-2", "model"])
    expect(model("killed", folder)).toEqual(model("whole", folder));
  expect(place.files("killed").filter((name) => /(^|\/)\./.test(name))).toEqual([]);
});

test("adapters are passed from round to round and to GRPO", async () => {
  const lora = { "--use-peft": "true", "--lora-r": 4, "--lora-alpha": 8, "--learning-rate": 0.001 };
  const ran = await place.train("lora", { ...SETTINGS, ...lora }, "--json");
  expect(ran.code, ran.stderr).toBe(0);
  expect(JSON.parse(ran.stdout).self_taught).toHaveLength(2);
  const adapter = (...parts: string[]) => readFileSync(place.path("lora", ...parts, "adapter_model.safetensors"));
  expect(adapter("self-taught-2")).not.toEqual(adapter("self-taught-1"));
  expect(adapter("adapter")).not.toEqual(adapter("self-taught-2"));
});

test("without a correct episode there is a one-line error and no run folder", async () => {
  const ran = await place.train("wrong", { ...SETTINGS, "--max-new-tokens": 1, "--max-completion-length": 1 });
  expect(ran.code).toBe(2);
  expect(ran.stderr).toMatch(/self_taught_rounds: no episode of round 1 was right .*: 120; fine-tune on/);
  expect(existsSync(place.path("wrong"))).toBe(false);
});

test("a failing stage keeps the models of earlier stages", async () => {
  const silent = { "--max-new-tokens": 1, "--max-completion-length": 1 };
  const sft = {
    "--sft-steps": 1,
    "--sft-batch-tokens": 500,
    "--sft-max-context-tokens": 512,
    "--sft-database-share": 0,
  };
  const ran = await place.train("after-sft", { ...SETTINGS, ...silent, ...sft });
  expect(ran.code).toBe(2);
  expect(ran.stderr).toMatch(/no episode of round 1 was right/);
  expect(ran.stdout).toMatch(
    /the model after sft is kept in .*after-sft\/sft; .* train --resume .*after-sft continues after it/,
  );
  const kept = model("after-sft", "sft");
  const again = await sqlenv(["train", "--resume", place.path("after-sft")]);
  expect(again.stderr).toMatch(/no episode of round 1 was right/);
  expect(model("after-sft", "sft")).toEqual(kept);

  const without = await sqlenv(["train", "--resume", place.path("after-sft"), "--self-taught-rounds", "0"]);
  expect(without.code, without.stderr).toBe(0);
  expect(model("after-sft", "sft")).toEqual(kept);
  expect(place.text("after-sft", "config.yaml")).toMatch(/^self_taught_rounds: 0$/m);
  const late = await sqlenv(["train", "--resume", place.path("after-sft"), "--self-taught-rounds", "1"]);
  expect(late.stderr).toMatch(/the run was begun with other settings: self_taught_rounds 0, now 1/);
});
