// `sqlenv serve`: the environment for OpenEnv clients, the web pages, and a model for OpenAI's clients.
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { Command } from "commander";
import { messageOf, UsageError } from "../../../errors.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { rulesId } from "../../../gym/env/index.ts";
import {
  isEveryAddress,
  isLoopback,
  type LogRecord,
  type PageHandler,
  SERVER_STEP_BUDGET,
  type ServedModel,
  startServer,
} from "../../openenv/index.ts";
import * as limits from "../../openenv/limits.ts";
import { playgroundHandler } from "../../playground/server.node.ts";
import { DATA, DB_DIR, MODEL_SOURCES, STEP_BUDGET } from "../options/common.ts";
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "../options/device.ts";
import { addRulesOptions, type RulesFlags, rulesNamed } from "../options/rules.ts";
import { interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { counted, countFromOne, output, portNumber, printable, styled, wholeNumber } from "../terminal/output.ts";
import { addRecordOptions, openRecording, type RecordFlags } from "./serve-record.ts";
import { serveTinker } from "./serve-tinker.ts";

/** Web pages served next to the protocol, tried in this order before a 404. */
const PAGES: readonly PageHandler[] = [playgroundHandler()];

interface ServeFlags extends RulesFlags, RecordFlags, Omit<DeviceFlags, "threads"> {
  readonly host: string;
  readonly port?: number;
  readonly data: string;
  readonly dbDir?: string;
  readonly stepBudget: number;
  readonly textActions?: boolean;
  readonly threads?: number;
  readonly maxSessions: number;
  readonly sessionsPerClient: number;
  readonly maxMessageBytes: number;
  readonly idleSeconds: number;
  readonly ratePerClient: number;
  readonly apiKey?: readonly string[];
  readonly apiKeyFile?: string;
  readonly origin?: readonly string[];
  readonly allowedHost?: readonly string[];
  readonly trustProxy?: readonly string[];
  readonly quiet?: boolean;
  readonly json?: boolean;
  readonly tinker?: boolean;
  readonly checkpoints: string;
  readonly maxModels?: number;
}

/** The `serve` command. */
export function serveCommand(): Command {
  const command = new Command("serve")
    .description("serve the environment to OpenEnv clients: HTTP, WebSocket and MCP")
    .option("--host <address>", "address to listen on; 0.0.0.0 for all networks", "127.0.0.1")
    .option("--port <number>", "port; 0 picks a free one (default: $PORT or 8000)", portNumber("--port"))
    .option("--data <name>", DATA, "bundled")
    .option("--db-dir <folder>", DB_DIR)
    .option("--step-budget <number>", STEP_BUDGET, countFromOne("--step-budget"), SERVER_STEP_BUDGET)
    .option("--text-actions", "describe an action as one field, text, for clients that send a model's reply as it is")
    .option("--threads <number>", "environment threads (default: one per core)", countFromOne("--threads"))
    .option("--max-sessions <number>", "concurrent sessions", wholeNumber("--max-sessions"), limits.MAX_SESSIONS)
    .option(
      "--sessions-per-client <number>",
      "concurrent sessions per client (API key, else address)",
      wholeNumber("--sessions-per-client"),
      limits.SESSIONS_PER_CLIENT,
    )
    .option(
      "--max-message-bytes <number>",
      "maximum message size",
      wholeNumber("--max-message-bytes"),
      limits.MAX_MESSAGE_BYTES,
    )
    .option(
      "--idle-seconds <number>",
      "close sessions idle for this long",
      wholeNumber("--idle-seconds"),
      limits.IDLE_SECONDS,
    )
    .option(
      "--rate-per-client <number>",
      "messages per second and client; 0 for no limit",
      wholeNumber("--rate-per-client"),
      limits.RATE_PER_CLIENT,
    )
    .option(
      "--api-key <keys...>",
      "require one of these keys; visible in the process list (default: $SQLENV_API_KEY, comma-separated)",
    )
    .option("--api-key-file <file>", "require one of the keys in this file, one per line")
    .option("--origin <origins...>", "allowed origins of other web pages; * for all")
    .option("--allowed-host <names...>", "further host names to answer to")
    .option("--trust-proxy <addresses...>", "proxies (addresses or networks) whose X-Forwarded-For is trusted")
    .option("--quiet", "log only errors")
    .option("--json", "print the URL as one JSON object");
  command
    .optionsGroup(LLM_OPTIONS)
    .option("--model <name>", `also serve a model at /v1, as OpenAI's API does: starter, ${MODEL_SOURCES}`);
  addDeviceOptions(command, { group: LLM_OPTIONS, threads: "--model-threads" });
  addRecordOptions(command);
  command
    .optionsGroup("Tinker options:")
    .option("--tinker", "serve --model, to sample from and to train, by the Tinker API, in place of the environment")
    .option("--checkpoints <folder>", "folder for the checkpoints that clients save", "runs/tinker")
    .option("--max-models <number>", "models in training at once (default: 4)", countFromOne("--max-models"));
  return addRulesOptions(command).action(run);
}

const LLM_OPTIONS = "LLM endpoint options:";

/** A model for the LLM endpoint, and the engine to close after the server. */
async function servedModel(nameOrPath: string, flags: ServeFlags): Promise<ServedModel & { close(): Promise<void> }> {
  // Imported here: a server without a model needs no engine.
  const { loadModelAndTokenizer } = await import("../../../lm/engine/index.node.ts");
  const { Chat } = await import("../../../lm/chat/index.ts");
  const options = deviceOptions({ ...flags, threads: flags.modelThreads });
  const model = await loadModelAndTokenizer(nameOrPath, { ...options, trains: false });
  const { engine } = model;
  const name = existsSync(nameOrPath) ? basename(nameOrPath).replace(/\.gguf$/i, "") : nameOrPath;
  return { name, chat: new Chat(model), cacheTokens: engine.facts.cacheTokens, close: () => engine.close() };
}

async function run(flags: ServeFlags): Promise<void> {
  const out = output(flags);
  surviveLostOutput(); // a log collector that restarts must not end the server
  const { host, dbDir, quiet = false, origin: origins } = flags;
  const apiKeys = keysOf(flags);
  const onLog = (record: LogRecord) => {
    if (!quiet || record.level === "error") process.stderr.write(`${logLine(record, flags)}\n`);
  };
  if (flags.tinker) {
    const port = flags.port ?? portOf(process.env.PORT);
    return serveTinker(flags, { port, apiKeys, onLog }, out);
  }
  const rules = rulesNamed(flags);
  const data = await resolveDataSet(flags.data, { dbDir });
  const recording = await openRecording(flags);
  const llm = flags.model === undefined || recording ? undefined : await servedModel(flags.model, flags);
  const stop = interruptSignal(); // before the URL is printed, since whoever reads it may stop the server at once
  const server = await startServer(data, {
    ...flags,
    host,
    port: flags.port ?? portOf(process.env.PORT),
    step_budget: flags.stepBudget,
    ...rules,
    apiKeys,
    origins,
    allowedHosts: flags.allowedHost,
    trustProxies: flags.trustProxy,
    pages: PAGES,
    llm,
    rollouts: recording?.rollouts,
    onLog,
  }).catch(async (error: unknown) => {
    await llm?.close();
    await recording?.close();
    throw error;
  });
  data.databases.close();
  const warn = (text: string) => process.stderr.write(`${styled("yellow", `warning: ${text}`)}\n`);
  if (!isLoopback(host) && apiKeys.length === 0)
    warn(`anyone who reaches ${host} may use this server; set --api-key-file or SQLENV_API_KEY to require a key`);
  if (isEveryAddress(host) && !flags.allowedHost)
    warn("any web site may point its host name at this server; set --allowed-host to the server's own");
  if (!quiet) {
    out.line(`${data.name}: ${counted(data.questions.length, "question")}, ${flags.stepBudget} actions per episode`);
    out.line(`  clients connect to ${styled("cyan", server.url)}`);
    out.line(`  play and train in the browser: ${styled("cyan", `${server.url}/web/`)}`);
    if (llm) out.line(`  ${printable(llm.name)} for OpenAI clients: ${styled("cyan", `${server.url}/v1`)}`);
    if (recording) out.line(`  agents ask for tasks at ${styled("cyan", `${server.url}/rollouts/next`)}`);
    out.line("Ctrl-C stops it");
  }
  out.result({
    url: server.url,
    port: server.port,
    pid: process.pid,
    rules: rulesId(rules),
    ...((llm || recording) && { model: llm?.name ?? flags.model }),
  });
  try {
    if (recording) await recording.train(stop, out);
    else if (!stop.aborted) await once(stop, "abort");
  } finally {
    await server.close();
    await llm?.close();
    await recording?.close();
  }
}

/** A record of the log: for people on a terminal, else one JSON object. */
function logLine(record: LogRecord, { json = false }: ServeFlags): string {
  if (json || !process.stderr.isTTY) return JSON.stringify(record);
  const { time, level, event, ...rest } = record;
  const values = Object.entries(rest).map(
    ([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const line = printable(
    `${time.slice(11, 19)} ${event.replaceAll("_", " ")}${values.length > 0 ? `: ${values.join(", ")}` : ""}`,
  );
  return styled(level === "error" ? "red" : "dim", line);
}

/** API keys from the command line, else a file, else the environment. */
function keysOf({ apiKey, apiKeyFile }: ServeFlags): readonly string[] {
  const given =
    apiKey ?? (apiKeyFile === undefined ? process.env.SQLENV_API_KEY?.split(",") : readLines(apiKeyFile)) ?? [];
  const keys = given.map((key) => key.trim()).filter((key) => key !== "");
  if (apiKeyFile !== undefined && keys.length === 0)
    throw new UsageError({ what: "no key in --api-key-file", value: apiKeyFile, remedy: "write one key per line" });
  return keys;
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch (cause) {
    throw new UsageError({ what: "cannot read --api-key-file", value: file, remedy: messageOf(cause), cause });
  }
}

function portOf(text: string | undefined): number {
  if (!text) return 8000;
  return portNumber("PORT")(text);
}
