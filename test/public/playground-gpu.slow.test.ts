// The playground on WebGPU in a real Chromium, whose SwiftShader stands in for a GPU.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { playgroundHandler } from "sqlenv/apps/playground";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { missingBrowserGpu, startGpuChromium } from "../helpers/browser-gpu.ts";
import { type Site, serveHandler } from "../helpers/chromium.ts";
import { sqlenv } from "../helpers/cli-process.ts";
import { writePlaygroundModel } from "../helpers/playground-model.ts";

const missing = await missingBrowserGpu();
const SLOW_MS = 300_000; // a software adapter compiles each kernel for a good part of a second
const START = "data=starter:0&seed=1";

describe.skipIf(missing !== undefined)(`the playground on a GPU${missing ? ` (skipped: ${missing})` : ""}`, () => {
  const scratch = mkdtempSync(join(tmpdir(), "sqlenv-playground-gpu-"));
  const complaints: string[] = [];
  let browser: Browser;
  let site: Site;

  beforeAll(async () => {
    const [model, folder] = [join(scratch, "model"), join(scratch, "site")];
    await writePlaygroundModel(model);
    expect((await sqlenv(["playground", "--out", folder, "--model", model])).code).toBe(0);
    site = await serveHandler(playgroundHandler({ site: folder }));
    browser = await startGpuChromium();
  }, SLOW_MS);
  afterEach(() => expect(complaints.splice(0)).toEqual([]));
  afterAll(async () => {
    await browser?.close();
    site?.close();
    rmSync(scratch, { recursive: true, force: true });
  });

  async function open(search: string): Promise<Page> {
    const page = await browser.newPage();
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.setDefaultTimeout(SLOW_MS);
    await page.goto(`${site.url}/web/${search}#${START}`);
    await page.waitForSelector("body[data-ready]");
    return page;
  }
  /** Lets the model play the question; returns its turns. */
  async function play(page: Page): Promise<string> {
    await page.selectOption("#player", "model");
    await page.selectOption("#pace", "0");
    await page.click("#play");
    await page.locator(".verdict").waitFor();
    return page.innerText("#turns");
  }
  /** Ends Chromium's process that owns the GPU, as a driver's crash does. */
  async function crashGpu(): Promise<void> {
    const session = await browser.newBrowserCDPSession();
    await session.send("Browser.crashGpuProcess");
    await session.detach();
  }
  const trainOneStep = async (page: Page) => {
    if (!(await page.locator("#training").isVisible())) await page.click("#own-settings summary");
    for (const [id, value] of [
      ["steps", "1"],
      ["questions", "2"],
      ["episodes", "2"],
    ])
      await page.fill(`#train-${id}`, value!);
    await page.click("#train");
    await page.locator("#steps tbody tr").waitFor({ state: "attached" });
    await page.waitForFunction(() => /before, on \d+ after/.test(document.querySelector("#train-note")!.textContent!));
  };

  test("an emulated GPU is used only if asked for; a model plays there as on the CPU, and is trained", {
    timeout: SLOW_MS,
  }, async () => {
    const onCpu = await open("");
    const turns = await play(onCpu);
    expect(await onCpu.innerText("#model-note")).toMatch(
      /threads?\. No GPU is used: WebGPU is only emulated here \(google swiftshader\)\.$/,
    );
    expect(await onCpu.innerText("#model-speed")).toMatch(/^Its last reply: \d+ tokens?, [\d,]+ tokens\/s\.$/);
    await onCpu.close();

    const page = await open("?device=webgpu");
    expect(await page.inputValue("#device")).toBe("webgpu");
    expect(await play(page)).toBe(turns);
    expect(await page.innerText("#model-note")).toMatch(
      /^The page's model: \d+k parameters, on the GPU: google swiftshader \(software\)\.$/,
    );
    await trainOneStep(page);
    expect(await page.innerText("#train-speed")).toMatch(
      /^Runs on the GPU: google swiftshader \(software\); in step 1 it sampled [\d,]+ tokens\/s and learned from [\d,]+ tokens\/s\.$/,
    );

    await crashGpu();
    await page.click("#again-after");
    await page.click("#play");
    await page.locator("#status.bad").waitFor();
    expect(await page.innerText("#status")).toMatch(
      /the GPU failed .*lost.*loaded again on the CPU; what it had learned/,
    );
    expect(await page.innerText("#model-note")).toMatch(/on (one|\d+) threads?\. No GPU is used: the GPU was lost/);
    expect(await play(page)).toBe(turns); // untrained again
    await page.close();
  });

  test("a GPU that is lost before anything was learned goes unnoticed but for the note", {
    timeout: SLOW_MS,
  }, async () => {
    const page = await open("?device=webgpu");
    await page.click("#load");
    await page.waitForFunction(() => /on the GPU/.test(document.querySelector("#model-note")!.textContent!));
    await crashGpu();
    await trainOneStep(page);
    expect(await page.innerText("#warnings")).toMatch(/^The GPU failed \(.*\)\. The CPU starts over\.$/m);
    expect(await page.innerText("#train-speed")).toMatch(/^Runs on (one|\d+) thread/);
    expect(await page.innerText("#status")).toBe("");
    await page.close();
  });

  test("?device=cpu asks for the CPU, and no GPU is mentioned", { timeout: SLOW_MS }, async () => {
    const page = await open("?device=cpu");
    await page.click("#load");
    await page.waitForFunction(() => /parameters/.test(document.querySelector("#model-note")!.textContent!));
    expect(await page.innerText("#model-note")).toMatch(/on (one thread|\d+ threads)\.$/);
    await page.close();
  });
});
