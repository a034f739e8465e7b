// Fault injection: whatever happens to a training, its process ends, no checkpoint is lost, and
// the resumed run ends with the same bytes as an uninterrupted one. Two kinds in every test run, the others in the slow one.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ALL, QUICK, some } from "../helpers/cases.ts";
import { ended, MAIN, type Ran, sqlenv, start } from "../helpers/cli-process.ts";
import { reached, signalAt, TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());

type Settings = Readonly<Record<string, string | number>>;
const PLAIN: Settings = { "--max-steps": 6, "--save-steps": 2 };
/** With a reward file, and gradients accumulated over two rollout batches. */
const REWARDED: Settings = {
  ...{ ...PLAIN, "--per-device-train-batch-size": 3, "--gradient-accumulation-steps": 2, "--steps-per-generation": 1 },
  "--reward-funcs": place.path("rewards.mjs"),
};
const reward = (fault = "") =>
  writeFileSync(
    place.path("rewards.mjs"),
    `import { writeFileSync } from "node:fs";
     let calls = 0;
     export const own = (completions, { step }) => {
       if (step === 4 && calls++ === 1) { ${fault} }
       return completions.map((messages) => messages.length / 10);
     };`,
  );

const references = new Map<Settings, Promise<string>>();
/** The name of an uninterrupted run. */
function leftAlone(settings: Settings): Promise<string> {
  const train = async () => {
    const run = `left alone ${references.size}`;
    const { code, stderr } = await place.train(run, settings);
    expect(code, stderr).toBe(0);
    return run;
  };
  const reference = references.get(settings) ?? train();
  references.set(settings, reference);
  return reference;
}

async function expectAsLeftAlone(run: string, settings = PLAIN): Promise<void> {
  const reference = await leftAlone(settings);
  for (const file of ["metrics.jsonl", "episodes.jsonl", "comparison.json", "model/model.safetensors"])
    expect(readFileSync(place.path(run, file)).equals(readFileSync(place.path(reference, file))), file).toBe(true);
  const steps = (of: string) => place.lines(of, "timings.jsonl").map(({ step }) => step);
  expect(steps(run)).toEqual(steps(reference));
}

/** The step of the newest checkpoint; 0 for none. */
const checkpoint = (run: string): number =>
  Math.max(
    0,
    ...readdirSync(place.path(run, "checkpoints")).map((name) => Number(/^step-(\d+)$/.exec(name)?.[1] ?? 0)),
  );

async function resume(run: string, ...more: string[]): Promise<void> {
  const { code, stderr } = await sqlenv(["train", "--resume", place.path(run), ...more]);
  expect(code, stderr).toBe(0);
}

const preload = new URL("../helpers/preload/engine-faults.mjs", import.meta.url).href;
const faulty = (fault: string) => ({
  NODE_OPTIONS: `--import=${preload}`,
  SQLENV_FAULT: fault,
  SQLENV_FAULT_STEP: "4",
});

/** Trains, and acts on the process when a step is logged. */
async function trainUntil(run: string, step: number, fault: (child: ChildProcess) => unknown): Promise<Ran> {
  const child = start(place.args(run, PLAIN));
  const end = ended(child);
  if (await reached(child, run, place.logged("timings.jsonl", step))) fault(child);
  return end;
}

// SIGINT and SIGKILL are in train-resume.test.ts.
describe.concurrent("signals", () => {
  const signals: [NodeJS.Signals, number][] = [
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ];
  test.each(some(1, signals))("%s", async (signal, expected) => {
    const { code } = await trainUntil(signal, 3, (child) => child.kill(signal));
    expect(code).toBe(expected);
    expect(checkpoint(signal)).toBe(place.lines(signal, "timings.jsonl").at(-1)!.step);
    await resume(signal);
    await expectAsLeftAlone(signal);
  });
});

describe.skipIf(!ALL).concurrent("outputs", () => {
  test.each(["stdout", "stderr"] as const)("%s is closed", async (stream) => {
    const run = `${stream} closed`;
    const child = start([...place.args(run, PLAIN), ...(stream === "stderr" ? ["--json"] : [])]);
    child[stream].once("data", () => child[stream].destroy());
    const [code] = (await once(child, "exit")) as [number | null];
    expect(code).toBe(0);
    await expectAsLeftAlone(run);
  });

  test.skipIf(!existsSync("/dev/full"))("the disk of its log is full, which is recorded as a warning", async () => {
    const run = "on a full disk";
    const full = openSync("/dev/full", "w");
    const child = spawn(process.execPath, [MAIN, ...place.args(run, PLAIN)], { stdio: ["ignore", full, full] });
    const [code] = (await once(child, "exit")) as [number | null];
    closeSync(full);
    expect(code).toBe(0);
    const lost = place.lines(run, "warnings.jsonl").filter((warning) => warning.code === "output_lost");
    expect(lost).toMatchObject([{ message: expect.stringContaining("ENOSPC") }]);
    await expectAsLeftAlone(run);
  });
});

describe.concurrent("disks", () => {
  const mounted = place.path("disk");
  mkdirSync(mounted);
  const canMount = ALL && spawnSync("mount", ["-t", "tmpfs", "-o", "size=32m", "tmpfs", mounted]).status === 0;
  afterAll(() => void (canMount && spawnSync("umount", ["-l", mounted])));

  test.skipIf(!canMount)("the disk is full (skipped where tmpfs cannot be mounted)", async () => {
    const [run, ballast] = ["disk/run", join(mounted, "ballast")];
    const fill = () => spawnSync("sh", ["-c", `cat /dev/zero > '${ballast}'`]);
    const { code, stderr } = await trainUntil(run, 2, fill);
    expect(code).toBe(1);
    expect(stderr).toMatch(/ENOSPC.*; free some space, then resume: the checkpoint before is whole \(run_write\)/);
    expect(place.files(run).filter((file) => file.includes(".step-") || file.endsWith(".part"))).toEqual([]);
    rmSync(ballast);
    await resume(run);
    await expectAsLeftAlone(run);
  });

  test.skipIf(!ALL || !existsSync("/bin/sh"))("files may not grow (ulimit -f)", async () => {
    const run = "limited";
    const args = ["-c", 'ulimit -f 200; exec "$@"', "sh", process.execPath, MAIN, ...place.args(run, PLAIN)];
    const { code, stderr } = await ended(spawn("/bin/sh", args));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .*EFBIG.*resume: the checkpoint before is whole \(run_write\)$/m);
    await resume(run);
    await expectAsLeftAlone(run);
  });
});

describe.skipIf(!ALL).concurrent("engines", () => {
  test.each([
    ["thread ends", /the engine's thread ended unexpectedly: exit code 7; .*\(engine_lost\)$/],
    ["thread throws", /the engine's thread failed: nobody catches this; .*\(engine_lost\)$/],
    ["device is lost", /the GPU was lost: cuStreamSynchronize failed: 700; .*\(device_lost\)$/],
  ])("%s", async (fault, message) => {
    const { code, stderr } = await ended(start(place.args(fault, PLAIN), faulty(fault)));
    expect(code).toBe(1);
    expect(stderr.trimEnd().split("\n").at(-1)).toMatch(message);
    expect(checkpoint(fault)).toBe(2);
    expect(existsSync(place.path(fault, "lock"))).toBe(false);
    await resume(fault);
    await expectAsLeftAlone(fault);
  });
});

describe.skipIf(!ALL)("reward functions, in the second half of a step", () => {
  test.each([
    ["exits", "process.exit(0);", 1],
    ["throws", 'throw new Error("no luck");', 1],
    ["never answers", `writeFileSync(${JSON.stringify(place.path("hangs"))}, ""); return new Promise(() => {});`, 143],
  ])("%s", async (run, fault, expected) => {
    reward();
    await leftAlone(REWARDED);
    reward(fault);
    const child = start(place.args(run, { ...REWARDED, "--save-steps": 100 }));
    const end = ended(child);
    if (expected === 143) await signalAt(child, run, () => existsSync(place.path("hangs")), "SIGTERM");
    expect((await end).code).toBe(expected);
    expect(checkpoint(run)).toBe(3); // the unfinished step is repeated
    reward();
    await resume(run, "--accept-changes", "--save-steps", "2");
    await expectAsLeftAlone(run, REWARDED);
  });
});

describe.concurrent("two processes in one folder", () => {
  /** A training stopped by SIGSTOP when the condition holds. */
  const paused = async (run: string, file: string) => {
    const child = start(place.args(run, PLAIN));
    const end = ended(child);
    expect(await signalAt(child, run, place.written(file), "SIGSTOP")).toBe(true);
    const proceed = (): Promise<Ran> => {
      child.kill("SIGCONT");
      return end;
    };
    return { proceed };
  };

  test.runIf(QUICK)("the second is refused, and the first is not affected", async () => {
    const { proceed } = await paused("shared", "random.json");
    const second = await sqlenv(["train", "--resume", place.path("shared")]);
    const { code, stderr } = await proceed();
    expect(second.code).toBe(2);
    expect(second.stderr).toMatch(/another process is training in this folder: .*--force/);
    expect(code, stderr).toBe(0);
    await expectAsLeftAlone("shared");
  });

  test.skipIf(!ALL)("the second takes over, and the first ends", async () => {
    const { proceed } = await paused("taken", "checkpoints/step-2");
    await resume("taken", "--force");
    const { code, stderr } = await proceed();
    expect(code).toBe(1);
    expect(stderr).toMatch(/another process has taken over this run: .*\(run_taken\)/);
    await expectAsLeftAlone("taken");
  });
});
