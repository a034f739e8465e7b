// The Tinker server: serves this package's engine by the Tinker API, to its remote engine and to the stock client.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, RequestError } from "@hono/node-server";
import { UsageError } from "../../errors.ts";
import { Access } from "../openenv/access.ts";
import { hostsFor } from "../openenv/allowed-hosts.ts";
import { Proxies } from "../openenv/client-address.ts";
import { HeldBytes } from "../openenv/held-bytes.ts";
import { REPLY_SECONDS, SHUTDOWN_SECONDS } from "../openenv/limits.ts";
import { listen } from "../openenv/listen.ts";
import { CompletionQueue } from "../openenv/llm/queue.ts";
import { type LogRecord, logTo } from "../openenv/log.ts";
import { RateLimit } from "../openenv/rate-limit.ts";
import * as limits from "./limits.ts";
import { routes } from "./routes.ts";
import { type BaseModel, Service } from "./service.ts";

export interface TinkerServerOptions {
  /** @default "127.0.0.1" */
  readonly host?: string;
  /** 0 picks a free port. @default 8000 */
  readonly port?: number;
  /** Folder for checkpoints. @default "runs/tinker" */
  readonly checkpoints?: string;
  /** API keys; one is required by every request but GET /healthz, and identifies the client. @default none */
  readonly apiKeys?: readonly string[] | undefined;
  /** Host names the server accepts besides this machine's and `host`. @default none; any if `host` is every address */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Addresses or networks of proxies whose `X-Forwarded-For` is trusted. @default none */
  readonly trustProxies?: readonly string[] | undefined;
  /** @default MAX_SESSIONS */
  readonly maxSessions?: number | undefined;
  /** @default SESSIONS_PER_CLIENT */
  readonly sessionsPerClient?: number | undefined;
  /** Models in training at once. @default MAX_MODELS */
  readonly maxModels?: number | undefined;
  /** Seconds without a heartbeat after which a session ends. @default IDLE_SECONDS */
  readonly idleSeconds?: number | undefined;
  /** Requests per second and client; 0 for no limit. @default 2000 */
  readonly ratePerClient?: number | undefined;
  /** Milliseconds that a poll waits for a result. @default POLL_MS */
  readonly pollMs?: number | undefined;
  /** Receives one record per event. */
  readonly onLog?: (record: LogRecord) => void;
}

/** A running server. */
export interface RunningTinkerServer {
  readonly url: string;
  readonly port: number;
  readonly sessions: number;
  /** Ends sessions, engines and connections. */
  close(): Promise<void>;
}

/**
 * Serves a model, to sample from and to train. Resolves when it listens.
 *
 * @example
 * const server = await startTinkerServer(await loadBaseModel("starter"), { port: 8000 });
 * console.log(server.url); // for `sqlenv train --engine` and the stock client
 * await server.close();
 */
export async function startTinkerServer(
  model: BaseModel,
  options: TinkerServerOptions = {},
): Promise<RunningTinkerServer> {
  const { host = "127.0.0.1", port = 8000, checkpoints = "runs/tinker", apiKeys, ratePerClient = 2_000 } = options;
  const { maxSessions = limits.MAX_SESSIONS, sessionsPerClient = limits.SESSIONS_PER_CLIENT } = options;
  const { maxModels = limits.MAX_MODELS, idleSeconds = limits.IDLE_SECONDS, pollMs = limits.POLL_MS } = options;
  for (const [name, value] of Object.entries({ maxSessions, sessionsPerClient, maxModels }))
    if (!Number.isInteger(value) || value < 1) throw new UsageError({ what: `${name} must be at least 1`, value });
  const log = logTo(options.onLog ?? (() => {}));
  const queue = new CompletionQueue({
    tokens: model.cacheTokens,
    running: limits.RUNNING_SAMPLES,
    perClient: limits.SAMPLES_PER_CLIENT,
    total: limits.SAMPLES,
  });
  const service = new Service({
    model,
    checkpoints,
    maxSessions,
    sessionsPerClient,
    maxModels,
    idleSeconds,
    queue,
    log,
  });
  const fetch = routes({
    service,
    model,
    access: new Access({ apiKeys, hosts: hostsFor(host, options.allowedHosts) }),
    proxies: new Proxies(options.trustProxies),
    held: new HeldBytes({ perClient: limits.HELD_BYTES_PER_CLIENT, total: limits.HELD_BYTES }),
    rate: new RateLimit(ratePerClient),
    logged: new RateLimit(1),
    log,
    maxBodyBytes: limits.MAX_BODY_BYTES,
    pollMs,
  });
  const server = createServer(
    { requestTimeout: 60_000, keepAliveTimeout: 65_000 },
    getRequestListener(fetch, { overrideGlobalObjects: false, hostname: "localhost", errorHandler: badRequest }),
  );
  server.setTimeout(REPLY_SECONDS * 1000);
  server.maxConnections = 2 * limits.SAMPLES_PER_CLIENT; // each sample that is waited for is a connection
  const reaper = setInterval(() => service.reap(), Math.min(Math.max(idleSeconds * 250, 10), 15_000));
  reaper.unref();
  try {
    await listen(server, host, port);
  } catch (error) {
    clearInterval(reaper);
    throw error;
  }
  const address = server.address() as AddressInfo;
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
  log("info", "listening", { url, model: model.names[0] });
  let closing: Promise<void> | undefined;
  return {
    url,
    port: address.port,
    get sessions() {
      return service.sessions;
    },
    close: () => {
      closing ??= (async () => {
        log("info", "shutting_down", { sessions: service.sessions });
        const stopped = new Promise<void>((resolve) => server.close(() => resolve()));
        clearInterval(reaper);
        const drained = queue.drain(SHUTDOWN_SECONDS);
        await service.close();
        await drained;
        server.closeAllConnections();
        await stopped;
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
