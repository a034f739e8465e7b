// `sqlenv serve`: the environment for OpenEnv clients, and the web pages.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { messageOf, UsageError } from "../../../errors.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { rulesId } from "../../../gym/env/index.ts";
import { isEveryAddress, isLoopback, type PageHandler, SERVER_STEP_BUDGET, startServer } from "../../openenv/index.ts";
import * as limits from "../../openenv/limits.ts";
import { playgroundHandler } from "../../playground/server.node.ts";
import { addRulesOptions, type RulesFlags, rulesNamed } from "../options/rules.ts";
import { interruptSignal } from "../terminal/interrupt.ts";
import { surviveLostOutput } from "../terminal/lost-output.ts";
import { output, styled, wholeNumber } from "../terminal/output.ts";

/** Web pages served beside the protocol, tried in this order before the 404. */
const PAGES: readonly PageHandler[] = [playgroundHandler()];

interface ServeFlags extends RulesFlags {
  readonly host: string;
  readonly port?: number;
  readonly data: string;
  readonly dbDir?: string;
  readonly stepBudget: number;
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
}

/** The `serve` command. */
export function serveCommand(): Command {
  const command = new Command("serve")
    .description("serve the environment to OpenEnv clients: HTTP, WebSocket and MCP")
    .option("--host <address>", "where to listen; 0.0.0.0 for every network", "127.0.0.1")
    .option("--port <number>", "0 for any that is free (default: $PORT or 8000)", wholeNumber("--port"))
    .option("--data <name>", "data set by name or folder", "bundled")
    .option("--db-dir <folder>", "databases of a question file")
    .option("--step-budget <number>", "actions an episode may take", wholeNumber("--step-budget"), SERVER_STEP_BUDGET)
    .option("--threads <number>", "threads environments live in (default: one a core)", wholeNumber("--threads"))
    .option("--max-sessions <number>", "sessions at a time", wholeNumber("--max-sessions"), limits.MAX_SESSIONS)
    .option(
      "--sessions-per-client <number>",
      "sessions of one client: an address, or a key where keys are asked for",
      wholeNumber("--sessions-per-client"),
      limits.SESSIONS_PER_CLIENT,
    )
    .option(
      "--max-message-bytes <number>",
      "size of a message",
      wholeNumber("--max-message-bytes"),
      limits.MAX_MESSAGE_BYTES,
    )
    .option(
      "--idle-seconds <number>",
      "close sessions that do nothing for so long",
      wholeNumber("--idle-seconds"),
      limits.IDLE_SECONDS,
    )
    .option(
      "--rate-per-client <number>",
      "messages a second of one client; 0 for no limit",
      wholeNumber("--rate-per-client"),
      limits.RATE_PER_CLIENT,
    )
    .option(
      "--api-key <keys...>",
      "ask for one of these keys; others can see them in the list of processes (default: $SQLENV_API_KEY, with commas between several)",
    )
    .option("--api-key-file <file>", "ask for one of the keys in this file, one a line")
    .option("--origin <origins...>", "web pages that may use the server besides its own; * for all")
    .option("--allowed-host <names...>", "names the server answers to besides this machine's and --host")
    .option("--trust-proxy <addresses...>", "proxies, by address or network, whose X-Forwarded-For is believed")
    .option("--quiet", "log nothing but errors")
    .option("--json", "print where it listens as one JSON object");
  return addRulesOptions(command).action(run);
}

async function run(flags: ServeFlags): Promise<void> {
  const out = output(flags);
  surviveLostOutput(); // a log collector that restarts must not end the server
  const { host, dbDir, quiet = false, origin: origins } = flags;
  const apiKeys = keysOf(flags);
  const rules = rulesNamed(flags);
  const data = await resolveDataSet(flags.data, { dbDir });
  const stop = interruptSignal(); // before it says where it listens: a reader may stop it at once
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
    onLog: (record) => {
      if (!quiet || record.level === "error") process.stderr.write(`${JSON.stringify(record)}\n`);
    },
  });
  data.databases.close();
  const warn = (text: string) => process.stderr.write(`${styled("yellow", `warning: ${text}`)}\n`);
  if (!isLoopback(host) && apiKeys.length === 0)
    warn(`anyone who reaches ${host} may use this server; set --api-key-file or SQLENV_API_KEY to ask for a key`);
  if (isEveryAddress(host) && !flags.allowedHost)
    warn("any web site may point its own name at this server; name the server's own with --allowed-host");
  if (!quiet) out.line(`${data.name}: ${data.questions.length} questions on ${server.url} (Ctrl-C stops it)`);
  out.result({ url: server.url, port: server.port, pid: process.pid, rules: rulesId(rules) });
  if (!stop.aborted) await once(stop, "abort");
  await server.close();
}

/** Keys from the command line, a file or the environment, the first that is given. */
function keysOf({ apiKey, apiKeyFile }: ServeFlags): readonly string[] {
  const given =
    apiKey ?? (apiKeyFile === undefined ? process.env.SQLENV_API_KEY?.split(",") : readLines(apiKeyFile)) ?? [];
  const keys = given.map((key) => key.trim()).filter((key) => key !== "");
  if (apiKeyFile !== undefined && keys.length === 0)
    throw new UsageError({ what: "no key in", value: apiKeyFile, remedy: "write one a line" });
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
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port < 65536) return port;
  throw new UsageError({ what: "PORT must be a number below 65536", value: text });
}
