// Takes the pictures of the playground in the documents: a question being played, and a model that learned. Needs chromium.
//
//     npm run pictures:playground [-- MODEL_FOLDER]
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { playgroundHandler } from "../dist/apps/playground/server.node.js";

const docs = fileURLToPath(new URL("../docs/", import.meta.url));
const [model] = process.argv.slice(2);
const handle = playgroundHandler(model ? { model } : {});
const server = createServer(async (request, response) => {
  const answer = await handle(new Request(`http://${request.headers.host}${request.url}`));
  response.writeHead(answer?.status ?? 404, Object.fromEntries(answer?.headers ?? []));
  response.end(answer?.body ? Buffer.from(await answer.arrayBuffer()) : undefined);
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium" });

async function picture(name, hash, part, play) {
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
await browser.close();
server.close();
