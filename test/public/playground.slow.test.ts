// The playground in a real browser, from a static file server: everything runs in the tab.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { playgroundHandler } from "sqlenv/apps/playground";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CHROMIUM, type Site, serveFiles, serveHandler, WITHOUT } from "../helpers/chromium.ts";
import { sqlenv } from "../helpers/cli-process.ts";
import { writePlaygroundModel } from "../helpers/playground-model.ts";

const QUESTION = "vineyards_eval_009"; // What is the name of the most expensive wine?

describe.skipIf(!CHROMIUM)(`the playground${WITHOUT}`, { timeout: 180_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), "sqlenv-playground-"));
  const folder = join(scratch, "sites", "playground");
  let browser: Browser;
  let site: Site;
  let pages: Page[] = [];
  let shared: Page | undefined;
  const complaints: string[] = [];

  beforeAll(async () => {
    const model = join(scratch, "model");
    await writePlaygroundModel(model);
    const ran = await sqlenv(["playground", "--out", folder, "--model", model, "--json"]);
    expect(ran.stderr).toContain("http.server");
    site = await serveFiles(join(scratch, "sites"));
    browser = await chromium.launch({ executablePath: CHROMIUM! });
  }, 180_000);
  afterEach(async () => {
    for (const page of pages) await page.close();
    pages = [];
    expect(complaints.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  /** A new page with the question loaded; its console errors fail the test. */
  async function open(
    hash = "",
    { at = `${site.url}/playground/`, ...options }: BrowserContextOptions & { readonly at?: string } = {},
  ): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.setDefaultTimeout(90_000); // on a busy machine
    pages.push(page);
    await page.goto(`${at}#${hash}`);
    await page.waitForSelector("body[data-ready]");
    return page;
  }

  /** A page shared by tests that need no fresh one: its data set is generated once. */
  async function visit(hash: string): Promise<Page> {
    if (!shared) {
      shared = await open();
      pages = pages.filter((page) => page !== shared);
    }
    await shared.evaluate((text) => {
      delete document.body.dataset.ready;
      location.hash = `${text}&n=${performance.now()}`; // another address even for the same place
    }, hash);
    await shared.waitForSelector("body[data-ready]");
    return shared;
  }
  /** The visible state of an episode. */
  const position = (page: Page) =>
    Promise.all(["#asked", "#about", ".meter", "#turns", "#verdict"].map((part) => page.innerText(part)));
  const texts = (page: Page, selector: string) => page.locator(selector).allInnerTexts();

  test("an episode is played by keyboard alone, and the gold is revealed at the end", async () => {
    const page = await visit(`question=${QUESTION}`);
    expect(await page.innerText("#asked")).toBe("What is the name of the most expensive wine?");
    expect(await texts(page, ".tree > li")).toHaveLength(5);
    expect(await page.innerText("#schema")).not.toContain("vintage"); // not described yet
    const act = async (key: string, argument: string) => {
      const taken = await page.locator("#turns .turn").count();
      await page.evaluate(() => (document.activeElement as HTMLElement).blur());
      await page.keyboard.press(key);
      await page.keyboard.press("Control+A");
      await page.keyboard.type(argument);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Control+Enter");
      await page.locator("#turns .turn").nth(taken).waitFor();
    };
    await act("d", "wines");
    expect(await page.innerText("#schema")).toContain("vintage");
    expect(await page.innerText("#turns .turn:last-child .reward")).toBe(
      "+0.025\n+0.02 it worked\n+0.01 new\n−0.005 a step",
    );
    await act("q", "SELECT wine FROM wines ORDER BY bottle_price DESC LIMIT 1");
    expect(await page.innerText("#turns .turn:last-child .error")).toContain("no such column");
    await act("q", 'SELECT wine FROM wines ORDER BY "bottle price" DESC LIMIT 1');
    expect(await texts(page, "#turns .turn:last-child td")).toEqual(["Limestone"]);
    expect(await texts(page, "#turns .turn:last-child .k")).toEqual(["SELECT", "FROM", "ORDER", "BY", "DESC", "LIMIT"]);
    expect(await page.locator(".gold").count()).toBe(0);
    await act("a", "Limestone");
    expect(await page.innerText(".verdict .result")).toBe("✓ Right, reward +1.23, 4 steps");
    expect(await page.innerText(".gold")).toContain("Limestone");
    expect(await page.innerText("#budget-text")).toBe("4 of 10 steps");
    expect(await page.locator("#act").isHidden()).toBe(true);
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await page.keyboard.press("x");
    await page.waitForFunction(() => !document.querySelector("#asked")!.textContent!.includes("expensive wine"));
    expect(await page.locator("#act").isVisible()).toBe(true);
  });

  test("tables are buttons; after the answer come the score, the database and the next question", async () => {
    const page = await open(`question=${QUESTION}`);
    expect(await texts(page, "#table-buttons button")).toEqual(["estates", "grapes", "wines", "tasters", "tastings"]);
    expect(await page.getAttribute("#argument", "placeholder")).toBe("or type its name");
    await page.click("#table-buttons button:has-text('wines')");
    await page.locator("#turns .turn").waitFor();
    await page.check("input[value=SAMPLE]");
    await page.click("#table-buttons button:has-text('grapes')");
    await page.locator("#turns .turn").nth(1).waitFor();
    expect(await texts(page, "#turns .type")).toEqual(["DESCRIBE", "SAMPLE"]);
    await page.check("input[value=ANSWER]");
    expect(await page.locator("#table-buttons button").count()).toBe(0);
    expect(await page.locator("#database-view").isHidden()).toBe(true);
    await page.fill("#argument", "Chalk");
    await page.click("#step");
    expect(await page.innerText(".verdict .result")).toContain("✗ Wrong");
    expect(await page.innerText("#tally")).toBe("You: 0 of 1 right.");

    await page.click("#database-view .tabs button:has-text('tastings')");
    await page.locator("#database-view th:has-text('tasted_on')").waitFor();
    expect(await page.locator("#database-view tbody tr").count()).toBe(20);
    await page.click("#database-view button:has-text('More')");
    await page.locator("#database-view :text('rows 21 to 40, 130 rows')").waitFor();
    await page.click("#database-view .keys button:has-text('→ tasters.taster_id')");
    await page.locator("#database-view th:has-text('palate')").waitFor();

    await page.click("#again-after"); // now that the answer is known: not counted
    await page.check("input[value=ANSWER]");
    await page.fill("#argument", "Limestone");
    await page.click("#step");
    await page.locator(".verdict.good").waitFor();
    expect(await page.innerText("#tally")).toBe("You: 0 of 1 right.");
    await page.selectOption("#pace", "0");
    await page.click("#model-turn");
    await page.locator("#tally b").waitFor();
    expect(await page.innerText("#tally")).toMatch(/the model.*You: 0 of 1 right\. The model: \d of 1 right\./i);
    await page.click("#next-question");
    await page.waitForFunction(() => !document.querySelector("#asked")!.textContent!.includes("expensive wine"));
    expect(await page.locator("#act").isVisible()).toBe(true);
    expect(await page.locator("#after").isHidden()).toBe(true);
  });

  test("names are completed while typing", async () => {
    const page = await visit(`question=${QUESTION}`);
    await page.check("input[value=QUERY]");
    await page.locator("#argument").pressSequentially("SELECT wine FROM wi");
    expect(await texts(page, "[role=option]")).toContain("wines");
    await page.keyboard.press("Tab");
    expect(await page.inputValue("#argument")).toBe("SELECT wine FROM wines");
    expect(await page.locator("#offers").isHidden()).toBe(true);
  });

  test("the oracle plays to the end; permalink, TypeScript and curl reproduce it", async () => {
    const page = await visit("data=bundled:42&seed=11");
    await page.selectOption("#pace", "0");
    await page.selectOption("#player", "oracle");
    await page.click("#play");
    await page.locator(".verdict.good").waitFor();
    const played = await position(page);

    await page.click("#copy-link");
    const link = await page.inputValue("#copied");
    const [, hash] = link.split("#");
    const again = await open(hash);
    await again.locator(".verdict.good").waitFor();
    expect(await position(again)).toEqual(played);
    expect(await again.inputValue("#player")).toBe("oracle");

    await page.click("#copy-curl");
    const curl = await page.inputValue("#copied");
    expect(curl.split("\n")).toHaveLength(2 + (await page.locator("#turns .turn").count()));
    const [, body] = /^curl -s \S+\/reset .* -d '(.*)'$/m.exec(curl)!;
    expect(await page.innerText("#about")).toContain(`${(JSON.parse(body!) as { question_id: string }).question_id}:`);

    await page.click("#copy-ts");
    const program = join(scratch, "program.mjs");
    const root = pathToFileURL(fileURLToPath(new URL("../../dist/index.node.js", import.meta.url))).href;
    writeFileSync(program, (await page.inputValue("#copied")).replace('"sqlenv"', JSON.stringify(root)));
    expect(execFileSync(process.execPath, [program], { encoding: "utf8" })).toMatch(/correctness: 1,\s+progress: 1/);
  });

  test("a player plays step by step, and a person can take over", async () => {
    const page = await visit(`question=${QUESTION}`);
    await page.selectOption("#player", "looker");
    await page.click("#move");
    await page.locator("#turns .turn").waitFor();
    await page.click("#move");
    await page.locator("#turns .turn").nth(1).waitFor();
    const looked = await texts(page, "#turns .turn");
    await page.fill("#argument", "grapes");
    await page.click("#step");
    await page.locator("#turns .turn").nth(2).waitFor();
    await page.click("#move"); // its thread is lost: the player restarts and repeats its actions
    await page.waitForFunction(() => document.querySelectorAll("#turns .turn").length === 1);
    await page.click("#move");
    await page.locator("#turns .turn").nth(1).waitFor();
    expect(await texts(page, "#turns .turn")).toEqual(looked);
  });

  test("practice worlds are generated from a seed", async () => {
    const page = await open("data=practice:5&seed=2");
    const first = await page.innerText("#asked");
    expect(await page.inputValue("#data-seed")).toBe("5");
    await page.click("#next");
    await page.waitForFunction((text) => document.querySelector("#asked")!.textContent !== text, first);
    await page.fill("#seed", "2");
    await page.click("#draw");
    await page.waitForFunction((text) => document.querySelector("#asked")!.textContent === text, first);
  });

  const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;

  test("markup in cells, names, errors, links and files is shown, never executed", async () => {
    const sql = `SELECT '${HOSTILE}' AS "${HOSTILE.replaceAll('"', '""')}"`;
    const does = [`QUERY: ${sql}`, `QUERY: SELECT ${HOSTILE}`, `DESCRIBE: ${HOSTILE}`, `ANSWER: ${HOSTILE}`];
    const page = await visit(
      new URLSearchParams([["question", QUESTION], ...does.map((line) => ["do", line])]).toString(),
    );
    await page.locator(".verdict").waitFor();
    expect(await texts(page, "#turns .turn:first-child td")).toEqual([HOSTILE]);
    expect(await texts(page, "#turns .turn:first-child th")).toEqual([HOSTILE]);

    const { record } = JSON.parse(`{"record": ${await copied(page)}}`) as { record: Record<string, unknown> };
    const hostile = { ...record, question: HOSTILE, player: HOSTILE, database_name: HOSTILE, error: HOSTILE };
    await page.setInputFiles("#file", { name: "a.jsonl", mimeType: "", buffer: Buffer.from(JSON.stringify(hostile)) });
    await page.locator("#replay-bar").waitFor();
    expect(await page.innerText("#asked")).toBe(HOSTILE);
    const chat = {
      messages: [
        { role: "user", content: `Question: ${HOSTILE}` },
        { role: "assistant", content: HOSTILE },
      ],
    };
    await page.setInputFiles("#file", { name: "b.json", mimeType: "", buffer: Buffer.from(JSON.stringify(chat)) });
    await page.waitForFunction(() => document.querySelectorAll("#turns .turn").length === 1);
    expect(await page.innerText("#turns .turn code")).toContain("<script>");
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.evaluate(() => "hacked" in window)).toBe(false);
    await page.setInputFiles("#file", { name: "c.json", mimeType: "", buffer: Buffer.from('[{"steps": 5}, 7, null]') });
    await page.waitForFunction(() =>
      document.querySelector("#status.bad")?.textContent?.includes("no episode in the file"),
    );
  });

  async function copied(page: Page): Promise<string> {
    await page.click("#copy-json");
    return page.inputValue("#copied");
  }

  test("saved episodes are replayed turn by turn", async () => {
    const file = join(scratch, "episodes.jsonl");
    const eval_ = ["eval", "--player", "keyword", "--episodes", "3", "--seed", "4", "--out", file];
    expect((await sqlenv(eval_)).code).toBe(0);
    const [first] = readFileSync(file, "utf8").split("\n");
    const { question, start, steps } = JSON.parse(first!) as {
      question: string;
      start: { schema_info: string };
      steps: { action: { argument: string } }[];
    };
    const tables = start.schema_info.split(", ");
    const page = await visit("");
    await page.setInputFiles("#file", file);
    await page.locator("#replay-bar").waitFor();
    expect(await page.innerText("#asked")).toBe(question);
    expect(await page.locator("#replays option").count()).toBe(3);
    expect(await page.locator("#turns .turn").count()).toBe(steps.length);
    // The left side belongs to the replay: its tables, and no choice of questions.
    expect(await texts(page, "#schema .tree > li > code")).toEqual(tables);
    expect(await page.locator("#picker").isHidden()).toBe(true);
    await page.locator("#replay-back").focus();
    for (const _ of steps) await page.keyboard.press("ArrowLeft");
    expect(await page.locator("#turns .turn").count()).toBe(0);
    await page.keyboard.press("ArrowRight");
    expect(await page.innerText("#turns .turn code")).toBe(steps[0]!.action.argument);
    await page.selectOption("#pace", "0");
    await page.click("#replay-play");
    await page.waitForFunction((all) => document.querySelectorAll("#turns .turn").length === all, steps.length);
    expect(await page.innerText("#replay-play")).toBe("▶ Play");
    await page.click("#replay-end");
    expect(await page.locator("#act").isVisible()).toBe(true);
  });

  test("a model plays and is trained in the tab while other players play", async () => {
    const page = await open("data=starter:0&seed=1");
    await page.selectOption("#player", "model");
    await page.selectOption("#pace", "0");
    await page.click("#play");
    await page.locator(".verdict").waitFor();
    expect(await page.innerText("#model-note")).toMatch(
      /^The page's model: \d+k parameters, on one thread\. No GPU is used: [^.]+\.$/,
    );
    expect(await page.locator("#turns .turn").count()).toBeGreaterThan(0);

    await page.click("#own-settings summary");
    await page.fill("#train-steps", "3");
    await page.fill("#train-questions", "4");
    await page.fill("#train-episodes", "4");
    await page.fill("#train-rate", "1e-3");
    await page.click("#train");
    await page.selectOption("#player", "oracle"); // the page stays responsive
    await page.click("#play");
    await page.locator(".verdict.good").waitFor();
    await page.locator("#keep").waitFor();
    expect(await page.innerText("#train-note")).toMatch(/right on \d+ of 16 test questions before, on \d+ after\.$/i);
    await page.click("#step-table summary");
    const rows = await page.locator("#steps tbody tr").allInnerTexts();
    expect(rows.map((row) => row.split(/\s+/)[0])).toEqual(["3", "2", "1"]);
    expect(rows.some((row) => Number(row.split(/\s+/)[4]) !== 0)).toBe(true); // some group had spread
    expect(await page.getAttribute("#chart", "aria-label")).toContain("after 3 of 3 steps");
    expect((await page.getAttribute("#chart polyline.tries-line", "points"))!.split(" ")).toHaveLength(3);
    expect((await page.getAttribute("#chart polyline.tests-line", "points"))!.split(" ")).toHaveLength(4); // from step 0
    await page.click("#steps tbody tr:first-child button");
    expect(await page.locator("#replays option").count()).toBe(16);

    const download = page.waitForEvent("download");
    await page.click("#keep");
    const saved = readFileSync(await (await download).path());
    const before = readFileSync(join(folder, "model/model.safetensors"));
    expect(saved.length).toBeGreaterThan(1.9 * before.length); // in full precision
  });

  test("a training can be stopped", async () => {
    const page = await open("data=starter:0&seed=1");
    await page.click("#own-settings summary");
    await page.fill("#train-steps", "500");
    await page.click("#train");
    await page.locator("#steps tbody tr").first().waitFor({ state: "attached" });
    await page.click("#stop");
    await page.locator("#keep").waitFor();
    expect(await page.innerText("#train-note")).toMatch(/Stopped after \d+ steps?\.$/);
  });

  test("one button loads the model, chooses the starter worlds and shows it learn", async () => {
    const page = await open();
    const requested: string[] = [];
    page.on("response", (response) => requested.push(`${response.status()} ${response.url()}`));
    await page.click("#watch");
    await page.locator("#sides .episode").first().waitFor(); // before training
    expect(await page.inputValue("#data")).toBe("starter");
    expect(await page.innerText("#data-note")).toContain("invented on purpose");
    expect(await page.locator("#watch").isHidden()).toBe(true);
    await page.locator("#sides .episode").nth(1).waitFor();
    expect(await page.innerText("#sides .episode:last-child h4")).toMatch(/^Now, after \d steps?$/); // the next one may be done already
    const { length } = await texts(page, "#behaviour path");
    expect(length).toBeGreaterThanOrEqual(4); // one area for each way to play
    await page.click("#stop");
    await page.locator("#keep").waitFor();
    expect(await page.innerText("#sides .episode:last-child h4")).toMatch(/^After \d steps? of training$/);
    expect(await page.innerText("#watch")).toBe("▶ Watch it again");
    expect(requested.filter((line) => !/^(200|304) /.test(line))).toEqual([]); // nothing missing
    expect(requested.some((line) => line.endsWith("/model/model.safetensors"))).toBe(true);
  });

  test("served by `sqlenv serve` it has threads, and plays the same", async () => {
    const served = await serveHandler(playgroundHandler({ site: folder }));
    try {
      const page = await open("data=starter:0&seed=1", { at: `${served.url}/web` });
      expect(page.url()).toContain("/web/#");
      expect(await page.evaluate(() => crossOriginIsolated)).toBe(true);
      const cores = await page.evaluate(() => Math.min(8, navigator.hardwareConcurrency));
      await page.click("#load");
      await page.waitForFunction(() => /parameters/.test(document.querySelector("#model-note")!.textContent!));
      expect(await page.innerText("#model-note")).toContain(cores === 1 ? "one thread" : `${cores} threads`);
      await page.selectOption("#player", "model");
      await page.selectOption("#pace", "0");
      await page.click("#play");
      await page.locator(".verdict").waitFor();
      const plain = await open("data=starter:0&seed=1");
      await plain.selectOption("#player", "model");
      await plain.selectOption("#pace", "0");
      await plain.click("#play");
      await plain.locator(".verdict").waitFor();
      expect(await position(page)).toEqual(await position(plain));
    } finally {
      served.close();
    }
  });

  test("fits a phone, follows the dark theme, and reports a missing model", async () => {
    const options = { viewport: { width: 390, height: 800 }, colorScheme: "dark" as const };
    const page = await open(`question=${QUESTION}`, options);
    await page.selectOption("#pace", "0");
    await page.selectOption("#player", "oracle");
    await page.click("#play");
    await page.locator(".verdict.good").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await page.click("#again-after");
    await page.locator("#act").waitFor();
    const tops = ["#watch", "#asked", "#schema", "#act", "#picker", "#player"].map((id) =>
      page.locator(id).evaluate((element) => element.getBoundingClientRect().top),
    );
    const order = await Promise.all(tops);
    expect(order).toEqual([...order].sort((a, b) => a - b)); // the tables are above the action
    const shade = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await shade();
    await page.click("#theme");
    expect(await shade()).not.toBe(dark);
    expect(await page.evaluate(() => localStorage.getItem("sqlenv-theme"))).toBe("light");
    await page.evaluate(() => localStorage.setItem("sqlenv-theme", "sepia")); // unknown: the system's theme applies
    await page.reload();
    await page.waitForSelector("body[data-ready]");
    expect([await page.innerText("#theme"), await shade()]).toEqual(["◐ auto", dark]);

    rmSync(join(folder, "model"), { recursive: true });
    await page.click("#load");
    await page.waitForFunction(() =>
      /has no config\.json/.test(document.querySelector("#status.bad")?.textContent ?? ""),
    );
    expect(complaints.splice(0).filter((text) => !text.includes("404"))).toEqual([]); // chromium may log that one
  });

  test("the page is below 350 kB compressed without SQLite, the model and what is loaded on demand", () => {
    const sizeOf = (files: readonly string[]) =>
      files.reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file))).length, 0);
    // SQLite's worker for the origin-private file system is bundled, but never loaded.
    const assets = readdirSync(join(folder, "assets")).filter((file) => !/\.wasm$|opfs-async-proxy/.test(file));
    const paths = assets.map((file) => `assets/${file}`);
    const [gpu, own] = ["web-gpu", "own-data"].map((name) =>
      paths.filter((file) => file.startsWith(`assets/${name}-`)),
    ) as [string[], string[]];
    expect([gpu.length, own.length]).toEqual([1, 1]);
    expect(sizeOf(gpu)).toBeLessThan(30_000);
    expect(sizeOf(own)).toBeLessThan(40_000);
    const rest = paths.filter((file) => ![...gpu, ...own].includes(file));
    expect(sizeOf(["index.html", ...rest])).toBeLessThan(350_000);
  });
});
