// Measures load times and page size of the dashboard for a long run.
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EpisodePage, RunSummary } from "../../dashboard/server/schemas.ts";
import { serveDashboard } from "../../dashboard/server/serve.node.ts";
import { median } from "../median.ts";
import { type Browser, openBrowser } from "./browser.node.ts";
import { writeSyntheticRun } from "./synthetic-run.node.ts";

export interface DashboardBench {
  readonly steps: number;
  readonly episodes: number;
  readonly episodes_bytes: number;
  readonly browser: string;
  /** Median milliseconds over several loads; the first load happens while the server still indexes the episodes. */
  readonly first_paint_ms: number;
  /** Milliseconds until the first screen shows the run. */
  readonly shown_ms: number;
  readonly first_load: { readonly first_paint_ms: number; readonly shown_ms: number };
  /** Compressed bytes transferred for the page itself; `all_bytes` includes its records. */
  readonly page_bytes: number;
  readonly all_bytes: number;
  /** Milliseconds until every episode can be filtered and sorted. */
  readonly index_ms: number;
  readonly query_ms: number;
  readonly episode_ms: number;
  readonly server_rss_bytes: number;
}

const LOADS = 5;

/** Writes a run of this size, serves it and measures in a browser. */
export async function benchDashboard(
  { steps, episodes }: { readonly steps: number; readonly episodes: number },
  onPhase: (words: string) => void = () => {},
): Promise<DashboardBench> {
  const scratch = mkdtempSync(join(tmpdir(), "sqlenv-bench-"));
  const folder = join(scratch, "long");
  const browser = await openBrowser();
  try {
    onPhase("writing a run");
    writeSyntheticRun(folder, { steps, episodes });
    const server = await serveDashboard({ runs: [folder], port: 0 });
    try {
      onPhase("loading the page");
      const started = performance.now();
      const first = await load(browser, server.url);
      const api = `${server.url}api/runs/long`;
      const summary = () => ask<RunSummary>(api);
      while ((await summary()).episodes.indexed < 1) await new Promise((resolve) => setTimeout(resolve, 20));
      const index_ms = performance.now() - started;
      const loads: Load[] = [];
      for (let i = 0; i < LOADS; i++) loads.push(await load(browser, server.url));
      onPhase("asking for episodes");
      const query = `${api}/episodes?sort=advantage&descending=true&text=wines&verdict=wrong`;
      const query_ms = await medianTime(() => ask<EpisodePage>(query));
      const episode_ms = await medianTime((i) => ask(`${api}/episodes/${(i * 7919) % episodes}`));
      return {
        steps,
        episodes,
        episodes_bytes: statSync(join(folder, "episodes.jsonl")).size,
        browser: browser.version(),
        first_paint_ms: median(loads.map(({ first_paint_ms }) => first_paint_ms)),
        shown_ms: median(loads.map(({ shown_ms }) => shown_ms)),
        first_load: { first_paint_ms: first.first_paint_ms, shown_ms: first.shown_ms },
        page_bytes: first.page_bytes,
        all_bytes: first.all_bytes,
        index_ms,
        query_ms,
        episode_ms,
        server_rss_bytes: process.memoryUsage.rss(),
      };
    } finally {
      await server.close();
    }
  } finally {
    await browser.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

interface Load {
  readonly first_paint_ms: number;
  readonly shown_ms: number;
  readonly page_bytes: number;
  readonly all_bytes: number;
}

/** Loads the page cold, with nothing cached. */
async function load(browser: Browser, url: string): Promise<Load> {
  const page = await browser.newPage();
  const sizes: Promise<[url: string, bytes: number]>[] = [];
  page.on("response", (response) => {
    if (response.url().includes("/events")) return; // this request stays open as long as the page
    const size = response.request().sizes();
    sizes.push(size.then(({ responseBodySize: body, responseHeadersSize: head }) => [response.url(), body + head]));
  });
  await page.goto(url);
  await page.waitForFunction(() =>
    ["first-contentful-paint", "shown"].every((name) => performance.getEntriesByName(name).length > 0),
  );
  const at = (name: string) => page.evaluate((mark) => performance.getEntriesByName(mark)[0]!.startTime, name);
  const [first_paint_ms, shown_ms] = [await at("first-contentful-paint"), await at("shown")];
  const all = await Promise.all(sizes);
  await page.close();
  const sum = (those: typeof all) => those.reduce((total, [, bytes]) => total + bytes, 0);
  return {
    first_paint_ms,
    shown_ms,
    page_bytes: sum(all.filter(([address]) => !address.includes("/api/"))),
    all_bytes: sum(all),
  };
}

async function ask<T>(url: string): Promise<T> {
  return (await fetch(url)).json() as Promise<T>;
}

async function medianTime(work: (i: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 9; i++) {
    const started = performance.now();
    await work(i);
    times.push(performance.now() - started);
  }
  return median(times);
}
