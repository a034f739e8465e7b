import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { modelList, playgroundHandler } from "./server.node.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-site-"));
const [site, model] = [join(scratch, "site"), join(scratch, "starter")];
const handle = playgroundHandler({ site, model });
const get = (path: string, options: RequestInit = {}) => handle(new Request(`http://localhost${path}`, options));

beforeAll(() => {
  mkdirSync(join(site, "assets"), { recursive: true });
  mkdirSync(model);
  writeFileSync(join(scratch, "secret.json"), "{}");
  writeFileSync(join(site, ".hidden.js"), "");
  writeFileSync(join(site, "index.html"), "<title>page</title>");
  writeFileSync(join(site, "assets/main-1.js"), "let a;".repeat(100));
  writeFileSync(join(model, "config.json"), "{}");
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

test("serves the page, its assets and the model, each with its type and policy", async () => {
  const page = (await get("/web/"))!;
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(page.headers.get("content-security-policy")).toMatch(
    /default-src 'none'.*frame-ancestors 'none'.*trusted-types/,
  );
  expect(page.headers.get("cross-origin-embedder-policy")).toBe("require-corp");
  expect(await page.text()).toContain("page");
  const asset = (await get("/web/assets/main-1.js", { headers: { "accept-encoding": "gzip, br" } }))!;
  expect(asset.headers.get("cache-control")).toContain("immutable");
  expect(asset.headers.get("content-encoding")).toBe("gzip");
  expect(gunzipSync(await asset.arrayBuffer()).toString()).toBe("let a;".repeat(100));
  expect((await get("/web/model/config.json"))!.headers.get("content-type")).toBe("application/json");
});

test("lists the model's files, so that the page requests no other", async () => {
  expect(await (await get("/web/model/files.json"))!.json()).toEqual(["config.json"]);
  expect(modelList(model)).toBe('["config.json"]\n');
});

test("the built page includes third-party licenses, its workers' too", async () => {
  const built = playgroundHandler();
  const response = (await built(new Request("http://localhost/web/THIRD_PARTY_LICENSES.txt")))!;
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const sections = (await response.text()).split(`\n${"-".repeat(80)}\n`);
  for (const name of [
    "@huggingface/jinja",
    "@huggingface/tokenizers",
    "@sqlite.org/sqlite-wasm",
    "assemblyscript",
    "zod",
  ]) {
    const section = sections.find((text) => text.includes(`\n${name} `));
    expect(section, name).toMatch(/Permission is hereby granted|TERMS AND CONDITIONS FOR USE/);
  }
});

test("large files are streamed with backpressure", async () => {
  const bytes = Buffer.alloc(5_000_000, 7);
  writeFileSync(join(model, "model.safetensors"), bytes);
  const response = (await get("/web/model/model.safetensors"))!;
  expect(response.headers.get("content-length")).toBe("5000000");
  const pieces = [];
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) pieces.push(piece);
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(65_536);
  expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  const unread = (await get("/web/model/model.safetensors"))!;
  await unread.body!.cancel(); // and nothing more is read
});

test("handles only its own paths", async () => {
  expect((await get("/web"))!.headers.get("location")).toBe("/web/");
  for (const path of ["/", "/website", "/reset", "/web/metadata", "/web/model/none.json", "/web/assets/"]) {
    expect(await get(path), path).toBeUndefined();
  }
  expect(await get("/web/", { method: "POST" })).toBeUndefined();
  const head = (await get("/web/", { method: "HEAD" }))!;
  expect([head.headers.get("content-length"), await head.text()]).toEqual(["19", ""]);
});

test("an unchanged page gets 304", async () => {
  const etag = (await get("/web/"))!.headers.get("etag")!;
  expect((await get("/web/", { headers: { "if-none-match": etag } }))!.status).toBe(304);
});

test.each([
  "/web/../secret.json",
  "/web/%2e%2e/secret.json",
  "/web/%2e%2e%2fsecret.json",
  "/web/..%5csecret.json",
  "/web/model/..%2f..%2fsecret.json",
  "/web//etc/passwd",
  "/web/.hidden.js",
  "/web/index.html%00",
  "/web/%E0%A4%A",
])("%s leads nowhere", async (path) => {
  expect(await get(path)).toBeUndefined();
});

test("an unbuilt site says so", async () => {
  const response = (await playgroundHandler({ site: join(scratch, "none") })(new Request("http://localhost/web/")))!;
  expect(response.status).toBe(503);
  expect(await response.text()).toContain("npm run build");
});
