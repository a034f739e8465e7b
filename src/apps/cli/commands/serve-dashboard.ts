// Starts dashboards for commands, and stops them.
import { type DashboardServer, type ServeDashboardOptions, serveDashboard } from "../../dashboard/server/serve.node.ts";
import { isLoopback } from "../../openenv/allowed-hosts.ts";
import { type Output, styled } from "../terminal/output.ts";

/** Starts a dashboard and prints its URL. */
export async function startDashboard(options: ServeDashboardOptions, out: Output): Promise<DashboardServer> {
  const server = await serveDashboard(options);
  out.line(`${styled("bold", "dashboard:")} ${styled("cyan", server.url)}`);
  if (options.host !== undefined && !isLoopback(options.host)) {
    const text = `warning: anyone who reaches ${options.host} may see these runs; the dashboard has no access control`;
    process.stderr.write(`${styled("yellow", text)}\n`);
  }
  return server;
}

/** Serves runs until the signal is aborted. */
export async function serveUntil(signal: AbortSignal, options: ServeDashboardOptions, out: Output): Promise<void> {
  const server = await startDashboard(options, out);
  out.result({ url: server.url });
  out.line(styled("dim", "Ctrl-C stops it"));
  await aborted(signal);
  await server.close();
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
