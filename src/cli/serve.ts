// `sqlenv serve`: the environment for OpenEnv clients, and the web pages.
import { once } from "node:events";
import { Command } from "commander";
import { UsageError } from "../errors.ts";
import { isLoopback, type PageHandler, SERVER_STEP_BUDGET, startServer } from "../server/index.ts";
import * as limits from "../server/limits.ts";
import { playgroundHandler } from "../server/playground.node.ts";
import { resolveDataSet } from "./dataset.ts";
import { interruptSignal } from "./interrupt.ts";
import { surviveLostOutput } from "./lost-output.ts";
import { output, styled, wholeNumber } from "./output.ts";

/** Web pages served beside the protocol, tried in this order before the 404. */
const PAGES: readonly PageHandler[] = [playgroundHandler()];

interface ServeFlags {
  readonly host: string;
  readonly port?: number;
  readonly data: string;
  readonly dbDir?: string;
  readonly stepBudget: number;
  readonly threads?: number;
  readonly maxSessions: number;
  readonly maxMessageBytes: number;
  readonly idleSeconds: number;
  readonly ratePerClient: number;
  readonly apiKey?: string;
  readonly origin?: readonly string[];
  readonly quiet?: boolean;
  readonly json?: boolean;
}

/** The `serve` command. */
export function serveCommand(): Command {
  return new Command("serve")
    .description("serve the environment to OpenEnv clients: HTTP, WebSocket and MCP")
    .option("--host <address>", "where to listen; 0.0.0.0 for every network", "127.0.0.1")
    .option("--port <number>", "0 for any that is free (default: $PORT or 8000)", wholeNumber("--port"))
    .option("--data <name>", "data set by name or folder", "bundled")
    .option("--db-dir <folder>", "databases of a question file")
    .option("--step-budget <number>", "actions an episode may take", wholeNumber("--step-budget"), SERVER_STEP_BUDGET)
    .option("--threads <number>", "threads environments live in (default: one a core)", wholeNumber("--threads"))
    .option("--max-sessions <number>", "sessions at a time", wholeNumber("--max-sessions"), limits.MAX_SESSIONS)
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
      "messages a second of one address; 0 for no limit",
      wholeNumber("--rate-per-client"),
      limits.RATE_PER_CLIENT,
    )
    .option("--api-key <key>", "ask for this key (default: $SQLENV_API_KEY, or none)")
    .option("--origin <origins...>", "web pages that may use the server besides its own; * for all")
    .option("--quiet", "log nothing but errors")
    .option("--json", "print where it listens as one JSON object")
    .action(run);
}

async function run(flags: ServeFlags): Promise<void> {
  const out = output(flags);
  surviveLostOutput(); // a log collector that restarts must not end the server
  const { host, dbDir, quiet = false, origin: origins } = flags;
  const apiKey = flags.apiKey ?? (process.env.SQLENV_API_KEY || undefined);
  const data = await resolveDataSet(flags.data, { dbDir });
  const stop = interruptSignal(); // before it says where it listens: a reader may stop it at once
  const server = await startServer(data, {
    ...flags,
    host,
    port: flags.port ?? portOf(process.env.PORT),
    step_budget: flags.stepBudget,
    apiKey,
    origins,
    pages: PAGES,
    onLog: (record) => {
      if (!quiet || record.level === "error") process.stderr.write(`${JSON.stringify(record)}\n`);
    },
  });
  data.databases.close();
  if (!isLoopback(host) && !apiKey) {
    process.stderr.write(
      `${styled("yellow", `warning: anyone who reaches ${host} may use this server; set --api-key to ask for one`)}\n`,
    );
  }
  if (!quiet) out.line(`${data.name}: ${data.questions.length} questions on ${server.url} (Ctrl-C stops it)`);
  out.result({ url: server.url, port: server.port, pid: process.pid });
  if (!stop.aborted) await once(stop, "abort");
  await server.close();
}

function portOf(text: string | undefined): number {
  if (!text) return 8000;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 0 && port < 65536) return port;
  throw new UsageError({ what: "PORT must be a number below 65536", value: text });
}
