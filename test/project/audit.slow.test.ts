// `npm run audit` against a local registry: what fails, and what must not.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ended } from "../helpers/cli-process.ts";
import { ROOT } from "../helpers/dockerfile.ts";

/** Advisories by package; null for a registry without that endpoint. */
let advisories: Record<string, object[]> | null = {};
const registry = createServer((request, response) => {
  request.resume();
  const isQuestion = request.url === "/-/npm/v1/security/advisories/bulk";
  if (isQuestion && advisories) response.setHeader("content-type", "application/json").end(JSON.stringify(advisories));
  else response.writeHead(isQuestion ? 405 : 404).end();
});
beforeAll(() => new Promise<void>((done) => void registry.listen(0, "127.0.0.1", done)));
const cache = mkdtempSync(join(tmpdir(), "sqlenv-audit-")); // npm caches advisories
afterAll(() => {
  registry.close();
  rmSync(cache, { recursive: true });
});

function audit(port = (registry.address() as AddressInfo).port) {
  const npm = {
    npm_config_registry: `http://127.0.0.1:${port}/`,
    npm_config_fetch_retries: "0",
    npm_config_cache: cache,
  };
  const env = { ...process.env, ...npm };
  return ended(spawn(process.execPath, [resolve(ROOT, "scripts/audit.mjs")], { cwd: ROOT, env }));
}
let last = 0;
const advisory = (severity: string) => ({
  ...{ id: ++last, url: "https://example.org", title: "sockets may be closed by others", severity },
  vulnerable_versions: "<999.0.0",
});

test("passes without known vulnerabilities, and says how many packages it checked", async () => {
  advisories = {};
  expect(await audit()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^npm audit: \d+ packages, 0 with/) });
});

test("fails on a high vulnerability, reports a low one", async () => {
  advisories = { ws: [advisory("high")] };
  expect(await audit()).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^high: ws: sockets may be closed/),
  });
  advisories = { ws: [advisory("low")] };
  expect(await audit()).toMatchObject({ code: 0, stdout: expect.stringMatching(/^low: ws: /) });
});

test("development dependencies are not checked", async () => {
  advisories = { vite: [advisory("critical")] };
  expect((await audit()).code).toBe(0);
});

test("passes with a message if the registry lacks the service or is unreachable", async () => {
  advisories = null;
  for (const port of [undefined, 9])
    expect(await audit(port)).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing was checked") });
});
