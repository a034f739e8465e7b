// The dashboard of finished runs in a real browser: content, controls, keyboard, small and dark screens, untrusted text.
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { type DashboardServer, exportDashboard, serveDashboard } from "sqlenv/apps/dashboard";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { writeSyntheticRun } from "../helpers/bench.ts";
import { launch, openPage, type WatchedPage, withBrowser } from "../helpers/browser.ts";
import { comparison, episode, episodeLine, metrics, RESULT, TIMINGS } from "../helpers/run-records.ts";

const HOSTILE = `</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 1"> \u202egnp`;
const linesOf = (records: readonly object[]) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

/** A run in which all untrusted text contains markup. */
function writeHostileRun(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const texts = { question: HOSTILE, sql: `SELECT '${HOSTILE}'`, cell: HOSTILE, error: HOSTILE };
  const played = { ...episode("model", 0, texts), question_id: HOSTILE, database_name: HOSTILE };
  const lines = [1, 2, 3].map((step) => ({ ...episodeLine(step), ...played }));
  const whole = comparison(texts);
  const files = {
    "config.yaml": `model_name: ${JSON.stringify(HOSTILE)}\nmax_steps: 40\n`,
    "metrics.jsonl": linesOf([...metrics(), { step: 41, [HOSTILE]: 1 }]),
    "timings.jsonl": linesOf(TIMINGS),
    "warnings.jsonl": linesOf([{ step: 3, code: "x", message: HOSTILE, remedy: HOSTILE }]),
    "episodes.jsonl": linesOf(lines),
    "results.json": JSON.stringify({ ...RESULT, model_name: HOSTILE }),
    "comparison.json": JSON.stringify({ players: [HOSTILE, "before", "after"], questions: whole.questions }),
    "gold.json": JSON.stringify({ [HOSTILE]: { query: `SELECT '${HOSTILE}'`, answer: HOSTILE } }),
    "evaluation-before.jsonl": linesOf([{ ...played, player: "before" }]),
    "evaluation-after.jsonl": linesOf([{ ...played, player: "after" }]),
  };
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
}

withBrowser("the dashboard", () => {
  const scratch = mkdtempSync(join(tmpdir(), "sqlenv-pages-"));
  const [long, hostile, copy] = ["long", "hostile", "copy"].map((name) => join(scratch, name)) as [
    string,
    string,
    string,
  ];
  let [browser, server]: [Browser | null, DashboardServer | null] = [null, null];
  let opened: WatchedPage[] = [];

  beforeAll(async () => {
    writeSyntheticRun(long, { steps: 60, episodes: 1920 });
    writeSyntheticRun(copy, { steps: 30, episodes: 240 });
    appendFileSync(join(copy, "config.yaml"), "learning_rate: 0.5\n");
    writeHostileRun(hostile);
    server = await serveDashboard({ runs: [long, copy, hostile], port: 0 });
    browser = await launch();
  }, 60_000);
  afterEach(async () => {
    const faults = opened.flatMap((page) => page.faults);
    await Promise.all(opened.map((page) => page.close()));
    opened = [];
    expect(faults).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  /** Opens a view of the dashboard and waits for content. */
  async function open(hash = "", options: Parameters<typeof openPage>[2] = {}, base = server!.url): Promise<Page> {
    const watched = await openPage(browser!, base + hash, options);
    opened.push(watched);
    await watched.page.locator("main > div").waitFor();
    return watched.page;
  }
  const hash = (page: Page) => page.evaluate(() => location.hash);

  test("the overview says whether it learned, where, by how much and how its behaviour changed", async () => {
    const page = await open("#/long");
    await page.locator(".habits .sequence").first().waitFor();
    const hero = page.getByRole("heading", { level: 1 });
    expect(await hero.innerText()).toMatch(
      /^It learned\. On unseen databases, right answers rose from \d+\.\d % to 9\d\.\d %\.$/,
    );
    const change = await page.locator(".habits .lead").innerText();
    expect(change).toMatch(/^At the start mostly ANSWER \(\d+ %\); at the end DESCRIBE → QUERY → ANSWER \(\d+ %\)\.$/);
    await page.locator(".example .player").nth(2).waitFor();
    for (const part of [
      hero,
      page.locator(".evaluation"),
      page.locator(".habits"),
      page.locator(".chart canvas").first(),
      page.locator(".areas"),
    ]) {
      const box = (await part.boundingBox())!;
      expect(box.y + box.height).toBeLessThanOrEqual(800);
    }
    expect(await page.locator(".warning").innerText()).toContain("Warm the model up, or ask easier questions.");
  });

  test("charts: smoothing, x axis, log, zoom by dragging, shared cursor, restored after a reload", async () => {
    const page = await open("#/long/charts");
    const chart = page.locator(".chart").first();
    await chart.locator("canvas").waitFor();
    await page.getByLabel("smoothing").fill("0.9");
    await page.getByLabel("x axis").selectOption("tokens");
    await page.getByText("log y").click();
    expect(await hash(page)).toBe("#/long/charts?smooth=0.9&x=tokens&log=1");

    const over = chart.locator(".u-over");
    const box = (await over.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
    await page
      .locator(".chart")
      .nth(1)
      .getByText(/^tokens \d/)
      .waitFor(); // another chart shows the same place
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + 30, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction(() => /from=\d+&to=\d+/.test(location.hash));
    const zoomed = await hash(page);
    await page.reload();
    await page.locator(".chart canvas").first().waitFor();
    expect(await hash(page)).toBe(zoomed);
    expect(await page.getByLabel("smoothing").inputValue()).toBe("0.9");
    expect(await page.getByLabel("x axis").inputValue()).toBe("tokens");
    await page.getByRole("button", { name: "Reset zoom" }).click();
    expect(await hash(page)).not.toContain("from=");

    await page.getByLabel("find a chart").fill("entropy");
    expect(await page.locator(".chart").count()).toBe(1);
    await page.getByLabel("find a chart").fill("");
    const titles = await page.locator(".chart figcaption > b:first-child").allInnerTexts();
    expect(titles).toEqual(
      expect.arrayContaining([
        "Reward",
        "Success on unseen databases",
        "Success on seen databases",
        "Loss",
        "KL",
        "Entropy",
        "Clipped tokens",
        "Gradient norm",
        "Tokens per episode",
        "Truncated episodes",
        "Groups with zero std",
        "Tokens per second",
        "Seconds per step",
        "Actions per episode",
        "sampling/surprise",
      ]),
    );
    await chart.getByRole("button", { name: /^total/ }).click();
    expect(await chart.getByRole("button", { name: /^total/ }).getAttribute("aria-pressed")).toBe("false");
  });

  test("by keyboard alone: views, the chart's cursor and zoom, the table, an episode and the next", async () => {
    const page = await open("#/long");
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement!.textContent)).toBe("Skip to the content");
    await page.keyboard.press("2");
    await page.locator(".chart canvas").first().waitFor();
    const reached = (selector: string) => page.evaluate((wanted) => document.activeElement!.matches(wanted), selector);
    for (let i = 0; i < 60 && !(await reached(".canvas")); i++) await page.keyboard.press("Tab");
    expect(await reached(".canvas")).toBe(true);
    await page.keyboard.press("ArrowLeft");
    await page.locator(".chart").nth(1).getByText("step 60").waitFor();
    await page.keyboard.press("ArrowLeft");
    await page.locator("#announcer", { hasText: "step 59" }).waitFor({ state: "attached" });
    await page.keyboard.press("+");
    await page.waitForFunction(() => location.hash.includes("from="));
    await page.keyboard.press("0");
    await page.waitForFunction(() => !location.hash.includes("from="));

    await page.locator(".tabs a").first().focus();
    await page.keyboard.press("3");
    await page.locator(".episodes tbody tr").first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("boats");
    await page.getByRole("status").filter({ hasText: "192 episodes" }).waitFor();
    for (let i = 0; i < 30 && !(await reached(".episodes tbody a")); i++) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator(".turns li").first().waitFor();
    const first = await hash(page);
    await page.keyboard.press("j");
    await page.waitForFunction((was) => location.hash !== was, first);
    expect(await hash(page)).toMatch(/^#\/long\/episode\/\d+\?text=boats$/);
    await page.keyboard.press("4");
    await page.locator(".questions .column").first().waitFor();
    await page.keyboard.press("5");
    await page.locator("table.runs").waitFor();
  });

  test("episodes: filters, sorting, pages, one episode, its group", async () => {
    const page = await open("#/long/episodes");
    const said = page.getByRole("status");
    await said.filter({ hasText: "1,920 episodes" }).waitFor();
    await page.getByLabel("any verdict").selectOption("wrong");
    await page.getByLabel("from step").fill("50");
    await said.filter({ hasText: "0.0 % right" }).waitFor();
    await page.getByRole("button", { name: "advantage" }).click();
    await page.locator('th[aria-sort="descending"]', { hasText: "advantage" }).waitFor();
    const column = async () =>
      (await page.locator(".episodes tbody td:nth-child(7)").allInnerTexts()).map((text) =>
        Number(text.replace("−", "-")),
      );
    const isFalling = async () => (await column()).every((value, i, all) => i === 0 || value <= all[i - 1]!);
    await expect.poll(isFalling, { timeout: 10_000 }).toBe(true); // the head changes before the rows have come
    await page.getByRole("button", { name: "advantage" }).click();
    await page.locator('th[aria-sort="ascending"]', { hasText: "advantage" }).waitFor();
    await page.waitForFunction(() =>
      document.querySelector(".episodes tbody td:nth-child(7)")!.textContent!.startsWith("−"),
    );
    await page.reload();
    expect(await page.getByLabel("any verdict").inputValue()).toBe("wrong");
    await page.getByLabel("any verdict").selectOption("");
    await page.getByLabel("from step").fill("");
    await page.getByRole("button", { name: "Next →" }).click();
    await page.getByText("51–100 of 1,920").waitFor();

    await page.locator(".episodes tbody a").first().click();
    await page.locator(".turns li").first().waitFor();
    expect(await page.locator(".facts").innerText()).toMatch(/advantage/);
    await page.getByRole("link", { name: /group, side by side/ }).click();
    await page.locator(".column").first().waitFor();
    expect(await page.locator(".episode").innerText()).toMatch(/\d of 8 attempts are right/);
    const shares = (await page.locator(".column h3").allInnerTexts()).map((text) =>
      Number(/× (\d)/.exec(text)?.[1] ?? 1),
    );
    expect(shares.reduce((a, b) => a + b)).toBe(8); // equal attempts share a column
  });

  test("downloads: CSV and JSON", async () => {
    const page = await open("#/long/episodes?verdict=wrong&from_step=60");
    await page.getByRole("status").filter({ hasText: "episode" }).waitFor();
    const file = async (name: string) => {
      const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).click()]);
      return readFileSync((await download.path())!, "utf8");
    };
    const csv = (await file("episodes.csv")).trimEnd().split("\r\n");
    expect(csv[0]).toMatch(/^n,step,group,generation,question_id,question,/);
    expect(csv.slice(1).every((line) => line.split(",")[1] === "60")).toBe(true);
    await page.keyboard.press("2");
    await page.locator(".chart").first().waitFor();
    expect((await file("metrics.csv")).split("\r\n")[0]).toContain("rewards/reward_correctness/mean");
    expect(JSON.parse(await file("metrics.json")).columns.step.length).toBeGreaterThan(60);
  });

  test("runs are compared: overlaid charts, differing settings", async () => {
    const page = await open("#/long/runs");
    await page.getByLabel("show copy in the charts").check();
    const differing = page.locator(".settings tbody tr");
    await differing.filter({ hasText: "learning_rate" }).waitFor();
    expect(await differing.locator("code").allInnerTexts()).toEqual(["max_steps", "learning_rate"]);
    await page.getByRole("link", { name: "Charts" }).click();
    await page.locator(".chart").first().getByRole("button", { name: /^copy/ }).waitFor();
    expect(await hash(page)).toBe("#/long/charts?with=copy");
    const other = await open("#/long/charts?with=copy"); // another tab shows the same runs
    await other.locator(".chart").first().getByRole("button", { name: /^copy/ }).waitFor();
    await page.getByLabel("run", { exact: true }).selectOption("copy");
    await page.waitForFunction(() => location.hash === "#/copy/charts");
    await page.locator(".status", { hasText: "30 steps" }).waitFor();
  });

  test("runs are filtered by name, in the address too; the current one stays listed", async () => {
    const page = await open("#/long/runs");
    const names = () => page.locator(".runs tbody tr td:nth-child(2) a").allInnerTexts();
    expect(await names()).toHaveLength(3);
    await page.getByLabel("filter the runs").fill("COP");
    expect(await names()).toEqual(["long", "copy"]);
    expect(await hash(page)).toBe("#/long/runs?name=COP");
    await page.getByText("2 of 3 runs").waitFor();
    await page.reload();
    await page.locator(".runs").waitFor();
    expect(await names()).toEqual(["long", "copy"]);
  });

  test("a run is renamed in this browser, and found by its name", async () => {
    const page = await open("#/long/runs");
    await page.getByRole("button", { name: "rename copy" }).click();
    await page.getByLabel("name of copy").fill("  twice the rate ");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "twice the rate" }).waitFor();
    await page.getByLabel("filter the runs").fill("rate");
    await page.getByLabel("show copy in the charts").check();
    await page.getByRole("link", { name: "Charts" }).click();
    await page
      .locator(".chart")
      .first()
      .getByRole("button", { name: /^twice the rate/ })
      .waitFor();
    await page.reload();
    await page.locator("option", { hasText: "twice the rate" }).waitFor({ state: "attached" });
    await page.getByRole("link", { name: "Runs and settings" }).click();
    await page.getByRole("button", { name: "rename copy" }).click();
    await page.getByLabel("name of copy").fill("");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "copy", exact: true }).waitFor();
  });

  test("runs are grouped, and the charts show the mean of a group", async () => {
    const page = await open("#/long/runs");
    await page.getByLabel("group by").selectOption("model");
    const group = page.locator(".runs .group").filter({ hasText: /2 runs/ });
    expect(await group.innerText()).toMatch(/mean \(lowest – highest\)/);
    await group.getByRole("checkbox").check();
    expect(await hash(page)).toBe("#/long/runs?group=model&with=copy");
    await page.getByRole("link", { name: "Charts" }).click();
    const chart = page.locator(".chart").filter({ has: page.getByText("Reward", { exact: true }) });
    await chart.locator(".legend", { hasText: ", mean of 2 runs" }).waitFor();
    expect(await hash(page)).toBe("#/long/charts?with=copy&group=model");
  });

  test("a chart's data is shown as a table, within the zoom, and copied for a spreadsheet", async () => {
    const page = await open("#/long/charts?from=10&to=12", { permissions: ["clipboard-read", "clipboard-write"] });
    const chart = page.locator(".chart").filter({ has: page.getByText("Reward", { exact: true }) });
    await chart.locator("canvas").waitFor();
    await chart.getByRole("button", { name: "data of Reward as a table" }).click();
    expect(await chart.locator("tbody th").allInnerTexts()).toEqual(["10", "11", "12"]);
    expect(await chart.locator("thead th").first().innerText()).toBe("step");
    await chart.getByRole("button", { name: "Copy", exact: true }).click();
    await chart.getByRole("button", { name: "Copied ✓" }).waitFor();
    const lines = (await page.evaluate(() => navigator.clipboard.readText())).trim().split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[1]).toMatch(/^10\t-?\d/);
  });

  test("a filter survives the next episode and the return to the list", async () => {
    const page = await open("#/long/episodes?from_step=20&verdict=wrong");
    await page.locator(".episodes tbody tr").first().waitFor();
    await page.locator(".episodes tbody a").first().click();
    for (let i = 0; i < 3; i++) {
      await page.locator(".turner", { hasText: `${i + 1} of ` }).waitFor();
      expect(await page.locator(".facts .verdict").innerText()).toMatch(/^✗/);
      await page.keyboard.press("j");
    }
    await page.locator(".turner", { hasText: "4 of " }).waitFor();
    await page.getByRole("link", { name: "Episodes, filtered" }).click();
    await page.getByRole("status").filter({ hasText: "0.0 % right" }).waitFor();
    expect(await hash(page)).toBe("#/long/episodes?from_step=20&verdict=wrong");
  });

  test("a clicked point opens that step's episodes, also by keyboard", async () => {
    const page = await open("#/long/charts");
    const over = page.locator(".chart").first().locator(".u-over");
    await over.click({ position: { x: (await over.boundingBox())!.width - 2, y: 20 } });
    await expect.poll(() => hash(page), { timeout: 10_000 }).toBe("#/long/episodes?from_step=60&to_step=60");
    await page.getByRole("status").filter({ hasText: "32 episodes" }).waitFor();
    await page.goBack();
    await page.locator(".chart .canvas canvas").first().waitFor();
    await page.locator(".chart .canvas").first().focus();
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    await expect.poll(() => hash(page), { timeout: 10_000 }).toBe("#/long/episodes?from_step=59&to_step=59");
  });

  test("every view has its own title and one h1; ? lists the keys, which work while a checkbox has the focus", async () => {
    const page = await open("#/long/overview");
    const titles = new Set<string>();
    for (const view of ["overview", "charts", "episodes", "episode/0", "group/1/0", "questions", "runs"]) {
      await page.evaluate((to) => {
        location.hash = `#/long/${to}`;
      }, view);
      await page.locator(VIEW_PART[view.split("/")[0]!]!).first().waitFor();
      await page.locator("h1").first().waitFor();
      expect([view, await page.locator("h1").count()]).toEqual([view, 1]);
      titles.add(await page.title());
    }
    expect(titles.size).toBe(7);
    await page.getByLabel("show copy in the charts").focus();
    await page.keyboard.press("?");
    expect(await page.locator("dialog[open]").innerText()).toContain("in the list of episodes: search");
    await page.keyboard.press("Escape");
    await page.getByLabel("show copy in the charts").focus();
    await page.keyboard.press("2");
    await page.waitForFunction(() => location.hash.startsWith("#/long/charts"));
  });

  test("charts below the fold are drawn before they are scrolled to, so that a print is complete", async () => {
    const page = await open("#/long/charts");
    const charts = await page.locator(".chart").count();
    expect(charts).toBeGreaterThan(10);
    await page.waitForFunction((all) => document.querySelectorAll(".chart canvas").length === all, charts);
  });

  test("text has a contrast of 4.5 at least, light and dark", async () => {
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await open("#/long", { colorScheme });
      for (const view of ["overview", "episodes", "episode/0", "group/1/0", "questions", "runs"]) {
        await page.evaluate((to) => {
          location.hash = `#/long/${to}`;
        }, view);
        await page.locator(VIEW_PART[view.split("/")[0]!]!).first().waitFor();
        expect([colorScheme, view, await page.evaluate(poorContrast)]).toEqual([colorScheme, view, []]);
      }
    }
  });

  test("at 390 px no view is wider than the screen", async () => {
    const page = await open("#/long", { width: 390, height: 844 });
    for (const view of ["overview", "charts", "episodes", "episode/0", "group/1/0", "questions", "runs"]) {
      await page.evaluate((to) => {
        location.hash = `#/long/${to}`;
      }, view);
      await page.locator(VIEW_PART[view.split("/")[0]!]!).first().waitFor();
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([view, wide]).toEqual([view, 390]);
    }
  });

  test("follows the system's theme; the reader's choice is stored", async () => {
    const page = await open("#/long", { colorScheme: "dark" });
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(await back()).toBe("rgb(13, 16, 20)");
    await page.getByRole("button", { name: "auto" }).click();
    expect(await back()).toBe("rgb(246, 248, 250)");
    await page.reload();
    await page.getByRole("button", { name: "light" }).waitFor();
    expect(await back()).toBe("rgb(246, 248, 250)");
    await page.getByRole("button", { name: "light" }).click();
    expect(await back()).toBe("rgb(13, 16, 20)");
    await page.evaluate(() => localStorage.setItem("sqlenv-theme", "sepia")); // unknown: the system's theme applies
    await page.reload();
    await page.getByRole("button", { name: "auto" }).waitFor();
    expect(await back()).toBe("rgb(13, 16, 20)");
  });

  const hostileViews = ["overview", "charts", "episodes", "episode/0", "group/1/0", "questions", "runs"];
  async function visitHostile(page: Page): Promise<void> {
    for (const view of hostileViews) {
      await page.evaluate((to) => {
        location.hash = `#/hostile/${to}`;
      }, view);
      await page.locator(VIEW_PART[view.split("/")[0]!]!).first().waitFor();
      const found = await page.evaluate(() => ({
        pwned: "pwned" in window,
        images: document.querySelectorAll("img, main script, iframe").length,
        text: document.body.innerText,
      }));
      expect([view, found.pwned, found.images]).toEqual([view, false, 0]);
      expect(found.text).toContain("</script><script>window.pwned = 1</script><img src=x");
      expect(found.text).not.toContain("\u202e");
    }
  }

  test("text from databases and models is shown, never executed", async () => {
    await visitHostile(await open("#/hostile"));
  });

  test("an exported file works without server or network, and executes nothing foreign", async () => {
    const file = join(scratch, "exported.html");
    const { html, runs } = await exportDashboard([long, hostile]);
    writeFileSync(file, html);
    expect(runs).toEqual([
      { run: "long", episodes: 1920, kept: 1000 },
      { run: "hostile", episodes: 3, kept: 3 },
    ]);
    const page = await open("#/long", { offline: true }, pathToFileURL(file).href);
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toMatch(/^It learned\./);
    await page.keyboard.press("3");
    await page.getByRole("status").filter({ hasText: "1,000 episodes" }).waitFor();
    expect(await page.getByRole("status").innerText()).toContain("a sample of the run's 1,920 episodes");
    await page.locator(".episodes tbody a").first().click();
    await page.locator(".turns li").first().waitFor();
    await page.getByRole("link", { name: /group, side by side/ }).click();
    await page.locator(".column").nth(7).waitFor();
    await page.keyboard.press("2");
    await page.locator(".chart canvas").first().waitFor();
    await visitHostile(page);
  });

  test("a lost feed is reported, and catches up after reconnecting", async () => {
    const folder = join(scratch, "growing");
    mkdirSync(folder);
    const all = metrics();
    writeFileSync(join(folder, "metrics.jsonl"), linesOf(all.slice(0, 4)));
    let own = await serveDashboard({ runs: [folder], port: 0 });
    const watched = await openPage(browser!, own.url);
    const { page } = watched;
    await page.locator(".status", { hasText: "3 steps" }).waitFor();
    await own.close();
    await page.getByRole("alert").filter({ hasText: "connection lost" }).waitFor();
    appendFileSync(join(folder, "metrics.jsonl"), linesOf(all.slice(4, 9)));
    own = await serveDashboard({ runs: [folder], port: Number(new URL(own.url).port) });
    await page.locator(".status", { hasText: "8 steps" }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    appendFileSync(join(folder, "metrics.jsonl"), linesOf(all.slice(9, 10)));
    await page.locator(".status", { hasText: "9 steps" }).waitFor();
    await watched.close();
    await own.close();
  });
});

/** The element that shows a view has loaded. */
/** In the page: texts whose contrast with their background is below 4.5, once each. */
function poorContrast(): string[] {
  const parse = (color: string) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (rgb: readonly number[]) => {
    const [r, g, b] = rgb.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  };
  const backOf = (element: Element | null): number[] => {
    for (let at = element; at; at = at.parentElement) {
      const back = parse(getComputedStyle(at).backgroundColor);
      if (back.length === 3 || (back[3] ?? 0) === 1) return back;
    }
    return [255, 255, 255];
  };
  const poor = new Set<string>();
  for (const element of document.querySelectorAll("body *")) {
    if (element.closest("svg, dialog, [disabled], .hidden, .skip")) continue;
    const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent!.trim() !== "");
    if (text.length === 0 || !element.checkVisibility()) continue;
    const [a, b] = [luminance(parse(getComputedStyle(element).color)), luminance(backOf(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}

const VIEW_PART: Readonly<Record<string, string>> = {
  overview: ".example .question",
  charts: ".chart canvas",
  episodes: ".episodes tbody tr",
  episode: ".turns li",
  group: ".column",
  questions: ".questions .column",
  runs: "table.runs",
};
