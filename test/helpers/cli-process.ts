// Runs the built command in a separate process, as a person or a script does.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";
import { exportDataSet } from "../../src/gym/data/index.node.ts";
import { built } from "./built.ts";
import { smallDataSet } from "./small-data.ts";

export const MAIN = built("apps/cli/main.js");
const PROGRAM = pathToFileURL(built("apps/cli/program.js")).href;

export const { programFor, runProgram } = (await import(PROGRAM)) as typeof import("../../src/apps/cli/program.ts");

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
  /** The signal that ended it, if any. */
  readonly signal: NodeJS.Signals | null;
}

/** Starts `sqlenv` without waiting for it. */
export function start(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcessWithoutNullStreams {
  // No optimizing WebAssembly compiler: it would take half of the second or two that the process runs.
  return spawn(process.execPath, ["--liftoff-only", MAIN, ...args], { env: { ...process.env, ...env } });
}

/** Runs `sqlenv` to its end, with this input. */
export async function sqlenv(
  args: readonly string[],
  input = "",
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const child = start(args, env);
  child.stdin.on("error", () => {}); // the process may end before reading everything
  child.stdin.end(input);
  return ended(child);
}

/** A process's output, once it has ended. */
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

/** A new folder with the small data set, for --data. */
export async function smallDataFolder(): Promise<string> {
  const folder = join(mkdtempSync(join(tmpdir(), "sqlenv-test-")), "small");
  exportDataSet(await smallDataSet(), folder);
  return folder;
}

let before: Promise<unknown> = Promise.resolve();

/**
 * Runs `sqlenv` in this process, which is much faster than a new one: for tests of a command's behaviour and
 * output, not of signals and pipes. Runs of concurrent tests are serialized.
 */
export function sqlenvInside(...args: Parameters<typeof sqlenv>): Promise<Ran> {
  const ran = before.then(() => runInside(...args));
  before = ran.catch(() => {});
  return ran;
}

async function runInside(
  args: readonly string[],
  input = "",
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  const { stdin, stdout, stderr, env: outside } = process;
  const [out, err]: [string[], string[]] = [[], []];
  const writes = [stdout.write, stderr.write] as const;
  stdout.write = (text) => out.push(String(text)) > 0;
  stderr.write = (text) => err.push(String(text)) > 0;
  Object.defineProperty(process, "stdin", { value: Readable.from(pieces(input)) });
  process.env = { ...outside, ...env };
  process.exitCode = undefined;
  try {
    await runProgram(args);
    return { stdout: out.join(""), stderr: err.join(""), code: Number(process.exitCode ?? 0), signal: null };
  } finally {
    [stdout.write, stderr.write] = writes;
    Object.defineProperty(process, "stdin", { value: stdin });
    process.env = outside;
    process.exitCode = undefined;
  }
}

/** A text as a readable stream, like a pipe. */
function* pieces(text: string): Generator<Buffer> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536);
}
