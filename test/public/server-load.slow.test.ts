// Many concurrent clients on a server in its own process: no errors, and no leaked slot, socket or thread.
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { loadServer, soakServer } from "../helpers/bench.ts";
import { smallDataFolder, start } from "../helpers/cli-process.ts";
import { until } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const flags = ["--quiet", "--json", "--port", "0", "--threads", "2", "--rate-per-client", "0"];
const child = start(["serve", ...flags, "--data", await smallDataFolder()]);
afterAll(async () => {
  child.kill("SIGTERM");
  await once(child, "exit");
});
const [line] = (await once(child.stdout, "data")) as [Buffer];
const { url } = JSON.parse(String(line)) as { url: string };
const data = await smallDataSet();

async function gauge(name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} ([\\d.e+]+)$`, "m").exec(text)![1]);
}

/** The server's open files and threads, if the system reports them. */
function held(): { files: number; threads: number } | null {
  if (process.platform !== "linux") return null;
  const count = (what: string) => readdirSync(`/proc/${child.pid}/${what}`).length;
  return { files: count("fd"), threads: count("task") };
}

test("200 concurrent sessions step without an error, twice, and leak nothing", async () => {
  await loadServer(url, data, { sessions: 20, seconds: 1, rate: 0 });
  await until(async () => (await gauge("sqlenv_sessions_active")) === 0);
  const before = held();
  for (let round = 0; round < 2; round++) {
    const load = await loadServer(url, data, { sessions: 200, seconds: 2, rate: 2, seed: `round ${round}` });
    expect(load).toMatchObject({ errors: 0, first_error: null });
    expect(load.steps).toBeGreaterThan(400);
  }
  await until(async () => (await gauge("sqlenv_sessions_active")) === 0);
  if (!before) return;
  await until(async () => held()!.files < before.files + 10); // a session ends before its socket is closed
  expect(held()!.threads).toBe(before.threads);
});

test("many episodes do not leak memory", async () => {
  const soak = await soakServer(url, data, 3_000, () => gauge("process_resident_memory_bytes"));
  expect(soak.errors).toBe(0);
  expect(soak.growth_bytes).toBeLessThan(60e6); // garbage not yet collected; a leak of the episodes' texts would be more
});

test("metrics match the traffic", async () => {
  const text = await (await fetch(`${url}/metrics`)).text();
  for (const name of ["sqlenv_sessions_total", "sqlenv_messages_total", "sqlenv_message_seconds_bucket"])
    expect(text).toContain(name);
  expect(await gauge("sqlenv_threads")).toBe(2);
  const steps = Number(/sqlenv_messages_total\{type="step"\} (\d+)/.exec(text)![1]);
  expect(steps).toBeGreaterThan(6_000);
  expect(text).not.toContain("sqlenv_errors_total{");
});
