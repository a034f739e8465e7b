// `sqlenv bench server`: an OpenEnv server under load, compared with the environment in process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { benchHostile } from "../../bench/servers/hostile.node.ts";
import { type Load, loadServer, soakServer, stepInProcess } from "../../bench/servers/server.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { countFromOne, drawTable, formatBytes, formatNumber, output, wholeNumber } from "../terminal/output.ts";

interface Flags {
  readonly sessions: number;
  readonly seconds: number;
  readonly rate: number;
  readonly episodes: number;
  readonly threads?: number;
  readonly hostile?: boolean;
  readonly json?: boolean;
}

const LATENCY = { sessions: 64, rate: 10 }; // the load for comparing latency

export function serverCommand(): Command {
  return new Command("server")
    .description("latency, throughput and memory of the OpenEnv server under load")
    .option("--sessions <number>", "concurrent sessions", wholeNumber("--sessions"), 1000)
    .option("--seconds <number>", "duration of the load", wholeNumber("--seconds"), 60)
    .option("--rate <number>", "steps per second and session", wholeNumber("--rate"), 1)
    .option("--episodes <number>", "episodes of the memory soak test; 0 for none", wholeNumber("--episodes"), 100_000)
    .option("--threads <number>", "server threads (default: one per core)", countFromOne("--threads"))
    .option("--hostile", "measure honest sessions while attackers load the server (Linux only)")
    .option("--json", JSON_OUTPUT)
    .action((flags: Flags) => (flags.hostile ? runHostile(flags) : run(flags)));
}

async function run({ sessions, seconds, rate, episodes, threads, json }: Flags): Promise<void> {
  const out = output({ json });
  const data = await resolveDataSet("bundled");
  const free = ["--rate-per-client", "0", "--max-sessions", String(sessions + 64)];
  free.push("--sessions-per-client", String(sessions + 64)); // all of them come from this machine
  const server = await startProcess(threads, free);
  const { url } = server;
  const metric = (name: string) => metricOf(url, name);
  const memory = () => metric("process_resident_memory_bytes");
  try {
    out.progress("warmup");
    await loadServer(url, data, { sessions: 16, seconds: 2, rate: 0, seed: "warm" });
    out.progress(`${sessions} sessions for ${seconds} s`);
    const before = await memory();
    let open = before;
    const held = await loadServer(url, data, {
      sessions,
      seconds,
      rate,
      onOpen: async () => {
        open = await memory();
      },
    });
    out.progress("in process");
    stepInProcess(data, 3_000);
    const inProcess = stepInProcess(data, 6_000);
    out.progress(`${LATENCY.sessions} sessions`);
    const latency = await loadServer(url, data, { ...LATENCY, seconds: Math.min(seconds, 15) });
    out.progress("maximum throughput");
    const cpuBefore = await metric("process_cpu_seconds_total");
    const saturation = await loadServer(url, data, { sessions: 64, seconds: Math.min(seconds, 10), rate: 0 });
    const cpu = (await metric("process_cpu_seconds_total")) - cpuBefore;
    const cpu_ms_per_step = Math.round((1e6 * cpu) / Math.max(1, saturation.steps)) / 1e3;
    const soak =
      episodes === 0
        ? null
        : await soakServer(url, data, episodes, memory, (done) => out.progress(`${done} of ${episodes} episodes`));
    const over_in_process_ms = Math.round((latency.p50_ms - inProcess.p50_ms) * 1000) / 1000;
    const session_bytes = Math.round(Math.max(0, open - before) / sessions);
    out.line(
      drawTable(
        ["", "sessions", "steps/s", "p50 ms", "p99 ms", "errors"],
        [
          ["in process", 1, "", inProcess.p50_ms, inProcess.p99_ms, ""],
          row(`${LATENCY.rate} steps/s each`, latency),
          row("maximum throughput", saturation),
          row(`${rate} steps/s each, ${seconds} s`, held),
        ],
      ),
    );
    out.line(`server CPU time per step, resets included: ${cpu_ms_per_step} ms`);
    out.line(
      `overhead over the environment in process at p50: ${over_in_process_ms} ms; memory per session: ${formatBytes(session_bytes)}`,
    );
    if (soak) {
      const sizes = soak.bytes.map((bytes) => formatBytes(bytes)).join(", ");
      out.line(`${formatNumber(soak.episodes)} episodes in ${soak.seconds} s, ${soak.errors} errors; memory: ${sizes}`);
    }
    const { steps_per_s, p50_ms, p99_ms, errors } = held;
    const summary = { sessions, seconds, rate, steps_per_s, p50_ms, p99_ms, errors, session_bytes, cpu_ms_per_step };
    out.result({ ...summary, in_process: inProcess, latency, over_in_process_ms, saturation, held, soak });
  } finally {
    server.stop();
    data.databases.close();
  }
}

const HONEST = { sessions: 16, rate: 5 };

/** Runs the server with its default limits. */
async function runHostile({ seconds, threads = 2, json }: Flags): Promise<void> {
  const out = output({ json });
  if (process.platform !== "linux")
    throw new UsageError({
      what: "--hostile needs Linux, where 127.0.0.2 and the like work without setup",
    });
  const data = await resolveDataSet("bundled");
  const server = await startProcess(threads, []);
  const { url } = server;
  try {
    const before = await metricOf(url, "process_resident_memory_bytes");
    const onProgress = (text: string) => out.progress(text);
    const { alone, attacked, attacks } = await benchHostile(url, data, { ...HONEST, seconds, onProgress });
    const memory = { before, after: await metricOf(url, "process_resident_memory_bytes") };
    const threads_lost = (await metricOf(url, "sqlenv_threads_lost_total")) || 0;
    out.line(
      drawTable(
        ["honest sessions", "sessions", "steps/s", "p50 ms", "p99 ms", "errors"],
        [row("alone", alone), row("under attack", attacked)],
      ),
    );
    const { statements, sessions, half_bodies, large_frames } = attacks;
    out.line(
      `attacks: ${formatNumber(statements)} heavy messages answered, ${formatNumber(sessions)} empty sessions, ${formatNumber(half_bodies)} half-sent bodies, ${formatNumber(large_frames)} large frames`,
    );
    out.line(
      `threads lost: ${threads_lost}; memory ${formatBytes(memory.before)} before, ${formatBytes(memory.after)} after`,
    );
    out.result({ seconds, threads, ...HONEST, alone, attacked, attacks, threads_lost, memory });
  } finally {
    server.stop();
    data.databases.close();
  }
}

async function metricOf(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
}

function row(name: string, { sessions, steps_per_s, p50_ms, p99_ms, errors }: Load): (string | number)[] {
  return [name, sessions, steps_per_s, p50_ms, p99_ms, errors];
}

/** Starts `sqlenv serve` in a child process; resolves when it listens. */
async function startProcess(threads: number | undefined, more: readonly string[]) {
  const main = fileURLToPath(new URL("../main.js", import.meta.url));
  const flags = ["--port", "0", "--json", "--quiet", ...more];
  if (threads !== undefined) flags.push("--threads", String(threads));
  const child = spawn(process.execPath, [main, "serve", ...flags], { stdio: ["ignore", "pipe", "inherit"] });
  const stop = () => child.kill("SIGTERM");
  process.once("exit", stop);
  process.once("SIGTERM", () => process.exit(143));
  const first = await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  if (!Buffer.isBuffer(first[0])) throw new SqlEnvError("no_server", { what: "the server did not start" });
  return { url: (JSON.parse(String(first[0])) as { url: string }).url, stop };
}
