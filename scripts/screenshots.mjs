// Pictures of the pages for the README and the guide, from a run that `npm run train` made. Run by `npm run screenshots [RUN]`.
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openBrowser } from "../dist/apps/bench/servers/browser.node.js";
import { serveDashboard } from "../dist/apps/dashboard/server/serve.node.js";

const run = process.argv[2] ?? "runs/starter";
if (!existsSync(join(run, "results.json"))) {
  console.error(`there is no finished run in ${run}: run npm run train first, or name another`);
  process.exit(2);
}
const images = fileURLToPath(new URL("../docs/images/", import.meta.url));
mkdirSync(images, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "sqlenv-screenshots-"));
const name = basename(run);
const live = liveFolder(join(scratch, "live", name), 12);
const browser = await openBrowser();
const servers = [await serveDashboard({ runs: [run], port: 0 }), await serveDashboard({ runs: [live], port: 0 })];
try {
  const [finished, training] = servers.map(({ url }) => url);
  const group = await tellingGroup(finished);
  const shown = [
    ["dashboard", finished, "overview", ".example .player", {}],
    ["dashboard-dark", finished, "overview", ".example .player", { colorScheme: "dark" }],
    ["dashboard-live", training, "overview", ".example .player", {}],
    ["dashboard-charts", finished, "charts", ".chart canvas", {}],
    ["dashboard-episodes", finished, "episodes?verdict=wrong", ".episodes tbody tr", {}],
    ["dashboard-group", finished, group, ".column", { colorScheme: "dark" }],
    ["dashboard-before-after", finished, "questions", ".column", {}],
    ["dashboard-phone", finished, "overview", ".example .player", { viewport: { width: 390, height: 844 } }],
  ];
  for (const [picture, url, view, part, options] of shown) {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      deviceScaleFactor: 1.5,
      ...options,
    });
    const page = await context.newPage();
    await page.goto(`${url}#/${name}/${view}`);
    await page.locator(part).first().waitFor();
    await page.waitForFunction(() => document.fonts.status === "loaded");
    const png = await page.screenshot();
    await context.close();
    const bytes = await asWebp(png);
    writeFileSync(join(images, `${picture}.webp`), bytes);
    console.log(`docs/images/${picture}.webp: ${Math.round(bytes.length / 1000)} kB`);
  }
} finally {
  await browser.close();
  for (const server of servers) await server.close();
  rmSync(scratch, { recursive: true, force: true });
}

/** The run as it looked during training: its logs up to a step, locked by a living process. */
function liveFolder(folder, last) {
  mkdirSync(folder, { recursive: true });
  for (const file of ["config.yaml", "random.json", "before.json", "gold.json"])
    if (existsSync(join(run, file))) copyFileSync(join(run, file), join(folder, file));
  for (const file of ["metrics.jsonl", "timings.jsonl", "episodes.jsonl", "warnings.jsonl"]) {
    if (!existsSync(join(run, file))) continue;
    const lines = readFileSync(join(run, file), "utf8").split("\n").filter(Boolean);
    const kept = lines.filter((line) => Number(/"step":(\d+)/.exec(line)?.[1]) <= last);
    writeFileSync(join(folder, file), kept.map((line) => `${line}\n`).join(""));
  }
  writeFileSync(join(folder, "lock"), `${process.pid}\n`);
  return folder;
}

/** A group of an early step that shows what is learned: attempts that explore are right, others answer at once. */
async function tellingGroup(url) {
  const { rows } = await (await fetch(`${url}api/runs/${name}/episodes?to_step=12&limit=1000`)).json();
  const groups = new Map();
  for (const row of rows) {
    const key = `${row.step}/${row.group}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  const score = (group) => {
    const right = group.filter(({ correctness }) => correctness === 1);
    const guessed = right.filter(({ actions }) => !/^[DS].*Q/.test(actions)).length;
    const atOnce = group.filter(({ actions, correctness }) => actions === "A" && correctness === 0).length;
    return (atOnce > 0 ? 4 : 0) - 3 * guessed - Math.abs(right.length - 3);
  };
  const [[best]] = [...groups].sort(([, a], [, b]) => score(b) - score(a));
  return `group/${best}`;
}

/** PNG to WebP, by the browser itself: a third of the bytes. */
async function asWebp(png) {
  const page = await browser.newPage();
  const bytes = await page.evaluate(async (base64) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    canvas.getContext("2d").drawImage(bitmap, 0, 0);
    const bytes = new Uint8Array(
      await (await canvas.convertToBlob({ type: "image/webp", quality: 0.85 })).arrayBuffer(),
    );
    return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  }, png.toString("base64"));
  await page.close();
  return Buffer.from(bytes, "latin1");
}
