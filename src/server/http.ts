// The HTTP routes: OpenEnv's, the Task API, metrics; then the pages that were mounted; then 404.
import { SqlEnvError } from "../errors.ts";
import type { QuestionRecord } from "../questions/index.ts";
import type { Access } from "./access.ts";
import { CapacityError, type Hub } from "./hub.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { docsPage, openApi } from "./openapi.ts";
import type { Pool } from "./pool.ts";
import type { RateLimit } from "./rate.ts";
import { paramsOf, parseRpc, RPC, RpcFault, type RpcRequest, type RpcResponse, rpcFailure, rpcResult } from "./rpc.ts";
import { unknownSession } from "./session.ts";
import { answerTasks } from "./tasks.ts";
import { wireSchemas } from "./wire.ts";

/** Serves some pages; undefined for requests that are not its own. */
export type PageHandler = (request: Request) => Promise<Response | undefined>;

export interface RouteOptions {
  readonly pool: Pool;
  readonly hub: Hub;
  readonly access: Access;
  readonly rate: RateLimit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly questions: readonly QuestionRecord[];
  readonly about: Readonly<Record<string, unknown>>;
  readonly pages: readonly PageHandler[];
}

/** The one session plain HTTP shares; it takes no slot, as in the protocol. */
export const HTTP_SESSION = "http";

type Route = (request: Request, client: string) => Response | Promise<Response>;

export interface Routes {
  /** Answers a request. */
  readonly handle: (request: Request, client: string) => Promise<Response>;
  /** Resolves when no request of the protocol is under way; pages may stream on. */
  readonly settled: () => Promise<unknown>;
}

/** Answers every HTTP request. */
export function routes(options: RouteOptions): Routes {
  const underWay = new Set<Promise<Response>>();
  const { pool, hub, access, rate, metrics, log, questions, about, pages } = options;
  const [schemas, api, docs] = [wireSchemas(), openApi(), docsPage()];
  const html = () => new Response(docs, { headers: { "content-type": "text/html; charset=utf-8" } });
  const environment =
    (verb: "reset" | "step" | "state"): Route =>
    async (request, client) => {
      const { status = 500, text } = await pool.ask(HTTP_SESSION, client, { verb, body: await request.text() });
      if (status === 500) return failed(text ?? "");
      return new Response(text, { status, headers: { "content-type": "application/json" } });
    };
  const known: Readonly<Record<string, Readonly<Record<string, Route>>>> = {
    "/reset": { POST: environment("reset") },
    "/step": { POST: environment("step") },
    "/state": { GET: environment("state") },
    "/mcp": {
      POST: async (request, client) =>
        new Response(await mcp(await request.text(), client), { headers: { "content-type": "application/json" } }),
    },
    "/health": { GET: () => Response.json({ status: "healthy" }) },
    "/metadata": { GET: () => Response.json(about) },
    "/schema": { GET: () => Response.json(schemas) },
    "/openapi.json": { GET: () => Response.json(api) },
    "/docs": { GET: html },
    "/redoc": { GET: html },
    "/metrics": {
      GET: () => new Response(metrics.text(gauges()), { headers: { "content-type": "text/plain; version=0.0.4" } }),
    },
  };

  const handle = async (request: Request, client: string): Promise<Response> => {
    const url = new URL(request.url);
    const origin = request.headers.get("origin");
    const header = (name: string) => request.headers.get(name) ?? undefined;
    const response = await decide(request, url, client, header);
    const route = url.pathname in known ? url.pathname : "other";
    metrics.count("sqlenv_http_requests_total", { route, status: response.status });
    if (origin !== null && access.allowsOrigin({ url, header })) {
      response.headers.set("access-control-allow-origin", origin);
      response.headers.set("vary", "origin");
    }
    return response;
  };

  return { handle, settled: () => Promise.all(underWay) };

  async function decide(
    request: Request,
    url: URL,
    client: string,
    header: (name: string) => string | undefined,
  ): Promise<Response> {
    if (request.method === "OPTIONS" && header("access-control-request-method")) return preflight(url, header);
    const refusal = access.refuse({ url, header });
    if (refusal) return Response.json({ detail: refusal.detail }, { status: refusal.status });
    const wait = url.pathname === "/health" ? 0 : rate.take(client);
    if (wait > 0) {
      rate.giveBack(client);
      const headers = { "retry-after": String(Math.ceil(wait / 1000)) };
      return Response.json({ detail: "Too Many Requests" }, { status: 429, headers });
    }
    const methods = Object.hasOwn(known, url.pathname) ? known[url.pathname] : undefined;
    if (methods) {
      const route = methods[request.method === "HEAD" ? "GET" : request.method];
      if (route) {
        const response = guarded(route, request, client);
        underWay.add(response);
        return response.finally(() => underWay.delete(response));
      }
      const headers = { allow: Object.keys(methods).join(", ") };
      return Response.json({ detail: "Method Not Allowed" }, { status: 405, headers });
    }
    return elsewhere(request, url);
  }

  /** Pages come before the Task API's paths, whose first part is any name. */
  async function elsewhere(request: Request, url: URL): Promise<Response> {
    for (const page of pages) {
      const response = await page(request.clone() as Request);
      if (response) return isolated(response);
    }
    const body = request.method === "POST" ? await request.text() : "";
    const task = answerTasks(request.method, url.pathname, body, questions);
    return task
      ? Response.json(task.body, { status: task.status })
      : Response.json({ detail: "Not Found" }, { status: 404 });
  }

  async function guarded(route: Route, request: Request, client: string): Promise<Response> {
    try {
      return await route(request, client);
    } catch (error) {
      const isLate = error instanceof SqlEnvError && error.code === "late";
      log("error", "request_failed", { path: new URL(request.url).pathname, message: String(error) });
      return isLate ? Response.json({ detail: error.message }, { status: 503 }) : failed(String(error));
    }
  }

  function preflight(url: URL, header: (name: string) => string | undefined): Response {
    const isAllowed = access.allowsOrigin({ url, header });
    const headers = {
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers": "content-type, authorization, x-api-key",
    };
    return new Response(null, isAllowed ? { status: 204, headers } : { status: 403 });
  }

  /** POST /mcp: sessions are the server's, tools a session's. Without a session the shared one is used. */
  async function mcp(text: string, client: string): Promise<string> {
    const request = parseRpc(text);
    return "method" in request ? answerRpc(request, text, client) : JSON.stringify(request);
  }

  async function answerRpc(request: RpcRequest, text: string, client: string): Promise<string> {
    try {
      const params = paramsOf(request);
      if (request.method === "openenv/session/create") return JSON.stringify(await createSession(request, client));
      const slot = hub.get(params.session_id);
      if (request.method === "openenv/session/close") {
        if (!slot || !hub.release(slot.id)) throw unknownSession(params.session_id);
        return JSON.stringify(rpcResult(request.id, { session_id: slot.id, closed: true }));
      }
      if (params.session_id !== undefined && params.session_id !== null && !slot)
        throw unknownSession(params.session_id);
      if (slot) slot.touchedAt = Date.now();
      const { text: answer } = await pool.ask(slot?.id ?? HTTP_SESSION, client, { verb: "rpcFrame", text });
      return answer!;
    } catch (error) {
      return JSON.stringify(rpcFailure(request.id, error));
    }
  }

  async function createSession({ id }: RpcRequest, client: string): Promise<RpcResponse> {
    try {
      const slot = hub.take(client);
      await slot.ready.catch((error: unknown) => {
        hub.release(slot.id);
        throw error;
      });
      metrics.count("sqlenv_sessions_total", { kind: "http" });
      return rpcResult(id, { session_id: slot.id });
    } catch (error) {
      if (error instanceof CapacityError) {
        const { active_sessions, max_sessions } = error;
        throw new RpcFault(RPC.server, error.message, { active_sessions, max_sessions });
      }
      throw new RpcFault(RPC.server, String(error), { factory_name: "SQLEnvironment" });
    }
  }

  function gauges() {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    return {
      sqlenv_sessions_active: ["Sessions that hold a slot", hub.active],
      sqlenv_sessions_max: ["Slots there are", hub.max],
      sqlenv_threads: ["Environment threads", pool.threads],
      sqlenv_requests_waiting: ["Requests that wait for a thread or are in work", pool.waiting],
      process_cpu_seconds_total: ["Processor time used", (user + system) / 1e6],
      process_resident_memory_bytes: ["Memory of the process", rss],
      nodejs_heap_used_bytes: ["JavaScript's share of it, main thread", heapUsed],
    } as const;
  }
}

/** The protocol's answer to an environment that raises; the reason goes into a header. */
function failed(reason: string): Response {
  const shown = reason.slice(0, 500).replace(/[^\x20-\x7e]/g, "?"); // what a header may hold
  const headers = { "content-type": "text/plain; charset=utf-8", "x-error": shown };
  return new Response("Internal Server Error", { status: 500, headers });
}

/** A page may use threads and shared memory only when it is isolated from other sites. */
function isolated(response: Response): Response {
  const headers = new Headers(response.headers);
  if (!headers.has("cross-origin-opener-policy")) headers.set("cross-origin-opener-policy", "same-origin");
  if (!headers.has("cross-origin-embedder-policy")) headers.set("cross-origin-embedder-policy", "require-corp");
  const { status, statusText, body } = response;
  return new Response(body, { status, statusText, headers });
}
