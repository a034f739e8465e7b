// Takes the pictures of the playground in the documents: a question being played, a model that learned, and one that is asked about files. Needs chromium.
//
//     npm run pictures:playground [-- MODEL_FOLDER] [--only playground-ask]
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { playgroundHandler } from "../dist/apps/playground/server.node.js";

const docs = fileURLToPath(new URL("../docs/", import.meta.url));
const { values, positionals } = parseArgs({ options: { only: { type: "string" } }, allowPositionals: true });
const [model] = positionals;
const handle = playgroundHandler(model ? { model } : {});
const server = createServer(async (request, response) => {
  const answer = await handle(new Request(`http://${request.headers.host}${request.url}`));
  response.writeHead(answer?.status ?? 404, Object.fromEntries(answer?.headers ?? []));
  response.end(answer?.body ? Buffer.from(await answer.arrayBuffer()) : undefined);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium" });

async function picture(name, hash, part, play) {
  if (values.only && `${values.only}.png` !== name) return;
  const page = await browser.newPage({ viewport: { width: 1280, height: 1000 }, deviceScaleFactor: 1 });
  await page.goto(`http://127.0.0.1:${server.address().port}/web/#${hash}`);
  await page.waitForSelector("body[data-ready]");
  await play(page);
  await page.evaluate(() => {
    document.activeElement?.blur();
    scrollTo(0, 0);
  });
  await page.locator(part).screenshot({ path: `${docs}${name}` }); // the whole part, none of it cut off
  console.log(`wrote docs/${name}`);
  await page.close();
}

const wine = new URLSearchParams([
  ["question", "vineyards_eval_009"],
  ["do", "DESCRIBE: wines"],
  ["do", "QUERY: SELECT wine FROM wines ORDER BY bottle_price DESC LIMIT 1"],
  ["do", 'QUERY: SELECT wine, "bottle price" FROM wines ORDER BY "bottle price" DESC LIMIT 3'],
]);
await picture("playground.png", wine, "body", async (page) => {
  await page.check("input[value=ANSWER]");
  await page.fill("#argument", "Limestone");
});
await picture("playground-training.png", "", "#learning", async (page) => {
  await page.click("#watch");
  await page.locator("#keep").waitFor({ timeout: 1_200_000 });
});
const guide = readFileSync(`${docs}your-data.md`, "utf8"); // its example: two CSV files
const files = [...guide.matchAll(/^cat > \S+?(\w+\.csv) <<'CSV'\n([\s\S]*?)\nCSV$/gm)].map(([, file, text]) => ({
  name: file,
  mimeType: "text/csv",
  buffer: Buffer.from(`${text}\n`),
}));
await picture("playground-ask.png", "", "#ask-panel", async (page) => {
  await page.setInputFiles("#own-files", files);
  await page.click("#write");
  await page.locator("#written ul").first().waitFor();
  await page.click("#teach");
  await page.waitForFunction(() => document.querySelector("#ask-note").textContent.startsWith("Taught"), null, {
    timeout: 1_200_000,
  });
  await page.fill("#ask-question", "Which moon has the highest radius km?");
  await page.click("#ask");
  await page.locator("#ask-answer .verdict").waitFor({ timeout: 120_000 });
});
await browser.close();
server.close();
