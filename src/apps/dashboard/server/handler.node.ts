// The dashboard's request handler: its page, and runs' records as JSON, CSV and a live feed. Read-only.
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type Context, Hono } from "hono";
import { z } from "zod";
import { messageOf, SqlEnvError, UsageError } from "../../../errors.ts";
import { DIFFICULTIES } from "../../../gym/data/index.ts";
import { isAllowedHost } from "../../openenv/allowed-hosts.ts";
import { streamBytes, streamFile } from "../../openenv/streams.node.ts";
import { findGold } from "../../reports/gold.ts";
import { dashboardAssets, SECURITY_HEADERS } from "./assets.node.ts";
import { csvOf, logCsv } from "./csv.ts";
import { MAX_PAGE } from "./episode-index.ts";
import { openFeed } from "./feed.ts";
import { findQuestion, listQuestions } from "./questions.ts";
import { RunList } from "./run-list.node.ts";
import { type EpisodeQuery, type EpisodeRow, LOG_NAMES, type LogName, SORT_KEYS, VERDICTS } from "./schemas.ts";
import { findEpisode, type WatchedRun } from "./watched-run.node.ts";

/** Answers requests under its base path; undefined for others. */
export type Handler = (request: Request) => Promise<Response | undefined>;

export interface DashboardOptions {
  /** Run folders, or folders of run folders. */
  readonly runs: readonly string[];
  /** Base path. @default "/dashboard" */
  readonly base?: string;
  /** Allowed host names besides this machine's; "any" if the server checks them itself. @default none */
  readonly hosts?: readonly string[] | "any";
}

/** Rows of a log per response. */
const LOG_PAGE = 2000;
/** Bytes below which compression costs more than it saves. */
const WORTH_ZIPPING = 1000;

/** A handler for runs, live or finished. */
export function dashboardHandler({ runs, base = "/dashboard", hosts = [] }: DashboardOptions): Handler {
  const app = dashboardApp(new RunList(runs), base, hosts);
  return async (request) => {
    const { pathname } = new URL(request.url);
    return pathname === base || pathname.startsWith(`${base}/`) ? app.fetch(request) : undefined;
  };
}

function dashboardApp(runs: RunList, base: string, hosts: readonly string[] | "any"): Hono {
  const app = new Hono().basePath(base);
  const read = async (c: Context) => {
    const run = runs.named(c.req.param("id")!);
    await run.refresh();
    return run;
  };
  app.use(async (c, next) => {
    const { host } = new URL(c.req.url);
    if (!isAllowedHost(host, hosts) || !isAllowedHost(c.req.header("host"), hosts))
      return json(c, { error: "this server does not answer to that name", code: "host" }, 403);
    if (c.req.method !== "GET" && c.req.method !== "HEAD") return json(c, { error: "only GET" }, 405, ALLOWED);
    return next();
  });
  app.get("/api/runs", async (c) => {
    const all = runs.list();
    await Promise.all(all.map((run) => run.refresh({ episodes: false })));
    return json(c, { runs: all.map((run) => run.listing()) });
  });
  app.get("/api/runs/:id", async (c) => json(c, (await read(c)).summary()));
  app.get("/api/runs/:id/events", (c) => {
    const run = runs.named(c.req.param("id"));
    const cursor = c.req.header("last-event-id") ?? c.req.query("since") ?? "";
    const headers = { ...SECURITY_HEADERS, "content-type": "text/event-stream", "cache-control": "no-store" };
    return new Response(isHead(c) ? null : openFeed(run, cursor, c.req.raw.signal), { headers });
  });
  app.get("/api/runs/:id/comparison", async (c) => json(c, (await read(c)).comparison()));
  app.get("/api/runs/:id/episodes", async (c) => {
    const { episodes } = await read(c);
    return json(c, episodes.query(checked(querySchema, c) as EpisodeQuery));
  });
  app.get("/api/runs/:id/episodes/:n", async (c) => {
    const run = await read(c);
    const row = findEpisode(run, numberOf("n", c.req.param("n")));
    const [episode] = await run.readEpisodes([row]);
    const neighbours = run.episodes.neighbours(row.n, checked(querySchema, c) as EpisodeQuery);
    return json(c, { n: row.n, episode, gold: findGold(run.gold, row.question_id), neighbours });
  });
  app.get("/api/runs/:id/evaluation", async (c) =>
    json(c, { questions: listQuestions((await read(c)).questionRecords()) }),
  );
  app.get("/api/runs/:id/question", async (c) => {
    const id = c.req.query("id") ?? "";
    const found = findQuestion((await read(c)).questionRecords(), id);
    if (!found) throw new UsageError({ what: "no such question", value: id, remedy: "evaluation lists them" });
    return json(c, found);
  });
  app.get("/api/runs/:id/groups/:step/:group", async (c) => {
    const run = await read(c);
    const { step, group } = c.req.param();
    const rows = run.episodes.group(numberOf("step", step), numberOf("group", group));
    const episodes = await run.readEpisodes(rows);
    const { gold } = run;
    const numbered = episodes.map((episode, i) => ({
      n: rows[i]!.n,
      episode,
      gold: findGold(gold, episode.question_id),
    }));
    return json(c, { episodes: numbered });
  });
  app.get("/api/runs/:id/download/:file", async (c) => download(await read(c), c, c.req.param("file")));
  app.get("/api/runs/:id/:log", async (c, next) => {
    const log = c.req.param("log");
    if (!isLog(log)) return next();
    const run = await read(c);
    const { from, limit } = checked(pageSchema, c);
    return json(c, run.log(log, from, Math.min(limit ?? LOG_PAGE, LOG_PAGE)));
  });
  app.get("*", (c) => {
    const { path } = c.req;
    if (path === base)
      return new Response(null, { status: 308, headers: { ...SECURITY_HEADERS, location: `${base}/` } });
    return page(c, path.slice(base.length + 1) || "index.html") ?? notFound(c, path);
  });
  app.onError((error, c) => {
    const status = error instanceof UsageError ? (error.what.startsWith("no such") ? 404 : 400) : 500;
    const code = error instanceof SqlEnvError ? error.code : "internal";
    return json(c, { error: messageOf(error), code }, status);
  });
  return app;
}

const ALLOWED = { allow: "GET, HEAD" };

const COLUMNS = [
  "n",
  "step",
  "group",
  "generation",
  "question_id",
  "question",
  "database_name",
  "difficulty",
  "correctness",
  "total_reward",
  "advantage",
  "actions",
  "step_count",
  "failed",
  "not_understood",
  "completion_tokens",
  "truncated",
] as const satisfies readonly (keyof EpisodeRow)[];

async function download(run: WatchedRun, c: Context, file: string): Promise<Response> {
  const name = `${run.name}-${file}`.replace(/[^\w.-]+/g, "_");
  const headers = { "content-disposition": `attachment; filename="${name}"` };
  const [log, form] = file.split(".");
  if (log !== undefined && isLog(log) && form === "csv")
    return reply(c, logCsv(run.log(log).columns), "text/csv; charset=utf-8", 200, headers);
  if (log !== undefined && isLog(log) && form === "json") return json(c, run.log(log), 200, headers);
  if (file === "episodes.csv") {
    const rows = run.episodes.matching(checked(querySchema, c) as EpisodeQuery);
    const csv = csvOf(
      COLUMNS,
      rows.map((row) => COLUMNS.map((column) => row[column])),
    );
    return reply(c, csv, "text/csv; charset=utf-8", 200, headers);
  }
  if (file === "episodes.jsonl") {
    const type = { "content-type": "application/jsonl; charset=utf-8", "cache-control": "no-store" };
    return new Response(isHead(c) ? null : streamFile(join(run.folder, file)), {
      headers: { ...SECURITY_HEADERS, ...type, ...headers },
    });
  }
  if (file === "comparison.json") return json(c, run.comparison(), 200, headers);
  if (file === "summary.json") return json(c, run.summary(), 200, headers);
  return notFound(c, file);
}

// Query parameters. Absent is not the same as empty.
const whole = z.coerce.number().int().min(0);
const pageSchema = z.object({ from: whole.default(0), limit: whole.optional() });
const querySchema = z.object({
  text: z.string().max(500).optional(),
  from_step: whole.optional(),
  to_step: whole.optional(),
  verdict: z.enum(VERDICTS).optional(),
  difficulty: z.enum(DIFFICULTIES).optional(),
  actions: z.string().max(100).optional(),
  sort: z.enum(SORT_KEYS).optional(),
  descending: z.stringbool().optional(),
  offset: whole.optional(),
  limit: whole.max(MAX_PAGE).optional(),
});

/** Parses a URL's query. */
function checked<T>(schema: z.ZodType<T>, c: Context): T {
  const values = Object.entries(c.req.query()).filter(([, value]) => value !== "");
  return parsed(schema, Object.fromEntries(values));
}

function numberOf(name: string, value: string): number {
  return parsed(z.object({ [name]: whole }), { [name]: value })[name]!;
}

function parsed<T>(schema: z.ZodType<T>, value: unknown): T {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const [issue] = error.issues;
  throw new UsageError({
    what: `${issue!.path.join(".")}: ${issue!.message}`,
    remedy: "see docs/dashboard.md",
  });
}

function isHead(c: Context): boolean {
  return c.req.method === "HEAD";
}

function isLog(name: string): name is LogName {
  return (LOG_NAMES as readonly string[]).includes(name);
}

function page(c: Context, name: string): Response | undefined {
  const asset = dashboardAssets().get(name);
  if (!asset) return undefined;
  const zipped = takesZipped(c);
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": asset.type,
    vary: "accept-encoding",
    // File names under assets/ contain a content hash.
    "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
    ...(zipped ? { "content-encoding": "gzip" } : {}),
  };
  return new Response(isHead(c) ? null : streamBytes(zipped ? asset.zipped : asset.bytes), { headers });
}

const zip = promisify(gzip);

async function json(c: Context, value: unknown, status = 200, more: Record<string, string> = {}) {
  return reply(c, JSON.stringify(value), "application/json; charset=utf-8", status, more);
}

async function reply(
  c: Context,
  text: string,
  type: string,
  status: number,
  more: Readonly<Record<string, string>>,
): Promise<Response> {
  const headers = { ...SECURITY_HEADERS, "content-type": type, "cache-control": "no-store", ...more };
  if (text.length < WORTH_ZIPPING || !takesZipped(c)) return new Response(text, { status, headers });
  const zipped = { ...headers, "content-encoding": "gzip", vary: "accept-encoding" };
  return new Response(new Uint8Array(await zip(text)), { status, headers: zipped });
}

function takesZipped(c: Context): boolean {
  return /\bgzip\b/.test(c.req.header("accept-encoding") ?? "");
}

function notFound(c: Context, what: string): Promise<Response> {
  return json(c, { error: `nothing is at ${what}`, code: "not_found" }, 404);
}
