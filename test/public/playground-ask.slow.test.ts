// A visitor's own files in the playground, in a real browser: read, asked about, and trained on.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { playgroundHandler } from "sqlenv/apps/playground";
import { createDatabase, loadSqlite } from "sqlenv/gym/sql";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CHROMIUM, type Site, serveHandler, WITHOUT } from "../helpers/chromium.ts";
import { sqlenv } from "../helpers/cli-process.ts";
import { writePlaygroundModel } from "../helpers/playground-model.ts";

const HOSTILE = `<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`;
const PLANETS = `name,kind,radius km,has rings
Mercury,rocky,2440,no
Venus,rocky,6052,no
Earth,rocky,6371,no
Jupiter,gas giant,69911,yes
Saturn,gas giant,58232,yes
Uranus,ice giant,25362,yes
Neptune,ice giant,24622,yes
`;
const MOONS = "moon,planet,radius\nIo,Jupiter,1822\nEuropa,Jupiter,1561\nTitan,Saturn,2575\nTriton,Neptune,1353\n";

const file = (name: string, content: string | Uint8Array) => ({ name, mimeType: "", buffer: Buffer.from(content) });

describe.skipIf(!CHROMIUM)(`a visitor's own files in the playground${WITHOUT}`, { timeout: 180_000 }, () => {
  const scratch = mkdtempSync(join(tmpdir(), "sqlenv-playground-ask-"));
  const complaints: string[] = [];
  let browser: Browser;
  let site: Site;

  beforeAll(async () => {
    const [model, folder] = [join(scratch, "model"), join(scratch, "site")];
    await loadSqlite();
    await writePlaygroundModel(model);
    expect((await sqlenv(["playground", "--out", folder, "--model", model])).code).toBe(0);
    site = await serveHandler(playgroundHandler({ site: folder }));
    browser = await chromium.launch({ executablePath: CHROMIUM! });
  }, 180_000);
  afterEach(() => expect(complaints.splice(0)).toEqual([]));
  afterAll(async () => {
    await browser?.close();
    site?.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  async function open(options: BrowserContextOptions = {}): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.setDefaultTimeout(90_000); // on a busy machine
    await page.goto(`${site.url}/web/#data=starter:0&seed=1`);
    await page.waitForSelector("body[data-ready]");
    return page;
  }
  const idle = (page: Page) => page.waitForFunction(() => !document.querySelector<HTMLButtonElement>("#ask")!.disabled);
  const ask = async (page: Page, question: string) => {
    await page.fill("#ask-question", question);
    await page.click("#ask");
    await idle(page);
  };

  test("CSV files are dropped, asked about and trained on, and nothing is sent", async () => {
    const page = await open();
    const sent: string[] = [];
    page.on("request", (request) => {
      const isHere = request.url().replace("blob:", "").startsWith(site.url);
      if (request.method() !== "GET" || !isHere) sent.push(request.url());
    });
    expect(await page.locator("#ask-form").isVisible()).toBe(false);
    const dropped = await page.evaluateHandle(
      ([planets, moons]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([planets!], "planets.csv"));
        transfer.items.add(new File([moons!], "moons.csv"));
        return transfer;
      },
      [PLANETS, MOONS],
    );
    await page.dispatchEvent("body", "drop", { dataTransfer: dropped });
    await page.locator("#ask-form").waitFor();
    expect(await page.innerText("#ask-note")).toBe("tables: 2 tables, in this tab only. Nothing was uploaded.");
    expect(await page.innerText("#own-schema")).toContain("→ planets.name");
    await page.click("#own-schema button:has-text('moons')");
    await page.locator("#own-rows td:has-text('Titan')").waitFor();
    expect(await page.inputValue("#ask-question")).toBe("How many planets are there?");

    await page.click("#ask");
    await page.locator("#ask-answer .verdict").waitFor();
    await idle(page);
    expect(await page.locator("#ask-turns .turn").count()).toBeGreaterThan(0);
    expect(await page.locator("#ask-turns .reward").count()).toBe(0); // nobody judges the answer
    expect(await page.innerText("#ask-answer")).toMatch(/of 4 samples agrees?|Unsure/);

    await page.click("#write");
    await page.locator("#written ul.examples").waitFor();
    expect(await page.innerText("#written")).toMatch(/^\d+ questions to train on and \d+ for tests/);
    const example = await page.innerText("#written .examples li:first-child");
    await page.click("#written .examples li:first-child button");
    expect(await page.inputValue("#ask-question")).toBe(example);

    await page.fill("#own-steps", "2");
    await page.click("#teach");
    await page.locator("#keep").waitFor();
    await idle(page);
    expect(await page.innerText("#ask-note")).toBe("Taught. Ask again.");
    expect(await page.innerText("#train-note")).toMatch(/before, on \d+ after/);
    expect(await page.innerText("#train-speed")).toMatch(
      /in step 2 it learned from [\d,]+ tokens\/s, with a loss of \d/,
    );
    expect(await page.locator("#behaviour").isVisible()).toBe(false);
    expect(await page.getAttribute("#chart", "aria-label")).toContain("after 2 of 2 steps");
    await page.selectOption("#ask-samples", "0");
    await ask(page, example);
    expect(await page.innerText("#ask-answer")).not.toContain("samples");
    // The playground's own questions are still there.
    await page.selectOption("#player", "oracle");
    await page.selectOption("#pace", "0");
    await page.click("#play");
    await page.locator("#verdict .verdict.good").waitFor();
    expect(sent).toEqual([]);
    await page.close();
  });

  test("markup in names, cells, questions and answers is shown as text", async () => {
    const page = await open();
    const quoted = `"${HOSTILE.replaceAll('"', '""')}"`;
    const bytes = createDatabase([
      {
        name: HOSTILE,
        ddl: `CREATE TABLE ${quoted} (${quoted} TEXT, n INTEGER)`,
        rows: [
          [HOSTILE, 1],
          ["b", 2],
        ],
      },
    ]);
    await page.setInputFiles("#own-files", [file(`${HOSTILE.replaceAll("/", "")}.db`, bytes)]);
    await page.locator("#ask-form").waitFor();
    await page.click("#own-schema button >> nth=0");
    await page.locator("#own-rows td").first().waitFor();
    expect(await page.innerText("#own-rows td >> nth=0")).toBe(HOSTILE);
    await ask(page, HOSTILE);
    await page.click("#write");
    await page.waitForFunction(
      () => document.querySelector("#written")!.textContent !== "" || document.querySelector("#ask-note.bad"),
    );
    expect(await page.locator("#ask-panel img, #ask-panel script").count()).toBe(0);
    expect(await page.evaluate(() => "hacked" in window)).toBe(false);
    await page.close();
  });

  test("files that are no database give one clear line, and the open one stays", async () => {
    const page = await open();
    await page.setInputFiles("#own-files", [file("planets.csv", PLANETS)]);
    await page.locator("#ask-form").waitFor();
    const damaged = createDatabase([
      { name: "item", ddl: "CREATE TABLE item (a TEXT)", rows: Array.from({ length: 900 }, (_, i) => [`word ${i}`]) },
    ]).fill(0xff, 4096, 8192);
    const refused: [ReturnType<typeof file>[], RegExp][] = [
      [[file("shop.db", "<html>")], /^the file is not a SQLite database, or it is encrypted: shop\.db$/],
      [[file("empty.csv", "")], /^the file is empty: empty\.csv$/],
      [[file("shop.db", damaged)], /damaged|malformed/],
      [[file("a.csv", PLANETS), file("b.pdf", "%PDF")], /neither a SQLite database nor a CSV file: b\.pdf/],
      [[file("latin.csv", Uint8Array.of(97, 10, 0xe9, 10))], /not text in UTF-8: latin\.csv/],
    ];
    for (const [files, line] of refused) {
      await page.setInputFiles("#own-files", files);
      await page.locator("#ask-note.bad").waitFor();
      await idle(page);
      const text = await page.innerText("#ask-note");
      expect(text).toMatch(line);
      expect(text).not.toContain("\n");
      await page.evaluate(() => document.querySelector("#ask-note")!.classList.remove("bad"));
    }
    await page.click("#own-schema button:has-text('planets')");
    await page.locator("#own-rows td:has-text('Saturn')").waitFor();
    expect(await page.inputValue("#ask-question")).toBe("How many planets are there?");
    await page.setInputFiles("#own-files", [file("moons.csv", MOONS)]);
    await page.locator("#own-schema button:has-text('moons')").waitFor();
    await idle(page);
    expect(await page.inputValue("#ask-question")).toBe("How many moons are there?");
    await ask(page, "x".repeat(2000));
    await page.fill("#ask-question", "  ");
    await page.click("#ask");
    await page.locator("#ask-note.bad").waitFor();
    expect(await page.innerText("#ask-note")).toMatch(/^the question is empty/);
    await page.close();
  });

  test("it fits a phone in the dark theme", async () => {
    const page = await open({ viewport: { width: 390, height: 800 }, colorScheme: "dark" });
    await page.setInputFiles("#own-files", [file("planets.csv", PLANETS), file("moons.csv", MOONS)]);
    await page.locator("#ask-form").waitFor();
    await page.click("#own-schema button:has-text('planets')");
    await page.locator("#own-rows td").first().waitFor();
    await page.click("#ask");
    await page.locator("#ask-answer .verdict").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await page.close();
  });
});
