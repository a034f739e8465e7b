// The dashboard as a server with its own port.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { messageOf, UsageError } from "../../../errors.ts";
import { hostsFor, isAllowedHost } from "../../openenv/allowed-hosts.ts";
import { REPLY_SECONDS } from "../../openenv/limits.ts";
import { dashboardHandler } from "./handler.node.ts";

export const DASHBOARD_PORT = 7860;
const LOOPBACK = "127.0.0.1";

export interface ServeDashboardOptions {
  readonly runs: readonly string[];
  /** 0 picks a free port. @default the first free one from 7860 */
  readonly port?: number | undefined;
  /** @default 127.0.0.1: this machine only */
  readonly host?: string | undefined;
}

export interface DashboardServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves runs until closed. */
export async function serveDashboard({ runs, port, host = LOOPBACK }: ServeDashboardOptions): Promise<DashboardServer> {
  const hosts = hostsFor(host);
  const handler = dashboardHandler({ runs, hosts });
  const app = new Hono();
  app.get("/", (c) =>
    isAllowedHost(c.req.header("host"), hosts) ? c.redirect("/dashboard/", 308) : c.text("unknown host\n", 403),
  );
  app.all("*", async (c) => (await handler(c.req.raw)) ?? c.text("not found; the dashboard is at /dashboard/\n", 404));
  const wanted = port === undefined ? Array.from({ length: 20 }, (_, i) => DASHBOARD_PORT + i) : [port];
  const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false, hostname: "localhost" }));
  server.setTimeout(REPLY_SECONDS * 1000); // feeds send heartbeats twice as often
  const bound = await listen(server, wanted, host);
  const shown = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shown}:${bound}/dashboard/`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections(); // feeds would stay open forever
      }),
  };
}

/** Listens on the first free port. */
async function listen(server: Server, [port, ...others]: readonly number[], host: string): Promise<number> {
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
      what: code === "EADDRINUSE" ? "the port is in use" : `cannot listen: ${messageOf(error)}`,
      value: `${host}:${port}`,
      remedy: "name another, or 0 for any that is free",
      cause: error,
    });
  }
  return (server.address() as AddressInfo).port;
}
