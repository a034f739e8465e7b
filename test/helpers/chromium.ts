// A real browser for tests of pages: Debian's chromium, if installed.
import { readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, normalize } from "node:path";
import { chromiumPath } from "../../src/apps/bench/servers/browser.node.ts";
import { without } from "./needs.ts";

/** Chromium's path; undefined if missing, and tests are skipped. */
export const CHROMIUM = chromiumPath() ?? undefined;

/** For the name of a suite: says why it is skipped. */
export const WITHOUT = without("chromium", Boolean(CHROMIUM), "apt-get install chromium");

export interface Site {
  readonly url: string;
  close(): void;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/** A static file server without special headers. */
export function serveFiles(root: string): Promise<Site> {
  return listen(
    createServer((request, response) => {
      const path = decodeURIComponent(new URL(request.url ?? "/", "http://localhost").pathname);
      const file = join(root, normalize(path), path.endsWith("/") ? "index.html" : "");
      if (!statSync(file, { throwIfNoEntry: false })?.isFile()) response.writeHead(404).end();
      else {
        const type = TYPES[extname(file)] ?? "application/octet-stream";
        response.writeHead(200, { "content-type": type }).end(readFileSync(file));
      }
    }),
  );
}

/** A server around a request handler. */
export function serveHandler(handle: (request: Request) => Promise<Response | undefined>): Promise<Site> {
  return listen(
    createServer(async (request, response) => {
      const headers = new Headers(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
      const url = `http://${request.headers.host}${request.url}`;
      const answer = await handle(new Request(url, { method: request.method ?? "GET", headers }));
      response.writeHead(answer?.status ?? 404, Object.fromEntries(answer?.headers ?? []));
      response.end(answer?.body ? Buffer.from(await answer.arrayBuffer()) : undefined);
    }),
  );
}

async function listen(server: Server): Promise<Site> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}
