// A `sqlenv serve` in a separate process, as users start it, on a free port unless told otherwise.
import { once } from "node:events";
import { start } from "./cli-process.ts";
import { until } from "./server-place.ts";

export interface ServeProcess {
  readonly url: string;
  readonly port: number;
  /** What it has written to stderr so far. */
  warnings(): string;
  /** The number of open sessions, as the server reports it. */
  sessions(): Promise<number>;
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>;
}

/** Starts `sqlenv serve` and waits until it listens. */
export async function serveProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = { PORT: "0" },
): Promise<ServeProcess> {
  const child = start(["serve", "--json", ...args], env);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (bytes) => {
    stdout += String(bytes);
  });
  child.stderr.on("data", (bytes) => {
    stderr += String(bytes);
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  await until(() => stdout.includes("\n") || child.exitCode !== null);
  const { url, port } = JSON.parse(stdout) as { url: string; port: number };
  const sessions = async () => {
    const metrics = await (await fetch(`${url}/metrics`)).text();
    return Number(/^sqlenv_sessions_active (\d+)$/m.exec(metrics)?.[1]);
  };
  const stop = async () => {
    child.kill("SIGTERM");
    return (await ended)[0];
  };
  return { url, port, warnings: () => stderr, sessions, stop };
}
