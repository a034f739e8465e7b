// SQLEnvClient in a real browser: a page served by the server plays an episode. Skipped without Chromium.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { CHROMIUM, WITHOUT } from "../helpers/chromium.ts";
import { serve } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));

test.skipIf(!CHROMIUM)(`a page plays an episode and shows the outcome${WITHOUT}`, async () => {
  const { question_id, gold_answer } = (await smallDataSet()).questions[0]!;
  const page = `<!doctype html><title>test</title><script type="module">
    import { SQLEnvClient } from "/page/gym/client/index.js";
    const out = (value) => fetch("/page/said", { method: "POST", body: JSON.stringify(value) });
    try {
      const env = new SQLEnvClient(location.origin);
      const first = await env.reset({ question_id: ${JSON.stringify(question_id)} });
      await env.step({ action_type: "QUERY", argument: "SELECT 1" });
      const last = await env.step({ action_type: "ANSWER", argument: ${JSON.stringify(gold_answer)} });
      const refused = await env.reset({ question_id: "nope" }).catch((error) => error.code);
      out({ first: first.step_count, done: last.done, outcome: await env.outcome, refused, isolated: crossOriginIsolated });
      await env.close();
    } catch (error) { out(String(error)); }
  </script>`;
  let hear: (said: unknown) => void = () => {};
  const said = new Promise((resolve) => {
    hear = resolve;
  });
  const server = await serve({
    threads: 1,
    pages: [
      async (request) => {
        const path = new URL(request.url).pathname;
        if (path === "/page/") return new Response(page, { headers: { "content-type": "text/html" } });
        if (path === "/page/said") {
          hear(await request.json());
          return new Response(null, { status: 204 });
        }
        if (!path.startsWith("/page/")) return undefined;
        const script = readFileSync(resolve(dist, path.slice("/page/".length)));
        return new Response(script, { headers: { "content-type": "text/javascript" } });
      },
    ],
  });
  const profile = mkdtempSync(join(tmpdir(), "sqlenv-chromium-"));
  const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"];
  const browser = spawn(CHROMIUM!, [...flags, `--user-data-dir=${profile}`, `${server.url}/page/`], {
    stdio: "ignore",
  });
  const seen = await said;
  browser.kill();
  await once(browser, "exit");
  expect(seen).toMatchObject({
    first: 0,
    done: true,
    outcome: { correctness: 1, done_reason: "answered" },
    refused: "EXECUTION_ERROR",
    isolated: true,
  });
  await server.close();
});
