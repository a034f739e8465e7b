// Runs the built command in a process of its own, as a person or a script does.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportDataSet } from "../src/questions/index.node.ts";
import { smallDataSet } from "./small-data.ts";

const MAIN = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
const PROGRAM = new URL("../dist/cli/program.js", import.meta.url).href;

export const { programFor, runProgram } = (await import(PROGRAM)) as typeof import("../src/cli/program.ts");

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  /** The signal that ended it, where one did. */
  readonly signal?: NodeJS.Signals | null;
}

/** Starts `sqlenv` without waiting for it. */
export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [MAIN, ...args], { env: { ...process.env, ...env } });
}

/** Runs `sqlenv` to its end, with this input. */
export async function sqlenv(
  args: readonly string[],
  input = "",
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const child = start(args, env);
  child.stdin.on("error", () => {}); // it may end before it has read everything
  child.stdin.end(input);
  return ended(child);
}

/** What a process printed, when it has ended. */
export async function ended(child: ChildProcessWithoutNullStreams): Promise<Ran> {
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { stdout, stderr, code, signal };
}

/** A folder of its own with the small data set in it, to be named with --data. */
export async function smallDataFolder(): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), "sqlenv-test-")), "small");
  exportDataSet(await smallDataSet(), folder);
  return folder;
}

/**
 * Runs `sqlenv` in this process, which is far quicker than a process of its own: for tests of what a command
 * prints and how it fails, not of pipes, signals, threads left over or standard input.
 */
export async function sqlenvInside(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const before = { env: { ...process.env }, out: process.stdout.write, err: process.stderr.write };
  let [stdout, stderr] = ["", ""];
  process.stdout.write = (text) => {
    stdout += text;
    return true;
  };
  process.stderr.write = (text) => {
    stderr += text;
    return true;
  };
  Object.assign(process.env, env);
  process.exitCode = undefined;
  try {
    await runProgram(args);
    return { stdout, stderr, code: Number(process.exitCode ?? 0) };
  } finally {
    process.stdout.write = before.out;
    process.stderr.write = before.err;
    process.env = before.env;
    process.exitCode = undefined;
  }
}
