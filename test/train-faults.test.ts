// What happens to a training, and to other commands, when the machine has a bad day: signals, closed and full outputs.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { ended, start } from "./cli-process.ts";
import { signalAt, TrainingPlace } from "./training-place.ts";

const dist = fileURLToPath(new URL("../dist/", import.meta.url));
const place = await TrainingPlace.make();
afterAll(() => place.remove());

/** Long enough that nothing but the fault ends it, and without a checkpoint of its own. */
const LONG = { "--max-steps": 400, "--num-train-epochs": 1000, "--save-steps": 1000 };

/** The step of the last line of timings.jsonl. */
const reached = (run: string): number => place.lines(run, "timings.jsonl").at(-1)!.step;
const hasCheckpoint = (run: string, step: number) =>
  existsSync(place.path(run, "checkpoints", `step-${step}`, "trainer.json"));

describe.concurrent("a request to stop", () => {
  test.each<[NodeJS.Signals, number]>([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ])("%s saves every step and says how to resume, exit code %i", async (signal, expected) => {
    const run = `stopped by ${signal}`;
    const child = start(place.args(run, LONG));
    const end = ended(child);
    expect(await signalAt(child, run, place.logged("timings.jsonl", 2), signal)).toBe(true);
    const { code, stdout } = await end;
    expect(code).toBe(expected);
    expect(stdout).toContain(`resume with: sqlenv train --resume ${place.path(run)}`);
    expect(hasCheckpoint(run, reached(run))).toBe(true);
    expect(existsSync(place.path(run, "lock"))).toBe(false);
  });

  test("saves a warm-up as far as it came", async () => {
    const out = place.path("warm");
    const transcripts = [
      "--transcripts",
      place.path("transcripts.jsonl"),
      "--steps",
      "100000",
      "--batch-tokens",
      "100",
    ];
    const child = start(["warmup", "--model", place.model, "--out", out, ...transcripts, "--threads", "1"]);
    child.stdout.once("data", () => child.kill("SIGTERM")); // the first line comes with the tenth step
    const { code, stdout } = await ended(child);
    expect(code).toBe(143);
    expect(stdout).toMatch(/interrupted +true/);
    expect(existsSync(join(out, "model.safetensors"))).toBe(true);
  });

  test("is granted at once when it is repeated", async () => {
    const code = `
      import { interruptSignal } from "${dist}cli/interrupt.js";
      const signal = interruptSignal();
      setInterval(() => {}, 1e6);
      signal.addEventListener("abort", () => process.kill(process.pid, "SIGHUP"));
      process.kill(process.pid, "SIGTERM");
    `;
    expect((await ended(script(code))).code).toBe(129);
  });
});

/** Runs JavaScript in a process of its own. */
function script(code: string) {
  return spawn(process.execPath, ["--input-type=module", "-e", code]);
}
