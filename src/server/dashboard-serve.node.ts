// The dashboard behind a port of its own.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { messageOf, UsageError } from "../errors.ts";
import { dashboardHandler, type Handler } from "./dashboard-handler.node.ts";

export const DASHBOARD_PORT = 7860;
const LOOPBACK = "127.0.0.1";

export interface ServeDashboardOptions {
  readonly runs: readonly string[];
  /** 0 takes any free one; without one, the next free from 7860 on. */
  readonly port?: number | undefined;
  /** @default 127.0.0.1: this machine only */
  readonly host?: string | undefined;
}

export interface DashboardServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves runs until it is closed. */
export async function serveDashboard({ runs, port, host = LOOPBACK }: ServeDashboardOptions): Promise<DashboardServer> {
  const handler = dashboardHandler({ runs });
  const wanted = port === undefined ? Array.from({ length: 20 }, (_, i) => DASHBOARD_PORT + i) : [port];
  const server = createServer((request, response) => void respond(handler, request, response, isLoopback(host)));
  const bound = await listen(server, wanted, host);
  const shown = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shown}:${bound}/dashboard/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections(); // feeds would stay open for ever
      }),
  };
}

/** The first of the ports that is free. */
async function listen(
  server: ReturnType<typeof createServer>,
  [port, ...others]: readonly number[],
  host: string,
): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => {
        server.off("error", reject);
        resolve();
      });
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" && others.length > 0) return listen(server, others, host);
    throw new UsageError({
      what: code === "EADDRINUSE" ? "the port is taken" : `cannot listen: ${messageOf(error)}`,
      value: `${host}:${port}`,
      remedy: "name another, or 0 for any that is free",
      cause: error,
    });
  }
  return (server.address() as AddressInfo).port;
}

async function respond(
  handler: Handler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  local: boolean,
): Promise<void> {
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  try {
    const authority = incoming.headers.host ?? "";
    // A foreign page could point its own name at this machine and read along.
    if (local && !isLoopback(authority.replace(/:\d+$/, ""))) {
      outgoing.writeHead(403).end("this server answers to localhost only\n");
      return;
    }
    if (incoming.url === "/") {
      outgoing.writeHead(308, { location: "/dashboard/" }).end();
      return;
    }
    const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, [value].flat().join(", ")]],
    );
    const url = new URL(incoming.url ?? "/", "http://localhost");
    const method = incoming.method ?? "GET";
    const answer = await handler(new Request(url, { method, headers, signal: gone.signal }));
    if (!answer) {
      outgoing.writeHead(404).end("nothing is here; the dashboard is at /dashboard/\n");
      return;
    }
    outgoing.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (!answer.body || method === "HEAD") {
      await answer.body?.cancel();
      outgoing.end();
      return;
    }
    const body = Readable.fromWeb(answer.body as NodeStream);
    body.on("error", () => outgoing.destroy());
    outgoing.on("close", () => body.destroy());
    body.pipe(outgoing);
  } catch (error) {
    if (!outgoing.headersSent) outgoing.writeHead(400);
    outgoing.end(`${messageOf(error)}\n`);
  }
}

function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?)$/i.test(host);
}
