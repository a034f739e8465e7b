// The HTTP routes, in order: OpenEnv's, metrics, mounted pages, the Task API, 404.
// Host, origin, key and rate are checked before a body is read.
import type { HttpBindings } from "@hono/node-server";
import { type Context, Hono, type MiddlewareHandler } from "hono";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { messageOf, SqlEnvError } from "../../errors.ts";
import type { QuestionRecord } from "../../gym/data/index.ts";
import { inLlmShape, LlmError } from "../../lm/chat/openai/error.ts";
import type { Access, Caller, Refusal } from "./access.ts";
import type { Proxies } from "./client-address.ts";
import type { HeldBytes } from "./held-bytes.ts";
import { REQUEST_BYTES } from "./limits.ts";
import type { LlmEndpoint } from "./llm/endpoint.ts";
import type { Rollouts } from "./llm/rollouts.ts";
import type { Log } from "./log.ts";
import { answerMcp, endMcp, type McpCaller, type McpReply } from "./mcp/handler.ts";
import type { Metrics } from "./metrics.ts";
import { docsPage, openApi } from "./openapi.ts";
import type { PageHandler } from "./page-handler.ts";
import type { RateLimit } from "./rate-limit.ts";
import { withBody } from "./request-body.ts";
import type { WireSchemas } from "./schemas.ts";
import type { Sessions } from "./sessions.ts";
import { answerTasks } from "./task-api.ts";
import type { ThreadPool } from "./thread-pool.ts";

export interface RouteOptions {
  readonly pool: ThreadPool;
  readonly sessions: Sessions;
  readonly access: Access;
  readonly proxies: Proxies;
  readonly rate: RateLimit;
  /** Limits how often refusals are logged. */
  readonly logged: RateLimit;
  readonly held: HeldBytes;
  readonly maxMessageBytes: number;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly questions: readonly QuestionRecord[];
  readonly about: Readonly<Record<string, unknown>>;
  readonly schemas: WireSchemas;
  readonly pages: readonly PageHandler[];
  readonly llm?: LlmEndpoint | undefined;
  readonly rollouts?: Rollouts | undefined;
}

interface Env {
  Bindings: HttpBindings;
  Variables: { client: string };
}
type Handler = (c: Context<Env>) => Response | Promise<Response>;

export interface Routes {
  readonly fetch: Hono<Env>["fetch"];
  /** Resolves when no protocol request is running; pages may keep streaming. */
  readonly settled: () => Promise<unknown>;
}

const JSON_TYPE = { "content-type": "application/json" };

/** Answers every HTTP request. */
export function routes(options: RouteOptions): Routes {
  const {
    pool,
    sessions,
    access,
    proxies,
    rate,
    logged,
    held,
    maxMessageBytes,
    metrics,
    log,
    questions,
    about,
    schemas,
    pages,
    llm,
    rollouts,
  } = options;
  const underWay = new Set<Promise<unknown>>();
  const api = openApi(schemas, { llm: (llm ?? rollouts) !== undefined, rollouts: rollouts !== undefined });
  const docs = docsPage(api);

  const posted =
    (answer: (body: string, c: Context<Env>) => Promise<Response>): Handler =>
    (c) =>
      withBody(c.env.incoming, { client: c.get("client"), held, maxBytes: maxMessageBytes }, (body) => answer(body, c));

  /** A request to the session that the client's plain HTTP requests share. */
  const environment = async (verb: "reset" | "step" | "state", body: string, client: string) => {
    const slot = sessions.plain(client);
    await slot.ready;
    const { status = 500, text } = await pool.ask(slot.id, client, { verb, body });
    if (status === 500) return failed(text ?? "");
    if (status === 200 && verb !== "state") slot.isUsed = true;
    return new Response(text, { status, headers: JSON_TYPE });
  };

  const html: Handler = (c) => c.html(docs);
  const models: Handler = (c) => (rollouts || llm ? c.json((rollouts ?? llm)!.models()) : noModel());
  const completions = (idOf: (c: Context<Env>) => string | undefined) =>
    posted(async (body, c) => {
      if (rollouts) return unhurried(c, (signal) => rollouts.complete(idOf(c), body, signal));
      return llm ? unhurried(c, (signal) => llm.answer(body, { client: c.get("client"), signal })) : noModel();
    });
  const known: Readonly<Record<string, Readonly<Partial<Record<"GET" | "POST" | "DELETE", Handler>>>>> = {
    "/reset": { POST: posted((body, c) => environment("reset", body, c.get("client"))) },
    "/step": { POST: posted((body, c) => environment("step", body, c.get("client"))) },
    "/state": { GET: (c) => environment("state", "", c.get("client")) },
    "/mcp": {
      POST: posted(async (body, c) => mcpResponse(await answerMcp(body, mcpCaller(c), { pool, sessions, metrics }))),
      DELETE: (c) => mcpResponse(endMcp(mcpCaller(c), { pool, sessions, metrics })),
    },
    "/health": { GET: (c) => c.json({ status: "healthy" }) },
    "/metadata": { GET: (c) => c.json(about) },
    "/schema": { GET: (c) => c.json(schemas) },
    "/openapi.json": { GET: (c) => c.json(api) },
    "/docs": { GET: html },
    "/redoc": { GET: html },
    "/v1/models": { GET: models },
    "/v1/chat/completions": { POST: completions((c) => c.req.header("x-rollout-id")) },
    ...(rollouts && {
      "/rollouts/next": { POST: posted((_, c) => unhurried(c, (signal) => rollouts.next(signal))) },
      "/rollouts/:id/reward": { POST: posted(async (body, c) => rollouts.report(c.req.param("id")!, body)) },
      "/rollouts/:id/v1/models": { GET: models },
      "/rollouts/:id/v1/chat/completions": { POST: completions((c) => c.req.param("id")) },
    }),
    "/metrics": { GET: (c) => c.text(metrics.text(gauges()), 200, { "content-type": "text/plain; version=0.0.4" }) },
  };

  /** The route of a path; undefined for the paths of pages and tasks. */
  const routeOf = (path: string) => {
    const route = path.replace(/^\/rollouts\/[^/]+\//, "/rollouts/:id/");
    return Object.hasOwn(known, route) ? route : undefined;
  };

  const app = new Hono<Env>();
  app.use(count);
  const inShape: MiddlewareHandler = async (c, next) => {
    await next();
    c.res = await inLlmShape(c.res);
  };
  app.use("/v1/*", inShape);
  app.use("/rollouts/:id/v1/*", inShape);
  app.use(async (c, next) => refused(access.refuseOrigin(callerOf(c)), c) ?? next());
  app.use(ifPreflight(cors(CORS)));
  app.use(admit);
  for (const [path, methods] of Object.entries(known)) {
    for (const [method, handler] of Object.entries(methods)) app.on(method, path, handler);
    app.all(path, (c) => c.json({ detail: "Method Not Allowed" }, 405, { allow: Object.keys(methods).join(", ") }));
  }
  if (pages.length > 0) app.get("/", (c) => c.redirect("/web/"));
  app.use(async (c, next) => {
    for (const page of pages) {
      const response = await page(c.req.raw);
      if (response) return isolated(response);
    }
    return next();
  });
  app.get("/list_environments", (c) => tasks("", c));
  app.post("/:env/:verb", posted(tasks));
  app.all("/:env/:verb", (c) => tasks("", c));
  app.all("/list_environments", (c) => tasks("", c));
  app.notFound((c) => c.json({ detail: "Not Found" }, 404));
  app.onError((error, c) => {
    if (error instanceof HTTPException) return error.getResponse();
    log("error", "request_failed", { path: c.req.path, message: messageOf(error) });
    const isLate = error instanceof SqlEnvError && error.code === "late";
    return isLate ? c.json({ detail: error.message }, 503, { "retry-after": "1" }) : failed(messageOf(error));
  });

  return { fetch: app.fetch, settled: () => Promise.all(underWay) };

  async function count(c: Context<Env>, next: () => Promise<void>): Promise<void> {
    const { path } = c.req;
    const route = routeOf(path) ?? "other";
    const answered = next();
    if (route !== "other") underWay.add(answered);
    try {
      await answered;
    } finally {
      underWay.delete(answered);
    }
    metrics.count("sqlenv_http_requests_total", { route, status: c.res.status });
  }

  async function admit(c: Context<Env>, next: () => Promise<void>): Promise<Response | undefined> {
    const admitted = access.admit(callerOf(c));
    if (!("client" in admitted)) {
      const { status, detail } = admitted;
      const { address } = callerOf(c);
      if (logged.tryTake(address)) log("warning", "refused", { client: address, status, detail });
      return refused(admitted, c);
    }
    const { client } = admitted;
    if (c.req.path !== "/health" && !rate.tryTake(client))
      return refused({ status: 429, detail: "Too Many Requests", retryAfter: 1 }, c);
    c.set("client", client);
    if (!routeOf(c.req.path) || c.req.path === "/health" || c.req.path === "/metrics") {
      await next(); // pages may stream for hours
      return undefined;
    }
    const full = held.over(client);
    if (full === "client") return refused({ status: 429, detail: "Too many requests are waiting", retryAfter: 1 }, c);
    if (full === "server") return refused({ status: 503, detail: "The server is busy", retryAfter: 1 }, c);
    held.add(client, REQUEST_BYTES);
    try {
      await next();
    } finally {
      held.giveBack(client, REQUEST_BYTES);
    }
    return undefined;
  }

  function callerOf(c: Context<Env>): Caller {
    const address = proxies.addressOf(c.env.incoming);
    return { address, url: new URL(c.req.url), header: (name) => c.req.header(name), isUpgrade: false };
  }

  async function tasks(body: string, c: Context<Env>): Promise<Response> {
    const task = answerTasks(c.req.method, c.req.path, body, questions);
    return task ? Response.json(task.body, { status: task.status }) : c.notFound();
  }

  function gauges() {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    return {
      sqlenv_sessions_active: ["Sessions that hold a slot", sessions.active],
      sqlenv_sessions_max: ["Slots there are", sessions.max],
      sqlenv_threads: ["Environment threads", pool.threads],
      sqlenv_requests_waiting: ["Requests that wait for a thread or are in work", pool.waiting],
      ...(rollouts && { sqlenv_rollouts_playing: ["Rollouts that agents play", rollouts.playing] as const }),
      ...(llm && {
        sqlenv_completions_running: ["Completions that are sampled", llm.queue.running] as const,
        sqlenv_completions_waiting: ["Completions that wait", llm.queue.waiting] as const,
      }),
      sqlenv_held_bytes: ["Bytes of messages that wait and of replies not read", held.total],
      process_cpu_seconds_total: ["Processor time used", (user + system) / 1e6],
      process_resident_memory_bytes: ["Memory of the process", rss],
      nodejs_heap_used_bytes: ["JavaScript's share of it, main thread", heapUsed],
    } as const;
  }
}

const CORS = {
  origin: (origin: string) => origin,
  allowMethods: ["GET", "POST", "DELETE"],
  allowHeaders: [
    "content-type",
    "authorization",
    "x-api-key",
    "mcp-session-id",
    "mcp-protocol-version",
    "x-rollout-id",
  ],
  exposeHeaders: ["mcp-session-id"],
};

/** An answer that may take long: the connection may be silent meanwhile, and ends it by closing. */
async function unhurried(c: Context<Env>, answer: (signal: AbortSignal) => Promise<Response>): Promise<Response> {
  const { incoming, outgoing } = c.env;
  const gone = new AbortController();
  outgoing.once("close", () => gone.abort());
  const { socket } = incoming;
  const { timeout = 0 } = socket;
  socket.setTimeout(0);
  try {
    return await answer(gone.signal);
  } finally {
    socket.setTimeout(timeout);
  }
}

function noModel(): Response {
  return new LlmError(404, { message: "this server has no model; start it with --model", code: "model_not_found" })
    .response;
}

function mcpCaller(c: Context<Env>): McpCaller {
  return {
    client: c.get("client"),
    sessionId: c.req.header("mcp-session-id"),
    version: c.req.header("mcp-protocol-version"),
  };
}

function mcpResponse({ status, text, sessionId }: McpReply): Response {
  const headers = { ...(text !== null && JSON_TYPE), ...(sessionId !== undefined && { "mcp-session-id": sessionId }) };
  return new Response(text, { status, headers });
}

/** OPTIONS is a CORS preflight only with a requested method; otherwise it asks what a path allows. */
function ifPreflight(handler: MiddlewareHandler): MiddlewareHandler {
  return (c, next) =>
    c.req.method === "OPTIONS" && c.req.header("access-control-request-method") === undefined
      ? next()
      : c.req.header("origin") === undefined
        ? next()
        : handler(c, next);
}

/** The response to a refused request. Its body is not read, so the connection is closed. */
function refused(refusal: Refusal | undefined, c: Context<Env>): Response | undefined {
  if (!refusal) return undefined;
  const { status, detail, retryAfter } = refusal;
  const { "content-length": length = "0", "transfer-encoding": coding } = c.env.incoming.headers;
  const headers = {
    ...((length !== "0" || coding !== undefined) && { connection: "close" }),
    ...(retryAfter !== undefined && { "retry-after": String(retryAfter) }),
  };
  return Response.json({ detail }, { status, headers });
}

/** The protocol's response when the environment throws; the reason is in a header. */
function failed(reason: string): Response {
  const shown = reason.slice(0, 500).replace(/[^\x20-\x7e]/g, "?"); // printable ASCII, as headers require
  const headers = { "content-type": "text/plain; charset=utf-8", "x-error": shown };
  return new Response("Internal Server Error", { status: 500, headers });
}

/** Cross-origin isolation, which pages need for shared memory and threads. */
function isolated(response: Response): Response {
  const headers = new Headers(response.headers);
  if (!headers.has("cross-origin-opener-policy")) headers.set("cross-origin-opener-policy", "same-origin");
  if (!headers.has("cross-origin-embedder-policy")) headers.set("cross-origin-embedder-policy", "require-corp");
  const { status, statusText, body } = response;
  return new Response(body, { status, statusText, headers });
}
