// The OpenEnv server: sockets and HTTP in this thread, environments in worker threads, graceful shutdown.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { UsageError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { type EnvironmentOptions, type EnvironmentRules, rulesId, rulesOf } from "../../gym/env/index.ts";
import { usableCpus } from "../../io/cpus.node.ts";
import { Access } from "./access.ts";
import { hostsFor } from "./allowed-hosts.ts";
import { networkOf, Proxies } from "./client-address.ts";
import { HeldBytes } from "./held-bytes.ts";
import * as limits from "./limits.ts";
import { listen } from "./listen.ts";
import { LlmEndpoint, type ServedModel } from "./llm/endpoint.ts";
import type { Rollouts } from "./llm/rollouts.ts";
import { type LogRecord, logTo } from "./log.ts";
import { Metrics } from "./metrics.ts";
import type { PageHandler } from "./page-handler.ts";
import { RateLimit } from "./rate-limit.ts";
import { routes } from "./routes.ts";
import { type ActionForm, wireSchemas } from "./schemas.ts";
import { Sessions } from "./sessions.ts";
import { Sockets } from "./sockets.ts";
import { ThreadPool } from "./thread-pool.ts";
import type { ThreadSpec } from "./thread-protocol.ts";

/** Step budget of an episode on a server; larger than in training, since other models explore more. */
export const SERVER_STEP_BUDGET = 15;

export interface ServerOptions extends EnvironmentOptions, ActionForm {
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** 0 picks a free port. @default 8000 */
  readonly port?: number;
  /** Environment threads. @default one per available core */
  readonly threads?: number | undefined;
  /** @default MAX_SESSIONS */
  readonly maxSessions?: number | undefined;
  /** Sessions per client. @default SESSIONS_PER_CLIENT */
  readonly sessionsPerClient?: number | undefined;
  /** @default MAX_MESSAGE_BYTES */
  readonly maxMessageBytes?: number | undefined;
  /** @default IDLE_SECONDS */
  readonly idleSeconds?: number | undefined;
  /** @default PING_SECONDS */
  readonly pingSeconds?: number | undefined;
  /** @default SILENT_SECONDS */
  readonly silentSeconds?: number | undefined;
  /** Seconds within which a client must read some of a reply. @default REPLY_SECONDS */
  readonly replySeconds?: number | undefined;
  /** Messages per second and client; 0 for no limit. @default RATE_PER_CLIENT */
  readonly ratePerClient?: number | undefined;
  /** API keys; one is required by every request but GET /health, and identifies the client. @default none */
  readonly apiKeys?: readonly string[] | undefined;
  /** Host names the server accepts besides this machine's and `host`. @default none; any if `host` is every address */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Addresses or networks of proxies whose `X-Forwarded-For` is trusted. @default none */
  readonly trustProxies?: readonly string[] | undefined;
  /** Origins of web pages that may use the server besides its own; "*" allows all. */
  readonly origins?: readonly string[] | undefined;
  /** A model for the LLM endpoint (`/v1`); closing the server does not close its engine. @default none */
  readonly llm?: ServedModel | undefined;
  /** Rollouts that agents play here (`/rollouts`); `/v1` is then theirs. @default none */
  readonly rollouts?: Rollouts | undefined;
  /** Page handlers, tried in order before the 404. */
  readonly pages?: readonly PageHandler[];
  /** Receives one record per event. */
  readonly onLog?: (record: LogRecord) => void;
}

/** A running server. */
export interface RunningServer {
  readonly url: string;
  readonly port: number;
  /** Sessions that hold a slot. */
  readonly sessions: number;
  /** Finishes running steps, closes every socket with 1001, and ends the threads. */
  close(): Promise<void>;
}

/**
 * Serves a data set's questions. Resolves when it listens; the data set may then be closed.
 *
 * @example
 * const server = await startServer(bundledDataSet(), { port: 8000 });
 * console.log(server.url); // for SQLEnvClient and OpenEnv clients
 * await server.close();
 */
export async function startServer(data: DataSet, options: ServerOptions = {}): Promise<RunningServer> {
  const { host = "127.0.0.1", port = 8000, threads = usableCpus(), pages = [], apiKeys, origins } = options;
  const { maxSessions = limits.MAX_SESSIONS, sessionsPerClient = limits.SESSIONS_PER_CLIENT } = options;
  const { maxMessageBytes = limits.MAX_MESSAGE_BYTES, replySeconds = limits.REPLY_SECONDS } = options;
  const { idleSeconds = limits.IDLE_SECONDS, pingSeconds = limits.PING_SECONDS } = options;
  const { silentSeconds = limits.SILENT_SECONDS, ratePerClient = limits.RATE_PER_CLIENT } = options;
  for (const [name, value] of Object.entries({ threads, maxSessions, sessionsPerClient, maxMessageBytes }))
    if (!Number.isInteger(value) || value < 1) throw new UsageError({ what: `${name} must be at least 1`, value });
  const proxies = new Proxies(options.trustProxies);
  const log = logTo(options.onLog ?? (() => {}));
  const metrics = new Metrics();
  const pool = new ThreadPool(specOf(data, options), {
    threads,
    onLost: (reason, sessions) => {
      metrics.count("sqlenv_threads_lost_total");
      log("error", "thread_lost", { reason, sessions });
    },
  });
  const sessions = new Sessions(pool, { max: maxSessions, perClient: sessionsPerClient, idleSeconds });
  const access = new Access({ apiKeys, origins, hosts: hostsFor(host, options.allowedHosts) });
  const held = new HeldBytes({ perClient: limits.HELD_BYTES_PER_CLIENT, total: limits.HELD_BYTES });
  const [rate, logged] = [new RateLimit(ratePerClient), new RateLimit(1)];
  const shared = { pool, sessions, access, proxies, held, metrics, log, rate, logged, maxMessageBytes };
  const llm = options.llm && new LlmEndpoint(options.llm, { held, metrics, log });
  const { fetch, settled } = routes({
    ...shared,
    llm,
    rollouts: options.rollouts,
    pages,
    questions: data.questions,
    about: aboutOf(data, rulesOf(options)),
    schemas: wireSchemas(options),
  });
  const server = createServer(
    { requestTimeout: 30_000, keepAliveTimeout: 65_000 },
    getRequestListener(fetch, { overrideGlobalObjects: false, hostname: "localhost", errorHandler: badRequest }),
  );
  server.setTimeout(replySeconds * 1000); // ends stalled connections; sockets have their own timeouts
  limitConnections(server, proxies, maxSessions, sessionsPerClient);
  const sockets = new Sockets(server, { ...shared, pingSeconds, silentSeconds, replySeconds });
  const reaper = setInterval(() => sessions.reap(), Math.min(Math.max(idleSeconds * 250, 10), 15_000));
  reaper.unref();
  const end = async () => {
    clearInterval(reaper);
    await pool.close();
  };
  try {
    await pool.ready();
    await listen(server, host, port);
  } catch (error) {
    await end();
    throw error;
  }
  const address = server.address() as AddressInfo;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
  log("info", "listening", { url, threads, max_sessions: maxSessions, questions: data.questions.length });
  let closing: Promise<void> | undefined;
  return {
    url,
    port: address.port,
    get sessions() {
      return sessions.active;
    },
    close: () => {
      closing ??= (async () => {
        log("info", "shutting_down", { sessions: sessions.active });
        const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
        const seconds = limits.SHUTDOWN_SECONDS;
        options.rollouts?.close();
        await Promise.all([sockets.drain(seconds), llm?.drain(seconds), settled()]);
        server.closeIdleConnections();
        await Promise.race([stopped, new Promise((resolve) => setTimeout(resolve, 500))]); // for replies still being sent
        server.closeAllConnections();
        await stopped;
        await end();
        log("info", "stopped");
      })();
      return closing;
    },
  };
}

/** Answers a request that cannot be parsed. */
function badRequest(error: unknown): Response {
  const isBad = error instanceof RequestError;
  return Response.json({ detail: isBad ? "Bad Request" : "Internal Server Error" }, { status: isBad ? 400 : 500 });
}

/** Limits connections in total and per address; a trusted proxy's belong to many clients. */
function limitConnections(server: Server, proxies: Proxies, maxSessions: number, perClient: number): void {
  const counts = new Map<string, number>();
  server.maxConnections = 2 * (maxSessions + limits.SPARE_CONNECTIONS);
  server.on("connection", (socket) => {
    const address = proxies.addressOf({ socket, headers: {} });
    if (proxies.isTrusted(address)) return;
    const network = networkOf(address);
    const count = (counts.get(network) ?? 0) + 1;
    if (count > perClient + limits.SPARE_CONNECTIONS) {
      socket.destroy();
      return;
    }
    counts.set(network, count);
    socket.once("close", () => {
      const left = counts.get(network)! - 1;
      if (left > 0) counts.set(network, left);
      else counts.delete(network);
    });
  });
}

/** Copies the database files into memory shared by all threads. */
function specOf({ name, questions, file, layout }: DataSet, options: EnvironmentOptions & ActionForm): ThreadSpec {
  if (!file) throw new UsageError({ what: "the data set does not give its database files", value: name });
  const names = [...new Set(questions.map(({ database_name }) => database_name))];
  const files = new Map(
    names.map((database) => {
      const bytes = file(database);
      const shared = new Uint8Array(new SharedArrayBuffer(bytes.length));
      shared.set(bytes);
      return [database, shared] as const;
    }),
  );
  const { step_budget = SERVER_STEP_BUDGET, rewards, seed } = options;
  const environment = {
    step_budget,
    ...(rewards && { rewards }),
    ...(seed !== undefined && { seed }),
    ...rulesOf(options),
  };
  const doubleQuotedStrings = layout === "spider" || layout === "bird";
  return { name, questions, files, doubleQuotedStrings, environment, textActions: options.textActions };
}

function aboutOf({ name, questions }: DataSet, rules: EnvironmentRules) {
  return {
    name: "sqlenv",
    description: `Questions about SQL databases, answered by looking: DESCRIBE, SAMPLE, QUERY, ANSWER. Data: ${name}, ${questions.length} questions. Rules: ${rulesId(rules)}.`,
    readme_content: null,
    version: "1.0.0",
    author: null,
    documentation_url: null,
  };
}
