import { appendFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { comparison, episode, episodeLine, metrics, RESULT, TIMINGS } from "../../../../test/helpers/run-records.ts";
import { UsageError } from "../../../errors.ts";
import { dashboardAssets } from "./assets.node.ts";
import { exportDashboard } from "./export.node.ts";
import { dashboardHandler, type Handler } from "./handler.node.ts";
import type {
  EpisodePage,
  FeedEvent,
  LogPage,
  NumberedEpisode,
  QuestionDetail,
  QuestionRow,
  RunListing,
  RunSummary,
} from "./schemas.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-dashboard-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const linesOf = (records: readonly object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join("");
const CONFIG = "model_name: starter\nmax_steps: 40\nlearning_rate: 0.001\neval_steps: 10\n";

function writeRun(name: string, files: Readonly<Record<string, string>>): string {
  const folder = join(scratch, name);
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return folder;
}

const finished = () =>
  writeRun("lamps", {
    "config.yaml": CONFIG,
    "metrics.jsonl": linesOf(metrics()),
    "timings.jsonl": linesOf(TIMINGS),
    "warnings.jsonl": linesOf([{ step: 3, code: "nan", message: "not a number", remedy: "lower it" }]),
    "episodes.jsonl": linesOf(
      [1, 1, 2, 3].map((step, i) => ({ ...episodeLine(step, i === 0 ? 0 : 1), generation: i })),
    ),
    "results.json": JSON.stringify(RESULT),
    "comparison.json": JSON.stringify(comparison()),
    "gold.json": JSON.stringify({ shop_1: GOLD }),
    "evaluation-before.jsonl": linesOf([evaluated("before", "shop_1", 0), evaluated("before", "shop_2", 1)]),
    "evaluation-after.jsonl": linesOf([evaluated("after", "shop_1", 1), evaluated("after", "shop_2", 0)]),
  });

const GOLD = { query: "SELECT count(*) FROM lamp", answer: "12" };
const evaluated = (player: string, question_id: string, correctness: 0 | 1) => ({
  ...{ ...episode(player, correctness), question_id },
});

async function get<T>(handler: Handler, path: string, headers: Record<string, string> = {}): Promise<T> {
  const response = await handler(new Request(`http://localhost/dashboard/${path}`, { headers }));
  return (await response!.json()) as T;
}
const status = async (handler: Handler, path: string, init: RequestInit = {}) =>
  (await handler(new Request(`http://localhost${path}`, init)))!.status;

describe("a finished run", () => {
  let handler: Handler;
  beforeAll(() => {
    handler = dashboardHandler({ runs: [finished()] });
  });

  test("has its result, warnings and action sequences", async () => {
    const summary = await get<RunSummary>(handler, "api/runs/lamps");
    expect(summary).toMatchObject({
      ...{ id: "lamps", state: "finished", step: 40, total_steps: 40, now_step: 40, eta: null, problems: [] },
      episodes: { count: 4, indexed: 1 },
      warnings: [{ code: "nan" }],
      late: { sequences: [{ actions: "DQA", share: 1, right: 1 }] },
    });
    expect(summary.now!.unseen.greedy.success_rate).toBe(0.8);
    const { runs } = await get<{ runs: RunListing[] }>(handler, "api/runs");
    expect(runs.map(({ id, config }) => [id, config!.learning_rate])).toEqual([["lamps", 0.001]]);
  });

  test("serves its logs in pages", async () => {
    const all = await get<LogPage>(handler, "api/runs/lamps/metrics");
    expect(all.total).toBe(45);
    expect(all.columns.reward!.filter((value) => value !== null)).toHaveLength(40);
    const page = await get<LogPage>(handler, "api/runs/lamps/metrics?from=40&limit=2");
    expect(page).toMatchObject({ from: 40, total: 45, columns: { step: [37, 38] } });
    expect((await get<LogPage>(handler, "api/runs/lamps/habits")).columns.QUERY).toEqual([1, 1, 1]);
  });

  test("serves episodes: a page of rows, a single one, a group", async () => {
    const page = await get<EpisodePage>(
      handler,
      "api/runs/lamps/episodes?verdict=right&sort=step&descending=true&limit=2",
    );
    expect(page).toMatchObject({ total: 3, rows: [{ step: 3 }, { step: 2 }] });
    const one = await get<{ episode: { generation: number; steps: unknown[] } }>(handler, "api/runs/lamps/episodes/2");
    expect(one).toMatchObject({ n: 2, episode: { generation: 2, steps: [{}, {}, {}] } });
    const group = await get<{ episodes: { n: number }[] }>(handler, "api/runs/lamps/groups/1/0");
    expect(group.episodes.map(({ n }) => n)).toEqual([0, 1]);
  });

  test("an episode has its gold, and its neighbours in the filtered and sorted list", async () => {
    const list = "verdict=right&sort=step&descending=true";
    const one = await get<NumberedEpisode>(handler, `api/runs/lamps/episodes/2?${list}`);
    expect(one).toMatchObject({ gold: GOLD, neighbours: { previous: 3, next: 1, position: 2, total: 3 } });
    const other = await get<NumberedEpisode>(handler, "api/runs/lamps/episodes/0?verdict=right");
    expect(other.neighbours).toBeUndefined(); // not in that list
    const { episodes } = await get<{ episodes: NumberedEpisode[] }>(handler, "api/runs/lamps/groups/1/0");
    expect(episodes.map(({ gold }) => gold)).toEqual([GOLD, GOLD]);
  });

  test("lists the questions of the last evaluation, and each with the episodes of its players", async () => {
    const { questions } = await get<{ questions: QuestionRow[] }>(handler, "api/runs/lamps/evaluation");
    expect(questions).toMatchObject([
      { question_id: "shop_1", form: "count", before: 0, after: 1 },
      { question_id: "shop_2", form: "other", before: 1, after: 0 },
    ]);
    const players = async (id: string) =>
      (await get<QuestionDetail>(handler, `api/runs/lamps/question?id=${id}`)).episodes.map(({ player }) => player);
    expect(await players("shop_1")).toEqual(["random", "before", "after"]);
    expect(await players("shop_2")).toEqual(["before", "after"]);
    expect(await status(handler, "/dashboard/api/runs/lamps/question?id=nobody")).toBe(404);
  });

  test("a folder without these files lists the compared questions, without gold", async () => {
    const folder = writeRun("older", { "comparison.json": JSON.stringify(comparison()) });
    const older = dashboardHandler({ runs: [folder] });
    const { questions } = await get<{ questions: QuestionRow[] }>(older, "api/runs/older/evaluation");
    expect(questions).toMatchObject([{ question_id: "shop_1", before: 0, after: 1 }]);
    expect((await get<QuestionDetail>(older, "api/runs/older/question?id=shop_1")).gold).toBeNull();
  });

  test("downloads as CSV and JSON", async () => {
    const csv = await handler(
      new Request("http://localhost/dashboard/api/runs/lamps/download/episodes.csv?verdict=wrong"),
    );
    expect(csv!.headers.get("content-disposition")).toBe('attachment; filename="lamps-episodes.csv"');
    expect((await csv!.text()).split("\r\n")).toHaveLength(3);
    const lines = await handler(new Request("http://localhost/dashboard/api/runs/lamps/download/episodes.jsonl"));
    expect((await lines!.text()).split("\n")).toHaveLength(5);
    expect((await get<LogPage>(handler, "api/runs/lamps/download/metrics.json")).total).toBe(45);
  });

  test("unknown paths and invalid queries get an error response", async () => {
    for (const [path, code] of [
      ["/dashboard/api/runs/nobody", 404],
      ["/dashboard/api/runs/lamps/episodes/99", 404],
      ["/dashboard/api/runs/lamps/episodes/x", 400],
      ["/dashboard/api/runs/lamps/episodes?sort=__proto__", 400],
      ["/dashboard/api/runs/lamps/episodes?limit=100000", 400],
      ["/dashboard/api/runs/lamps/metrics?from=-1", 400],
      ["/dashboard/api/runs/lamps/download/config.yaml", 404],
      ["/dashboard/api/runs/lamps/download/..%2Fconfig.yaml", 404],
      ["/dashboard/api/runs/..%2Flamps", 404],
      ["/dashboard/..%2f..%2fpackage.json", 404],
      ["/dashboard/%ff", 404],
      ["/dashboard/api", 404],
    ] as const)
      expect([path, await status(handler, path)]).toEqual([path, code]);
    expect(await status(handler, "/dashboard/api/runs", { method: "POST" })).toBe(405);
    expect(await handler(new Request("http://localhost/elsewhere"))).toBeUndefined();
    expect(await handler(new Request("http://localhost/dashboards"))).toBeUndefined();
  });

  test("every response has the security headers, and large ones are compressed", async () => {
    for (const path of ["/dashboard", "/dashboard/", "/dashboard/api/runs", "/dashboard/nothing"]) {
      const { headers } = (await handler(new Request(`http://localhost${path}`)))!;
      expect(headers.get("content-security-policy")).toMatch(
        /default-src 'none'; script-src 'self';.*trusted-types 'none'/,
      );
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
    const request = new Request("http://localhost/dashboard/api/runs/lamps/metrics", {
      headers: { "accept-encoding": "gzip" },
    });
    const response = (await handler(request))!;
    expect(response.headers.get("content-encoding")).toBe("gzip");
    expect(JSON.parse(gunzipSync(await response.arrayBuffer()).toString())).toMatchObject({ total: 45 });
  });
});

test("accepts this machine's host names and the given ones, wherever it is mounted", async () => {
  const asked = async (handler: Handler, url: string, host?: string) =>
    (await handler(new Request(url, host === undefined ? {} : { headers: { host } })))!.status;
  const runs = [finished()];
  const handler = dashboardHandler({ runs });
  expect(await asked(handler, "http://localhost:7860/dashboard/api/runs")).toBe(200);
  expect(await asked(handler, "http://evil.example/dashboard/api/runs")).toBe(403);
  expect(await asked(handler, "http://evil.example/dashboard/")).toBe(403);
  const named = dashboardHandler({ runs, hosts: ["runs.example"] });
  expect(await asked(named, "https://runs.example/dashboard/api/runs")).toBe(200);
  expect(await asked(named, "https://evil.example/dashboard/api/runs")).toBe(403);
  expect(await asked(dashboardHandler({ runs, hosts: "any" }), "http://evil.example/dashboard/api/runs")).toBe(200);
});

test("HEAD returns only headers, also of a feed and a file", async () => {
  const handler = dashboardHandler({ runs: [finished()] });
  for (const path of ["", "api/runs", "api/runs/lamps/events", "api/runs/lamps/download/episodes.jsonl"]) {
    const response = (await handler(new Request(`http://localhost/dashboard/${path}`, { method: "HEAD" })))!;
    expect([path, response.status, response.body]).toEqual([path, 200, null]);
  }
});

test("the page is below 300 kB compressed and includes third-party licenses", async () => {
  const assets = [...dashboardAssets()];
  expect(assets.map(([name]) => name.replace(/-[\w-]{8}\./, "."))).toEqual(
    expect.arrayContaining(["index.html", "assets/index.js", "assets/index.css"]),
  );
  expect(assets.reduce((sum, [, { zipped }]) => sum + zipped.length, 0)).toBeLessThan(300_000);
  expect(dashboardAssets().get("THIRD_PARTY_LICENSES.txt")!.bytes.toString()).toMatch(
    /uplot .*MIT.*\s+The MIT License/,
  );
});

test("an exported file includes third-party licenses too", async () => {
  const { html } = await exportDashboard([finished()]);
  const [comment] = /<!--[\s\S]*?-->/.exec(html)!;
  expect(comment).toContain("Leon Sorokin"); // uPlot's author
  expect(html.slice(html.indexOf(comment) + comment.length)).toMatch(/^\n<html lang="en">\n<head>/);
});

/** Events of a feed as they come; `next` waits for one that fits. */
async function* events(handler: Handler, path: string, headers: Record<string, string> = {}) {
  const abort = new AbortController();
  const request = new Request(`http://localhost/dashboard/${path}`, { headers, signal: abort.signal });
  const response = (await handler(request))!;
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const fields = Object.fromEntries(
          text
            .slice(0, end)
            .split("\n")
            .map((line) => line.split(/: (.*)/s).slice(0, 2)),
        );
        text = text.slice(end + 2);
        if (fields.data) yield fields as { id?: string; event?: string; data: string };
      }
    }
  } finally {
    abort.abort();
  }
}

describe("a run that another process writes", () => {
  test("is followed; a lost connection resumes where it was", async () => {
    const all = metrics();
    const folder = writeRun("young", { "config.yaml": CONFIG, "metrics.jsonl": linesOf(all.slice(0, 3)) });
    const handler = dashboardHandler({ runs: [folder] });
    const { cursor, state } = await get<RunSummary>(handler, "api/runs/young");
    expect(state).toBe("stopped"); // nobody holds its lock
    const feed = events(handler, `api/runs/young/events?since=${cursor}`);
    const first = feed.next();
    appendFileSync(join(folder, "metrics.jsonl"), linesOf(all.slice(3, 4)));
    const { id, data } = (await first).value!;
    expect((JSON.parse(data) as FeedEvent).logs.metrics).toMatchObject({ from: 3, total: 4, columns: { step: [3] } });
    await feed.return(undefined);

    appendFileSync(join(folder, "metrics.jsonl"), linesOf(all.slice(4, 6)));
    appendFileSync(join(folder, "warnings.jsonl"), linesOf([{ step: 5, code: "nan", message: "m", remedy: "r" }]));
    appendFileSync(join(folder, "episodes.jsonl"), linesOf([episodeLine(1)]));
    const again = events(handler, "api/runs/young/events", { "last-event-id": id! });
    const missed = JSON.parse((await again.next()).value!.data) as FeedEvent;
    expect(missed.logs.metrics).toMatchObject({ from: 4, columns: { step: [4, 5] } });
    expect(missed.summary).toMatchObject({ step: 5, warnings: [{ step: 5 }], episodes: { count: 1 } });
    expect(missed.logs.habits.columns.step).toEqual([1]);
    await again.return(undefined);
  });

  test("is reread when resumed from an earlier step", async () => {
    const folder = writeRun("resumed", {
      "metrics.jsonl": linesOf(metrics(5)),
      "episodes.jsonl": linesOf([episodeLine(1), episodeLine(2)]),
    });
    const handler = dashboardHandler({ runs: [folder] });
    const { cursor, episodes } = await get<RunSummary>(handler, "api/runs/resumed");
    expect(episodes.count).toBe(2);
    truncateSync(join(folder, "episodes.jsonl"), linesOf([episodeLine(1)]).length);
    truncateSync(join(folder, "metrics.jsonl"), linesOf(metrics(5).slice(0, 2)).length);
    const feed = events(handler, `api/runs/resumed/events?since=${cursor}`);
    expect((await feed.next()).value).toMatchObject({ event: "reset" });
    await feed.return(undefined);
    expect(await get<RunSummary>(handler, "api/runs/resumed")).toMatchObject({ step: 1, episodes: { count: 1 } });
  });

  test("skips broken lines and files, and reports them", async () => {
    const folder = writeRun("broken", {
      "config.yaml": "a: [",
      "metrics.jsonl": `${linesOf(metrics(2))}not json\n{"step":"x"}\n`,
      "episodes.jsonl": `{"step":1}\n${linesOf([episodeLine(1)])}{"half":`,
      "results.json": "{",
    });
    const summary = await get<RunSummary>(dashboardHandler({ runs: [folder] }), "api/runs/broken");
    expect(summary).toMatchObject({ step: 2, config: null, episodes: { count: 1 }, lines: { metrics: 3 } });
    expect([...summary.problems].sort()).toEqual([
      "config.yaml cannot be read",
      "episodes.jsonl has lines that cannot be read; they are skipped",
      "metrics.jsonl has lines that cannot be read; they are skipped",
      "results.json cannot be read",
    ]);
  });
});

test("runs are found in their own folders and in folders of runs; other paths are rejected", async () => {
  const many = join(scratch, "many");
  mkdirSync(join(many, "empty"), { recursive: true });
  for (const name of ["many/a", "many/b"]) writeRun(name, { "metrics.jsonl": linesOf(metrics(1)) });
  writeRun("other/a", { "metrics.jsonl": linesOf(metrics(1)) });
  const handler = dashboardHandler({ runs: [many, join(scratch, "other", "a")] });
  const ids = async () => (await get<{ runs: RunListing[] }>(handler, "api/runs")).runs.map(({ id }) => id).sort();
  expect(await ids()).toEqual(["a", "a (2)", "b"]);
  writeRun("many/c", { "metrics.jsonl": "" });
  expect(await ids()).toEqual(["a", "a (2)", "b", "c"]);
  expect(() => dashboardHandler({ runs: [join(many, "empty")] })).toThrow(UsageError);
  expect(() => dashboardHandler({ runs: [join(many, "nothing")] })).toThrow(/no such run/);
});
