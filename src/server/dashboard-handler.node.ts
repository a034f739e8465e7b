// The dashboard as a handler of requests: its page, and the run's records as JSON, CSV and a live feed. It only reads.
import { createReadStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import { messageOf, SqlEnvError, UsageError } from "../errors.ts";
import { DIFFICULTIES } from "../questions/index.ts";
import { dashboardAssets, SECURITY_HEADERS } from "./dashboard-assets.node.ts";
import { csvOf, logCsv } from "./dashboard-csv.ts";
import { MAX_PAGE } from "./dashboard-episodes.ts";
import { feedOf } from "./dashboard-feed.ts";
import { episodeNumbered, type WatchedRun } from "./dashboard-run.node.ts";
import { RunShelf } from "./dashboard-shelf.node.ts";
import { type EpisodeQuery, type EpisodeRow, LOG_NAMES, type LogName, SORT_KEYS, VERDICTS } from "./dashboard-wire.ts";

/** Answers what it knows the address of; undefined for any other. */
export type Handler = (request: Request) => Promise<Response | undefined>;

export interface DashboardOptions {
  /** Folders of runs, or folders that hold such folders. */
  readonly runs: readonly string[];
  /** Where it is mounted. @default "/dashboard" */
  readonly base?: string;
}

/** Rows of a log in one answer. */
const LOG_PAGE = 2000;
/** Below this, compressing costs more than it saves. */
const WORTH_ZIPPING = 1000;

/** A handler that shows runs, live or finished. */
export function dashboardHandler({ runs, base = "/dashboard" }: DashboardOptions): Handler {
  const shelf = new RunShelf(runs);
  return async (request) => {
    const url = new URL(request.url);
    if (url.pathname !== base && !url.pathname.startsWith(`${base}/`)) return undefined;
    try {
      if (request.method !== "GET" && request.method !== "HEAD")
        return await json(request, { error: "only GET" }, 405, { allow: "GET, HEAD" });
      if (url.pathname === base)
        return new Response(null, { status: 308, headers: { ...SECURITY_HEADERS, location: `${base}/` } });
      const parts = url.pathname
        .slice(base.length + 1)
        .split("/")
        .map(decoded);
      if (parts[0] === "api") return await answer(shelf, request, parts.slice(1), url.searchParams);
      return page(request, parts.join("/") || "index.html") ?? (await notFound(request, url.pathname));
    } catch (error) {
      const status = error instanceof UsageError ? (error.what.startsWith("no such") ? 404 : 400) : 500;
      const code = error instanceof SqlEnvError ? error.code : "internal";
      return json(request, { error: messageOf(error), code }, status);
    }
  };
}

async function answer(shelf: RunShelf, request: Request, path: readonly string[], query: URLSearchParams) {
  const [kind, id, what, ...rest] = path;
  if (kind !== "runs") return notFound(request, path.join("/"));
  if (id === undefined) {
    const runs = shelf.list();
    await Promise.all(runs.map((run) => run.refresh({ episodes: false })));
    return json(request, { runs: runs.map((run) => run.listing()) });
  }
  const run = shelf.named(id);
  if (what === "events") {
    const cursor = request.headers.get("last-event-id") ?? query.get("since") ?? "";
    const headers = { ...SECURITY_HEADERS, "content-type": "text/event-stream", "cache-control": "no-store" };
    return new Response(feedOf(run, cursor, request.signal), { headers });
  }
  await run.refresh();
  if (what === undefined) return json(request, run.summary());
  if (isLog(what)) {
    const { from, limit } = checked(pageSchema, query);
    return json(request, run.log(what, from, Math.min(limit ?? LOG_PAGE, LOG_PAGE)));
  }
  if (what === "comparison") return json(request, run.comparison());
  if (what === "episodes" && rest.length === 0)
    return json(request, run.episodes.query(checked(querySchema, query) as EpisodeQuery));
  if (what === "episodes" && rest.length === 1) {
    const row = episodeNumbered(run, checked(numbersSchema, [rest[0]])[0]!);
    const [episode] = await run.readEpisodes([row]);
    return json(request, { n: row.n, episode });
  }
  if (what === "groups" && rest.length === 2) {
    const [step, group] = checked(numbersSchema, rest);
    const rows = run.episodes.group(step!, group!);
    const episodes = await run.readEpisodes(rows);
    return json(request, { episodes: episodes.map((episode, i) => ({ n: rows[i]!.n, episode })) });
  }
  if (what === "download" && rest.length === 1) return download(run, request, rest[0]!, query);
  return notFound(request, path.join("/"));
}

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

async function download(run: WatchedRun, request: Request, file: string, query: URLSearchParams) {
  const name = `${run.name}-${file}`.replace(/[^\w.-]+/g, "_");
  const headers = { "content-disposition": `attachment; filename="${name}"` };
  const [log, form] = file.split(".");
  if (log !== undefined && isLog(log) && form === "csv")
    return reply(request, logCsv(run.log(log).columns), "text/csv; charset=utf-8", 200, headers);
  if (log !== undefined && isLog(log) && form === "json") return json(request, run.log(log), 200, headers);
  if (file === "episodes.csv") {
    const rows = run.episodes.matching(checked(querySchema, query) as EpisodeQuery);
    const csv = csvOf(
      COLUMNS,
      rows.map((row) => COLUMNS.map((column) => row[column])),
    );
    return reply(request, csv, "text/csv; charset=utf-8", 200, headers);
  }
  if (file === "episodes.jsonl") {
    const stream = Readable.toWeb(createReadStream(join(run.folder, file))) as ReadableStream<Uint8Array>;
    const type = { "content-type": "application/jsonl; charset=utf-8", "cache-control": "no-store" };
    return new Response(stream, { headers: { ...SECURITY_HEADERS, ...type, ...headers } });
  }
  if (file === "comparison.json") return json(request, run.comparison(), 200, headers);
  if (file === "summary.json") return json(request, run.summary(), 200, headers);
  return notFound(request, file);
}

// What addresses may ask for. Absent is not the same as empty.
const whole = z.coerce.number().int().min(0);
const pageSchema = z.object({ from: whole.default(0), limit: whole.optional() });
const numbersSchema = z.array(whole);
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

function checked<T>(schema: z.ZodType<T>, from: URLSearchParams | readonly unknown[]): T {
  const values =
    from instanceof URLSearchParams ? Object.fromEntries([...from].filter(([, value]) => value !== "")) : from;
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UsageError({
    what: `${issue!.path.join(".")}: ${issue!.message}`,
    remedy: "see the dashboard in docs/guide.md",
  });
}

function isLog(name: string): name is LogName {
  return (LOG_NAMES as readonly string[]).includes(name);
}

/** A part of an address as text; what is no text is a part of no address of ours. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "\ufffd";
  }
}

function page(request: Request, name: string): Response | undefined {
  const asset = dashboardAssets().get(name);
  if (!asset) return undefined;
  const zipped = takesZipped(request);
  const headers = {
    ...SECURITY_HEADERS,
    "content-type": asset.type,
    vary: "accept-encoding",
    // Names under assets/ change with their content.
    "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
    ...(zipped ? { "content-encoding": "gzip" } : {}),
  };
  return new Response(new Uint8Array(zipped ? asset.zipped : asset.bytes), { headers });
}

const zip = promisify(gzip);

async function json(request: Request, value: unknown, status = 200, more: Record<string, string> = {}) {
  return reply(request, JSON.stringify(value), "application/json; charset=utf-8", status, more);
}

async function reply(
  request: Request,
  text: string,
  type: string,
  status: number,
  more: Readonly<Record<string, string>>,
): Promise<Response> {
  const headers = { ...SECURITY_HEADERS, "content-type": type, "cache-control": "no-store", ...more };
  if (text.length < WORTH_ZIPPING || !takesZipped(request)) return new Response(text, { status, headers });
  const zipped = { ...headers, "content-encoding": "gzip", vary: "accept-encoding" };
  return new Response(new Uint8Array(await zip(text)), { status, headers: zipped });
}

function takesZipped(request: Request): boolean {
  return /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
}

function notFound(request: Request, what: string): Promise<Response> {
  return json(request, { error: `nothing is at ${what}`, code: "not_found" }, 404);
}
