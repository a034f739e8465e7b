import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../../../test/helpers/data-files.ts";
import { ModelLoadError } from "../../../errors.ts";
import { type HubOptions, hubCache, resolveModel } from "./hub.node.ts";

const SHA = "0123456789abcdef0123456789abcdef01234567";
const WEIGHTS = Buffer.from(Array.from({ length: 150_000 }, (_, i) => (i * 7 + (i >> 9)) & 255));
const FILES: Readonly<Record<string, Buffer>> = {
  "config.json": Buffer.from('{"architectures":["Qwen3ForCausalLM"]}'),
  "tokenizer.json": Buffer.from("{}"),
  "tokenizer_config.json": Buffer.from(""), // empty files exist on the Hub
  "model.safetensors": WEIGHTS,
  "pytorch_model.bin": Buffer.from("not wanted"),
  "README.md": Buffer.from("not wanted"),
};
const isLarge = (file: string) => file.endsWith(".safetensors");
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const gitSha1 = (bytes: Uint8Array) => createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly range: string | undefined;
  readonly token: string | undefined;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

async function listen(handler: Handler): Promise<{ origin: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, range: headers.range, token: headers.authorization });
    handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

interface HubParts {
  readonly files?: Readonly<Record<string, Buffer>>;
  /** Handles requests to the large-file storage. */
  readonly store?: (request: IncomingMessage, response: ServerResponse, bytes: Buffer) => void;
  /** Called first; if it returns true, it has answered instead of the Hub. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

/** A miniature Hub: the API, and files by commit. Small files redirect within the host, large ones to another host. */
async function serveHub({ files = FILES, store = sendRange, before = () => false }: HubParts = {}) {
  const large = await listen((request, response) => store(request, response, files[request.url!.slice(1)]!));
  const hub = await listen((request, response) => {
    if (before(request, response)) return;
    const url = decodeURIComponent(request.url!);
    if (/^\/api\/models\/org\/tiny\/revision\/(?:main|v1)$/.test(url)) {
      const siblings = Object.keys(files).map((rfilename) => ({ rfilename }));
      response.end(JSON.stringify({ id: "org/tiny", sha: SHA, siblings }));
      return;
    }
    const file = new RegExp(`^/(?:org/tiny|cached)/resolve/${SHA}/([\\w.-]+)$`).exec(url)?.[1] ?? "";
    const bytes = files[file];
    if (!bytes) {
      response.writeHead(404, { "x-error-code": "RepoNotFound" }).end();
    } else if (isLarge(file)) {
      response.writeHead(302, {
        location: `${large.origin}/${file}`,
        "x-linked-etag": `"${sha256(bytes)}"`,
        "x-linked-size": String(bytes.length),
      });
      response.end("Found");
    } else if (url.startsWith("/org/")) {
      response.writeHead(307, { location: `/cached/resolve/${SHA}/${file}`, "x-repo-commit": SHA }).end();
    } else {
      response.writeHead(200, { etag: `W/"${gitSha1(bytes)}"`, "content-length": bytes.length });
      response.end(request.method === "HEAD" ? undefined : bytes);
    }
  });
  return { ...hub, large };
}

function sendRange(request: IncomingMessage, response: ServerResponse, bytes: Buffer): void {
  const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
  response.writeHead(start > 0 ? 206 : 200, {
    etag: '"v1"',
    "content-length": bytes.length - start,
    ...(start > 0 && { "content-range": `bytes ${start}-${bytes.length - 1}/${bytes.length}` }),
  });
  response.end(bytes.subarray(start));
}

const QUICK: HubOptions = { backoffMs: 0, offline: false, retries: 1 };

test("a folder resolves to itself; anything that is neither folder nor name is refused", async () => {
  const dir = temporaryFolder();
  expect(await resolveModel(dir)).toBe(dir);
  for (const name of ["./no/such/folder", "Qwen3", "a/b/c", "../up/x", "org/..", "a b/c", ""]) {
    await expect(resolveModel(name, QUICK)).rejects.toThrow(
      /no such model folder or GGUF file, and not a model's name on the Hub/,
    );
  }
  await expect(resolveModel("org/tiny", { ...QUICK, revision: "../x" })).rejects.toThrow(/not a revision/);
});

test("the folder of a training is refused with the path of its model", async () => {
  const run = temporaryFolder();
  mkdirSync(join(run, "model"));
  writeFileSync(join(run, "model", "config.json"), "{}");
  await expect(resolveModel(run)).rejects.toThrow(
    `the folder is a training's, not a model's: ${run}; give ${run}/model`,
  );
});

test("fetches what a model needs into the standard cache, and then needs no network", async () => {
  const { origin, seen, large } = await serveHub();
  const cacheDir = temporaryFolder();
  const progress: number[] = [];
  const options: HubOptions = {
    ...QUICK,
    cacheDir,
    endpoint: `${origin}/`,
    token: "secret",
    onProgress: ({ received, total }) => progress.push(received / total),
  };
  const folder = await resolveModel("org/tiny", options);
  const repo = join(cacheDir, "models--org--tiny");
  expect(folder).toBe(join(repo, "snapshots", SHA));
  expect(readFileSync(join(repo, "refs", "main"), "utf8")).toBe(SHA);
  const wanted = ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"];
  expect(readdirSync(folder).sort()).toEqual(wanted);
  for (const file of wanted) expect(readFileSync(join(folder, file)).equals(FILES[file]!)).toBe(true);
  const blobs = wanted.map((file) => (isLarge(file) ? sha256 : gitSha1)(FILES[file]!));
  expect(readdirSync(join(repo, "blobs")).sort()).toEqual(blobs.sort());
  expect(lstatSync(join(folder, "config.json")).isSymbolicLink()).toBe(true);
  expect(readlinkSync(join(folder, "config.json"))).toBe(join("..", "..", "blobs", gitSha1(FILES["config.json"]!)));
  expect(progress.at(-1)).toBe(1);
  expect(progress).toEqual([...progress].sort((a, b) => a - b));
  // The token is sent to the Hub and nowhere else.
  expect(new Set(seen.map(({ token }) => token))).toEqual(new Set(["Bearer secret"]));
  expect(large.seen.map(({ token }) => token)).toEqual([undefined]);

  const requests = seen.length + large.seen.length;
  expect(await resolveModel("org/tiny", options)).toBe(folder);
  expect(await resolveModel("org/tiny", { ...options, revision: SHA, offline: true })).toBe(folder);
  expect(seen.length + large.seen.length).toBe(requests);
  // An existing blob is not downloaded again, and a broken link is repaired.
  rmSync(join(folder, "model.safetensors"));
  rmSync(join(repo, "blobs", gitSha1(FILES["config.json"]!)));
  expect(await resolveModel("org/tiny", { ...options, revision: "v1" })).toBe(folder);
  expect(large.seen).toHaveLength(1);
  expect(readFileSync(join(folder, "config.json")).equals(FILES["config.json"]!)).toBe(true);
});

test("a sharded model is fetched by its index", async () => {
  const { "model.safetensors": _, ...rest } = FILES;
  const index = (map: object) => Buffer.from(JSON.stringify({ weight_map: map }));
  const files = {
    ...rest,
    "model.safetensors.index.json": index({ a: "m-1.safetensors", b: "m-2.safetensors" }),
    "m-1.safetensors": WEIGHTS.subarray(0, 1000),
    "m-2.safetensors": WEIGHTS.subarray(1000, 3000),
    "m-3.safetensors": WEIGHTS,
  };
  const { origin } = await serveHub({ files });
  const options = { ...QUICK, endpoint: origin, cacheDir: temporaryFolder() };
  const folder = await resolveModel("org/tiny", options);
  expect(readdirSync(folder).filter(isLarge).sort()).toEqual(["m-1.safetensors", "m-2.safetensors"]);
  rmSync(join(folder, "m-2.safetensors"));
  await expect(resolveModel("org/tiny", { ...options, offline: true })).rejects.toThrow(/not in the cache/);

  const broken = await serveHub({
    files: { ...files, "model.safetensors.index.json": index({ a: "m-9.safetensors" }) },
  });
  await expect(
    resolveModel("org/tiny", { ...options, endpoint: broken.origin, cacheDir: temporaryFolder() }),
  ).rejects.toThrow(/names a file that the model does not have: m-9/);
});

/** Sends `bytes` bytes of the requested file, and closes the connection once the client has them. */
function cutting(bytes: number) {
  const held: { readonly until: number; readonly response: ServerResponse }[] = [];
  return {
    store: (request: IncomingMessage, response: ServerResponse, body: Buffer) => {
      const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
      if (start + bytes >= body.length) {
        sendRange(request, response, body);
        return;
      }
      response.writeHead(start > 0 ? 206 : 200, {
        etag: '"v1"',
        "content-length": body.length - start,
        ...(start > 0 && { "content-range": `bytes ${start}-${body.length - 1}/${body.length}` }),
      });
      response.write(body.subarray(start, start + bytes));
      held.push({ until: start + bytes, response });
    },
    onProgress: ({ file, received, total }: { file: string; received: number; total: number }) => {
      if (!isLarge(file)) return;
      const ofFile = received - (total - WEIGHTS.length);
      for (const { until, response } of held) if (ofFile >= until) response.destroy();
    },
  };
}

test("connections cut midway are resumed, in the same call and in a later one", async () => {
  const { store, onProgress } = cutting(60_000);
  const { origin, large } = await serveHub({ store });
  const folder = await resolveModel("org/tiny", {
    ...QUICK,
    endpoint: origin,
    cacheDir: temporaryFolder(),
    onProgress,
  });
  expect(readFileSync(join(folder, "model.safetensors")).equals(WEIGHTS)).toBe(true);
  expect(large.seen.map(({ range }) => range)).toEqual([undefined, "bytes=60000-", "bytes=120000-"]);

  const again = cutting(60_000);
  const other = await serveHub({ store: again.store });
  const options = { ...QUICK, retries: 0, endpoint: other.origin, cacheDir: temporaryFolder() };
  const stop = new AbortController();
  const stopped = resolveModel("org/tiny", {
    ...options,
    signal: stop.signal,
    onProgress: ({ file }) => isLarge(file) && stop.abort(),
  });
  await expect(stopped).rejects.toThrow(/abort/i);
  await expect(resolveModel("org/tiny", { ...options, offline: true })).rejects.toThrow(/not in the cache/);
  await resolveModel("org/tiny", { ...options, retries: 1, onProgress: again.onProgress });
  expect(other.large.seen[1]?.range).toMatch(/^bytes=[1-9]\d*-$/);
});

test("after a wrong checksum the download starts over once, then fails; no bad file remains", async () => {
  let wrong = 1;
  const parts: HubParts = {
    store: (request, response, bytes) => {
      const body = Buffer.from(bytes);
      if (wrong-- > 0) body[5]! ^= 1;
      sendRange(request, response, body);
    },
  };
  const { origin, large } = await serveHub(parts);
  const options = { ...QUICK, endpoint: origin };
  const folder = await resolveModel("org/tiny", { ...options, cacheDir: temporaryFolder() });
  expect(readFileSync(join(folder, "model.safetensors")).equals(WEIGHTS)).toBe(true);
  expect(large.seen.map(({ range }) => range)).toEqual([undefined, undefined]);
  wrong = 99;
  const cacheDir = temporaryFolder();
  await expect(resolveModel("org/tiny", { ...options, cacheDir })).rejects.toThrow(
    /org\/tiny: model\.safetensors could not be fetched: .*checksum is wrong/,
  );
  expect(
    readdirSync(join(cacheDir, "models--org--tiny", "blobs")).filter((name) => name.startsWith(sha256(WEIGHTS))),
  ).toEqual([]);
});

test("errors of the Hub are explained, with a remedy", async () => {
  const refuse = async (status: number, code: string | undefined, options: HubOptions = {}) => {
    const { origin, seen } = await serveHub({
      before: (_, response) => {
        response.writeHead(status, code ? { "x-error-code": code } : {}).end("{}");
        return true;
      },
    });
    const failing = resolveModel("org/tiny", { ...QUICK, endpoint: origin, cacheDir: temporaryFolder(), ...options });
    const error = await failing.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ModelLoadError);
    return { text: String(error), requests: seen.length };
  };
  expect((await refuse(404, "RepoNotFound")).text).toMatch(/no such model on the Hub: org\/tiny; check the name/);
  expect((await refuse(404, "RevisionNotFound", { revision: "v9" })).text).toMatch(/no revision v9: org\/tiny/);
  expect((await refuse(401, "RepoNotFound")).text).toMatch(/or a private one: org\/tiny; .*set HF_TOKEN/);
  expect((await refuse(401, undefined, { token: "hf_x" })).text).toMatch(/does not accept the token/);
  expect((await refuse(401, "GatedRepo")).text).toMatch(
    /granted first: org\/tiny; accept its conditions .*then set HF_TOKEN/,
  );
  const gated = await refuse(403, "GatedRepo", { token: "hf_secret" });
  expect(gated.text).toMatch(/with the account that HF_TOKEN belongs to/);
  expect(gated.text).not.toContain("hf_secret");
  expect(gated.requests).toBe(1);
  const down = await refuse(503, undefined);
  expect(down.text).toMatch(/cannot be reached for org\/tiny \(it answered 503\)/);
  expect(down.requests).toBe(2);
});

test("a gated file behind an open listing, an unreachable Hub, offline, and other answers get different errors", async () => {
  const gated = await serveHub({
    before: ({ url }, response) => {
      if (!url!.includes("/resolve/")) return false;
      response.writeHead(403, { "x-error-code": "GatedRepo" }).end();
      return true;
    },
  });
  const cacheDir = temporaryFolder();
  const resolve = (options: HubOptions) => resolveModel("org/tiny", { ...QUICK, cacheDir, ...options });
  await expect(resolve({ endpoint: gated.origin })).rejects.toThrow(
    /access to the model must be granted first: org\/tiny/,
  );
  await expect(resolve({ endpoint: "http://127.0.0.1:1", retries: 0 })).rejects.toThrow(
    /the Hub cannot be reached for org\/tiny .*give the path of a folder/,
  );
  await expect(resolve({ offline: true })).rejects.toThrow(/not in the cache, .*offline.*: org\/tiny/);
  const other = await serveHub({
    before: (_, response) => {
      response.end("<html>");
      return true;
    },
  });
  await expect(resolve({ endpoint: other.origin })).rejects.toThrow(/the answer is not one of the Hub's/);
  const { "model.safetensors": _, ...unsafe } = FILES;
  const old = await serveHub({ files: unsafe });
  await expect(resolve({ endpoint: old.origin })).rejects.toThrow(/org\/tiny has no safetensors weights/);
  const { "tokenizer.json": __, ...slow } = FILES;
  const noTokenizer = await serveHub({ files: slow });
  await expect(resolve({ endpoint: noTokenizer.origin })).rejects.toThrow(/org\/tiny has no tokenizer\.json/);
});

test("a cache that cannot be written is named", async () => {
  const { origin } = await serveHub();
  const cacheDir = join(temporaryFolder(), "file");
  writeFileSync(cacheDir, "in the way");
  const options = { ...QUICK, endpoint: origin, cacheDir };
  await expect(resolveModel("org/tiny", options)).rejects.toThrow(
    /org\/tiny: the cache cannot be written .*HF_HUB_CACHE/,
  );
  const blocked = temporaryFolder();
  mkdirSync(join(blocked, "models--org--tiny", "blobs", `${sha256(WEIGHTS)}.part`, "data"), { recursive: true });
  await expect(resolveModel("org/tiny", { ...options, cacheDir: blocked })).rejects.toThrow(
    /could not be fetched: .*check the folder's permissions and the free space/,
  );
  expect(existsSync(join(blocked, "models--org--tiny", "refs"))).toBe(false);
});

test("the cache is where the Hub's own programs keep it", () => {
  expect(hubCache({ HF_HUB_CACHE: "/c", HF_HOME: "/h" })).toBe("/c");
  expect(hubCache({ HF_HOME: "/h" })).toBe(join("/h", "hub"));
  expect(hubCache({ XDG_CACHE_HOME: "/x" })).toBe(join("/x", "huggingface", "hub"));
  expect(hubCache({})).toMatch(/\.cache.huggingface.hub$/);
});
