// The dashboard of a running training: live updates, a reload, the end; also served from another process.
import type { Browser, Page } from "playwright-core";
import { type DashboardServer, serveDashboard } from "sqlenv/apps/dashboard";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, openPage, type WatchedPage, withBrowser } from "../helpers/browser.ts";
import { ended, start } from "../helpers/cli-process.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

/** The step shown on the page. */
const stepOf = async (page: Page) =>
  Number(/\bstep (\d+) of/.exec(await page.locator(".status").innerText())?.[1] ?? -1);

const passes = (page: Page, step: number) =>
  page.waitForFunction((least) => {
    const said = document.querySelector(".status")?.textContent ?? "";
    return Number(/step (\d+) of/.exec(said)?.[1] ?? -1) > least;
  }, step);

withBrowser("a running training", () => {
  let [place, browser]: [TrainingPlace | null, Browser | null] = [null, null];
  let elsewhere: DashboardServer | null = null;
  beforeAll(async () => {
    [place, browser] = await Promise.all([TrainingPlace.make(), launch()]);
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await elsewhere?.close();
    place?.remove();
  });

  test("shows each step live, across a reload, to the end", async () => {
    const settings = { "--max-steps": 4000, "--save-steps": 10, "--eval-steps": 10, "--eval-episodes": 1 };
    const child = start([...place!.args("live", settings), "--dashboard", "--dashboard-port", "0"]);
    const run = ended(child);
    try {
      const url = await new Promise<string>((resolve, reject) => {
        child.stdout.on("data", (text: string) => {
          const found = /dashboard: (http:\S+)/.exec(text);
          if (found) resolve(found[1]!);
        });
        void run.then(({ stderr }) => reject(new Error(stderr)));
      });
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/dashboard\/$/);
      const own = await openPage(browser!, url);
      elsewhere = await serveDashboard({ runs: [place!.path("live")], port: 0 });
      const other = await openPage(browser!, `${elsewhere.url}#/live/charts`);
      await passes(own.page, 2);
      const before = await stepOf(own.page);
      await own.page.reload();
      await passes(own.page, before);
      await own.page.getByText(/^Now/).waitFor();
      expect(await own.page.locator(".status").innerText()).toMatch(/^training\n.*left/s);
      await own.page.getByText(/by step \d+|played again at step/).waitFor();
      await passes(other.page, before + 1);
      await other.page.locator(".chart canvas").first().waitFor();
      await endsWell(own, other);
    } finally {
      child.kill("SIGINT");
    }
    expect((await run).code).toBe(130);

    /** Ctrl-C: the training's own server ends, the other one shows that the run has stopped. */
    async function endsWell(own: WatchedPage, other: WatchedPage): Promise<void> {
      child.kill("SIGINT");
      await own.page.getByRole("alert").filter({ hasText: "connection lost" }).waitFor();
      await other.page.locator(".state", { hasText: "stopped" }).waitFor();
      expect(other.faults).toEqual([]);
      await own.close();
      await other.close();
    }
  });

  test("a run that ends while being watched shows its result", async () => {
    const trained = place!.train("short", { "--max-steps": 6 }, "--dashboard", "--dashboard-port", "0", "--json");
    const folder = place!.path("short");
    const { existsSync } = await import("node:fs");
    await expect.poll(() => existsSync(`${folder}/config.yaml`), { timeout: 20_000 }).toBe(true);
    const server = await serveDashboard({ runs: [folder], port: 0 });
    const { page, faults, close } = await openPage(browser!, server.url);
    expect((await trained).code).toBe(0); // without a terminal it does not keep serving
    await page.locator(".state", { hasText: "finished" }).waitFor();
    await page.locator(".example .player h3", { hasText: "after" }).waitFor();
    expect(await page.locator(".bar.is .name").first().innerText()).toBe("after");
    expect(faults).toEqual([]);
    await close();
    await server.close();
  });
});
