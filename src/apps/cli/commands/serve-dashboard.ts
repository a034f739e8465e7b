// A dashboard on the command line: where it is, and until when.
import { type DashboardServer, type ServeDashboardOptions, serveDashboard } from "../../dashboard/server/serve.node.ts";
import { isLoopback } from "../../openenv/allowed-hosts.ts";
import { type Output, styled } from "../terminal/output.ts";

/** Starts a dashboard and says where it is. */
export async function startDashboard(options: ServeDashboardOptions, out: Output): Promise<DashboardServer> {
  const server = await serveDashboard(options);
  out.line(`${styled("bold", "dashboard:")} ${styled("cyan", server.url)}`);
  if (options.host !== undefined && !isLoopback(options.host)) {
    const text = `warning: anyone who reaches ${options.host} may see these runs; the dashboard asks for no key`;
    process.stderr.write(`${styled("yellow", text)}\n`);
  }
  return server;
}

/** Shows runs until the signal comes. */
export async function serveUntil(signal: AbortSignal, options: ServeDashboardOptions, out: Output): Promise<void> {
  const server = await startDashboard(options, out);
  out.result({ url: server.url });
  out.line(styled("dim", "Ctrl-C ends it"));
  await aborted(signal);
  await server.close();
}

/** Resolves when the signal has come. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
