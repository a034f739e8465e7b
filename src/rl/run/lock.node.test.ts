// Who may train in a folder: dead, foreign, damaged and older locks, and what a holder does whose run was taken over.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { RunFolder } from "./folder.node.ts";
import { type Holder, trainingProcess } from "./lock.node.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "sqlenv-lock-"));
  file = join(folder, "lock");
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

const isLinux = process.platform === "linux";

const holder = () => JSON.parse(readFileSync(file, "utf8")) as Holder;
/** A lock of this process's parent, which is alive, with these changes. */
function leave(change: Partial<Holder>): void {
  const run = new RunFolder(folder);
  run.lock();
  const start = isLinux ? readFileSync(`/proc/${process.ppid}/stat`, "utf8").split(") ")[1]!.split(" ")[19]! : null;
  const text = JSON.stringify({ ...holder(), pid: process.ppid, start, nonce: "another", ...change });
  run.unlock();
  writeFileSync(file, text);
}
/** Sets the lock's time back. */
function age(seconds: number): void {
  const then = Date.now() / 1000 - seconds;
  utimesSync(file, then, then);
}
const lock = (options: { force?: boolean } = {}): RunFolder => {
  const run = new RunFolder(folder);
  run.lock(options);
  return run;
};
const IN_USE = /another process is training in this folder: .*; wait for it or end it, .*--force/;

test("names its holder, excludes others, and is removed when it is released", () => {
  const run = lock();
  expect(holder()).toMatchObject({ pid: process.pid, host: expect.any(String), nonce: expect.any(String) });
  expect(trainingProcess(folder)).toBe(process.pid);
  expect(() => lock()).toThrow(IN_USE);
  run.lock(); // again is no fault
  run.unlock();
  expect(existsSync(file)).toBe(false);
  expect(trainingProcess(folder)).toBeNull();
  expect(readdirSync(folder)).toEqual(["checkpoints"]);
});

describe("a process of this machine", () => {
  test("that is dead does not count", () => {
    leave({ pid: spawnSync("true").pid! });
    expect(trainingProcess(folder)).toBeNull();
    lock().unlock();
  });

  test.skipIf(!isLinux)("whose id is used again does not count", () => {
    leave({ start: "1" });
    lock().unlock();
    leave({ pid: process.pid }); // ours, and not by us
    lock().unlock();
    leave({});
    expect(() => lock()).toThrow(IN_USE);
  });
});

describe("a process that this machine cannot look up", () => {
  const ELSEWHERE: readonly [string, Partial<Holder>][] = [
    ["of another machine", { host: "elsewhere", boot: "another" }],
    ["of another container, with the same id", { namespace: "pid:[1]" }],
  ];
  test.each(ELSEWHERE)("%s counts as long as it shows itself", (_, change) => {
    leave(change);
    expect(() => lock()).toThrow(IN_USE);
    expect(trainingProcess(folder)).toBe(process.ppid);
    age(70);
    expect(trainingProcess(folder)).toBeNull();
    lock().unlock();
    expect(readdirSync(folder)).toEqual(["checkpoints"]);
  });

  test("refreshes the lock's modification time and keeps its content", () => {
    vi.useFakeTimers({ toFake: ["setInterval"] });
    const run = lock();
    const text = readFileSync(file, "utf8");
    age(3600);
    vi.advanceTimersByTime(10_000);
    expect(Date.now() - statSync(file).mtimeMs).toBeLessThan(600_000);
    expect(readFileSync(file, "utf8")).toBe(text);
    run.unlock();
    vi.advanceTimersByTime(20_000);
    expect(existsSync(file)).toBe(false);
  });
});

test.each(["", "garbage", "{}", "[1]", "null"])("a lock that holds %j counts for a minute", (text) => {
  writeFileSync(file, text);
  expect(() => lock()).toThrow(/a lock that cannot be read/);
  age(70);
  lock().unlock();
});

test("a lock of an earlier version, a process id, is understood", () => {
  writeFileSync(file, `${process.ppid}\n`); // a Node process: vitest
  expect(() => lock()).toThrow(IN_USE);
  writeFileSync(file, "999999999\n");
  lock().unlock();
});

describe("a run that was taken over", () => {
  test("is not written to any more by the process that had it", async () => {
    const first = lock();
    first.append("metrics.jsonl", { step: 1 });
    const second = lock({ force: true });
    const taken = expect.objectContaining({ code: "run_taken" });
    expect(() => first.append("metrics.jsonl", { step: 2 })).toThrow(taken);
    expect(() => first.write("results.json", "")).toThrow(/another process has taken over this run: process \d+ on /);
    expect(() => first.rewind()).toThrow(taken);
    const state = {
      step: 2,
      batches: 2,
      episodes: 0,
      tokens: 0,
      elapsed: 0,
      evaluated: 0,
      since_log: {},
      warned: [],
    };
    await expect(first.checkpoint(state, async () => {}, 2)).rejects.toEqual(taken);
    expect(readFileSync(join(folder, "metrics.jsonl"), "utf8")).toBe('{"step":1}\n');
    expect(readdirSync(join(folder, "checkpoints"))).toEqual([]);
    first.unlock(); // leaves the other's
    expect(existsSync(file)).toBe(true);
    second.append("metrics.jsonl", { step: 2 });
    second.unlock();
  });

  test("and then released does not return to its former holder", () => {
    const first = lock();
    lock({ force: true }).unlock();
    expect(() => first.append("metrics.jsonl", { step: 1 })).toThrow(/taken over this run: its lock is gone/);
    first.unlock();
  });
});

const canUnshare = spawnSync("unshare", ["-p", "--fork", "true"]).status === 0;
test.skipIf(!canUnshare)(
  "two containers, each with process id 1 (skipped where unshare is not permitted)",
  async () => {
    const store = new URL("../../../dist/rl/run/folder.node.js", import.meta.url).href;
    /** Takes the lock and keeps it until its input ends; leaves it there as one that is killed does. */
    const script = `
    import { RunFolder } from ${JSON.stringify(store)};
    const run = new RunFolder(${JSON.stringify(folder)});
    try { run.lock(); console.log(process.pid, "has it"); } catch (error) { console.log(process.pid, error.code); }
    process.stdin.resume().on("end", () => process.exit());`;
    const args = ["-p", "--fork", process.execPath, "--input-type=module", "-e", script];
    const first = spawn("unshare", args);
    const [said] = (await once(first.stdout.setEncoding("utf8"), "data")) as [string];
    expect(said).toBe("1 has it\n");
    expect(holder().pid).toBe(1);
    expect(execFileSync("unshare", args, { encoding: "utf8", input: "" })).toBe("1 usage\n");
    expect(() => lock()).toThrow(IN_USE);
    first.stdin.end();
    await once(first, "exit");
    expect(() => lock()).toThrow(IN_USE); // it cannot be looked up from here
    age(70);
    lock().unlock();
  },
);
