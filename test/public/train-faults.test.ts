// Trainings and other commands under faults: signals, closed and full outputs, a lost engine.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { ended, MAIN, start } from "../helpers/cli-process.ts";
import { signalAt, TrainingPlace } from "../helpers/training-place.ts";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const place = await TrainingPlace.make();
afterAll(() => place.remove());

/** Long enough that only the fault ends it, and without regular checkpoints. */
const LONG = { "--max-steps": 400, "--num-train-epochs": 1000, "--save-steps": 1000 };

/** The step of the last line of timings.jsonl. */
const reached = (run: string): number => place.lines(run, "timings.jsonl").at(-1)!.step;
const hasCheckpoint = (run: string, step: number) =>
  existsSync(place.path(run, "checkpoints", `step-${step}`, "trainer.json"));

describe.concurrent("a stop signal", () => {
  test("saves every finished step and says how to resume", async () => {
    const [signal, expected] = ["SIGTERM", 143] as const; // train-survives.test.ts tests the others
    const run = `stopped by ${signal}`;
    const child = start(place.args(run, LONG));
    const end = ended(child);
    expect(await signalAt(child, run, place.logged("timings.jsonl", 2), signal)).toBe(true);
    const { code, stdout } = await end;
    expect(code).toBe(expected);
    expect(stdout).toContain(` train --resume ${place.path(run)}`);
    expect(hasCheckpoint(run, reached(run))).toBe(true);
    expect(existsSync(place.path(run, "lock"))).toBe(false);
  });

  test("an interrupted SFT saves the model as far as it got", async () => {
    const out = place.path("warm");
    const transcripts = [
      "--transcripts",
      place.path("transcripts.jsonl"),
      "--steps",
      "100000",
      "--batch-tokens",
      "100",
    ];
    const child = start(["sft", "--model", place.model, "--out", out, ...transcripts, "--threads", "1"]);
    child.stdout.once("data", () => child.kill("SIGTERM")); // the first line comes with the tenth step
    const { code, stdout } = await ended(child);
    expect(code).toBe(143);
    expect(stdout).toMatch(/interrupted +true/);
    expect(existsSync(join(out, "model.safetensors"))).toBe(true);
  });

  test("ends the process at once when repeated", async () => {
    const code = `
      import { interruptSignal } from "${dist}apps/cli/terminal/interrupt.js";
      const signal = interruptSignal();
      setInterval(() => {}, 1e6);
      signal.addEventListener("abort", () => process.kill(process.pid, "SIGHUP"));
      process.kill(process.pid, "SIGTERM");
    `;
    expect((await ended(script(code))).code).toBe(129);
  });
});

describe.concurrent("an output that cannot be written", () => {
  const SHORT = { "--max-steps": 3 };
  const lostOutputs = (run: string) => place.lines(run, "warnings.jsonl").filter(({ code }) => code === "output_lost");

  test("a training continues when its output is closed, and records a warning", async () => {
    const run = "unread";
    const child = start(place.args(run, SHORT));
    child.stdout.once("data", () => {
      child.stdout.destroy();
      child.stderr.destroy();
    });
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code).toBe(0);
    expect(existsSync(place.path(run, "model", "model.safetensors"))).toBe(true);
    expect(lostOutputs(run)).toMatchObject([{ message: expect.stringContaining("stdout cannot be written (EPIPE)") }]);
  });

  test("a server continues when its log output is closed", async () => {
    const child = start(["serve", "--port", "0", "--threads", "1", "--data", place.data, "--json"]);
    const [text] = (await once(child.stdout, "data")) as [Buffer];
    const { url } = JSON.parse(String(text)) as { url: string };
    child.stderr.destroy();
    for (let session = 0; session < 3; session++) {
      const socket = new WebSocket(`${url.replace("http", "ws")}/ws`); // opening and closing a session each write a record
      await once(socket, "open");
      socket.close();
      await once(socket, "close");
    }
    expect((await fetch(`${url}/health`)).status).toBe(200);
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test("a command that only prints ends: silently on a closed pipe, with an error on a full disk", async () => {
    const child = start(["data", "list"]);
    child.stdout.destroy();
    expect(await once(child, "exit")).toEqual([0, null]);
    if (!existsSync("/dev/full")) return;
    const full = openSync("/dev/full", "w");
    const other = spawn(process.execPath, [MAIN, "data", "list"], { stdio: ["pipe", full, "pipe"] });
    const said = other.stderr!.setEncoding("utf8").toArray();
    expect(await once(other, "exit")).toEqual([1, null]);
    closeSync(full);
    expect((await said).join("")).toMatch(/^error: cannot write the output: .*\(ENOSPC\)\n$/);
  });
});

describe.concurrent("an engine that is lost", () => {
  const preload = new URL("../helpers/preload/engine-faults.mjs", import.meta.url).href;
  const faulty = (fault: string, more: Readonly<Record<string, string>> = {}) => ({
    ...{ NODE_OPTIONS: `--import=${preload}`, SQLENV_FAULT: fault, ...more },
  });
  const train = (run: string, fault: string) =>
    ended(start(place.args(run, { ...LONG, "--save-steps": 2 }), faulty(fault)));

  test("reports the first error and how to resume, and ends the process", async () => {
    const fault = "thread ends"; // train-survives.test.ts tests the others
    const { code, stderr } = await train(fault, fault);
    expect(code).toBe(1);
    const [last] = stderr.trimEnd().split("\n").slice(-1);
    expect(last).toMatch(/the engine's thread ended unexpectedly: exit code 7; .* \(engine_lost\)$/);
    expect(last).toContain(` train --resume ${place.path(fault)} `);
    expect(hasCheckpoint(fault, 2)).toBe(true);
    expect(existsSync(place.path(fault, "lock"))).toBe(false);
  });

  test("detects a thread that ends while loading the model", async () => {
    const { code, stderr } = await train("never loaded", "ends while loading");
    expect(code).toBe(1);
    expect(stderr).toMatch(/error: the engine's thread ended while it loaded the model: exit code 7/);
  });

  test.skipIf(process.platform === "win32")("ends the process although a thread is stuck in native code", async () => {
    const fifo = place.path("fifo");
    execFileSync("mkfifo", [fifo]);
    const run = "stuck";
    const child = start(
      place.args(run, { ...LONG, "--save-steps": 2 }),
      faulty("thread hangs", { SQLENV_FAULT_FIFO: fifo }),
    );
    const end = ended(child);
    expect(await signalAt(child, run, () => existsSync(`${fifo}.reached`), "SIGTERM")).toBe(true);
    for (; child.signalCode === null && child.exitCode === null; await setTimeout(50)) child.kill("SIGTERM"); // signals merge
    expect((await end).signal).toBe("SIGKILL"); // process.exit would wait for the thread
    expect(existsSync(place.path(run, "lock"))).toBe(false);
  });
});

test.skipIf(process.platform !== "linux")("with too little address space, suggests a remedy that works", async () => {
  const limited = (env: NodeJS.ProcessEnv) => {
    const args = ["eval", "--player", "random", "--episodes", "1", "--data", place.data];
    return spawn("sh", ["-c", 'ulimit -v 8000000; exec "$@"', "sh", process.execPath, MAIN, ...args], {
      env: { ...process.env, ...env },
    });
  };
  const { code, stderr } = await ended(limited({}));
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^error: no address space for WebAssembly: .*NODE_OPTIONS=--disable-wasm-trap-handler.* \(out_of_memory\)\n$/,
  );
  const helped = await ended(limited({ NODE_OPTIONS: "--disable-wasm-trap-handler" }));
  expect(helped.code, helped.stderr).toBe(0);
});

/** Runs JavaScript in a separate process. */
function script(code: string) {
  return spawn(process.execPath, ["--input-type=module", "-e", code]);
}
