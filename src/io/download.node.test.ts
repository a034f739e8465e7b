import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../../test/helpers/data-files.ts";
import { DownloadError } from "../errors.ts";
import { follow, isPrivate } from "./download/follow.node.ts";
import { type DownloadOptions, download } from "./download.node.ts";
import { processName } from "./process.node.ts";

const BODY = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * 31 + (i >> 8)) & 255));

/** Connections that stopped sending; they are closed as soon as the client has what was sent, which makes tests deterministic. */
const held: { readonly sent: number; readonly response: ServerResponse }[] = [];
const cutHeld = (received: number) => {
  for (const { sent, response } of held) if (received >= sent) response.destroy();
};
const QUICK: DownloadOptions = { backoffMs: 0, onProgress: ({ received }) => cutHeld(received) };

type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** A server on a free port; returns its address and the Range header of each request. */
async function serve(handler: Handler): Promise<{ url: string; ranges: (string | undefined)[] }> {
  const ranges: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    ranges.push(request.headers.range);
    handler(request, response, ranges.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/file.zip`, ranges };
}

/** Sends the body from the requested offset, closing the connection after `bytes`. */
function send(
  request: IncomingMessage,
  response: ServerResponse,
  { etag = '"v1"', bytes = BODY.length, body = BODY },
): void {
  const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? "");
  const start = range && request.headers["if-range"] === etag ? Number(range[1]) : 0;
  const headers = { etag, "content-length": body.length - start };
  if (start > 0)
    response.writeHead(206, { ...headers, "content-range": `bytes ${start}-${body.length - 1}/${body.length}` });
  else response.writeHead(200, headers);
  const part = body.subarray(start, start + bytes);
  if (start + part.length === body.length) response.end(part);
  else hold(response, start + part.length, part);
}

function hold(response: ServerResponse, sent: number, part: Uint8Array): void {
  held.push({ sent, response });
  response.write(part);
}

/** The partial file of an earlier call. */
function leave(file: string, url: string, data: Uint8Array, name = ".part"): void {
  mkdirSync(file + name);
  writeFileSync(join(file + name, "data"), data);
  writeFileSync(join(file + name, "info.json"), JSON.stringify({ url, validator: '"v1"' }));
}

test("downloads, reports progress, leaves no other files", async () => {
  const { url } = await serve((request, response) => send(request, response, {}));
  const file = join(temporaryFolder(), "f");
  const seen: number[] = [];
  await download(url, file, { ...QUICK, onProgress: ({ received, total }) => seen.push(received / total!) });
  expect(readFileSync(file).equals(BODY)).toBe(true);
  expect(seen.at(-1)).toBe(1);
  expect(readdirSync(dirname(file))).toEqual(["f"]);
});

test("resumes after closed connections", async () => {
  const { url, ranges } = await serve((request, response) => send(request, response, { bytes: 70_000 }));
  const file = join(temporaryFolder(), "f");
  await download(url, file, { ...QUICK, retries: 1 });
  expect(readFileSync(file).equals(BODY)).toBe(true);
  // Each attempt got further than the one before, so one retry was enough.
  expect(ranges).toEqual([undefined, "bytes=70000-", "bytes=140000-"]);
});

test("a second call resumes the part of a first one", async () => {
  const file = join(temporaryFolder(), "f");
  const { url, ranges } = await serve((request, response, count) => {
    if (count === 1) send(request, response, { bytes: 50_000 });
    else if (count === 2) response.writeHead(503).end();
    else send(request, response, {});
  });
  await expect(download(url, file, { ...QUICK, retries: 0 })).rejects.toThrow(/download failed/);
  expect(existsSync(file)).toBe(false);
  await expect(download(url, file, { ...QUICK, retries: 0 })).rejects.toThrow(/503/);
  await download(url, file, QUICK);
  expect(ranges[2]).toMatch(/^bytes=[1-9]\d*-$/);
  expect(readFileSync(file).equals(BODY)).toBe(true);
});

test("starts again when a server that ignores If-Range continues another version", async () => {
  const changed = Buffer.from(BODY).reverse();
  const { url } = await serve((request, response, count) => {
    if (count === 1) return send(request, response, { bytes: 50_000 });
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const range = { "content-range": `bytes ${start}-${changed.length - 1}/${changed.length}` };
    response.writeHead(start > 0 ? 206 : 200, { etag: '"v2"', "content-length": changed.length - start, ...range });
    response.end(changed.subarray(start));
  });
  const file = join(temporaryFolder(), "f");
  await download(url, file, QUICK);
  expect(readFileSync(file).equals(changed)).toBe(true);
});

test("starts again when the file has changed, or when the server does not support ranges", async () => {
  const changed = Buffer.from(BODY).reverse();
  const versions = await serve((request, response, count) =>
    count === 1 ? send(request, response, { bytes: 50_000 }) : send(request, response, { etag: '"v2"', body: changed }),
  );
  const file = join(temporaryFolder(), "f");
  await download(versions.url, file, QUICK);
  expect(readFileSync(file).equals(changed)).toBe(true);

  const plain = await serve((_, response, count) => {
    response.writeHead(200, { "content-length": BODY.length, etag: '"v1"' });
    if (count > 1) response.end(BODY);
    else hold(response, 50_000, BODY.subarray(0, 50_000));
  });
  const other = join(temporaryFolder(), "g");
  await download(plain.url, other, QUICK);
  expect(readFileSync(other).equals(BODY)).toBe(true);
});

test("a part that is not a prefix of the file, or is the whole file, is handled", async () => {
  const { url } = await serve((request, response) => {
    const start = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    if (start >= BODY.length) response.writeHead(416, { "content-range": `bytes */${BODY.length}` }).end();
    else send(request, response, {});
  });
  for (const size of [BODY.length, BODY.length + 5]) {
    const file = join(temporaryFolder(), "f");
    leave(file, url, Buffer.concat([BODY, Buffer.alloc(5)]).subarray(0, size));
    await download(url, file, QUICK);
    expect(readFileSync(file).equals(BODY)).toBe(true);
  }
});

test("gives up after limited retries, at once where retrying is useless, and says how to continue", async () => {
  const file = join(temporaryFolder(), "f");
  const down = await serve((_, response) => response.writeHead(500).end());
  await expect(download(down.url, file, { ...QUICK, retries: 2 })).rejects.toThrow(
    /answered 500 .*run the same command again/,
  );
  expect(down.ranges).toHaveLength(3);
  const absent = await serve((_, response) => response.writeHead(404).end());
  await expect(download(absent.url, file, QUICK)).rejects.toThrow(/answered 404 .*check the address/);
  expect(absent.ranges).toHaveLength(1);
  const short = await serve((_, response) => {
    response.writeHead(200, { "content-length": 10 });
    hold(response, 5, Buffer.from("short"));
  });
  await expect(download(short.url, file, { ...QUICK, retries: 1 })).rejects.toThrow(/download failed/);
  expect(existsSync(file)).toBe(false);
});

test("a wrong checksum is retried once from the beginning, which also repairs a wrong resumed part", async () => {
  const file = join(temporaryFolder(), "f");
  const { url, ranges } = await serve((request, response) => send(request, response, {}));
  const sha256 = createHash("sha256").update(BODY).digest("hex");
  leave(file, url, Buffer.alloc(50_000, 7));
  await download(url, file, { ...QUICK, checksum: { kind: "sha256", hex: sha256 } });
  expect(readFileSync(file).equals(BODY)).toBe(true);
  expect(ranges).toEqual(["bytes=50000-", undefined]);
  const git = createHash("sha1").update(`blob ${BODY.length}\0`).update(BODY).digest("hex");
  await download(url, file, { ...QUICK, checksum: { kind: "git", hex: git } });
  const wrong = download(url, `${file}2`, { ...QUICK, checksum: { kind: "git", hex: "0".repeat(40) } });
  await expect(wrong).rejects.toThrow(/checksum is wrong/);
  expect(ranges).toHaveLength(5);
  expect(readdirSync(dirname(file))).toEqual(["f"]);
});

test("headers are sent, empty files work, and a disk error is not retried", async () => {
  const folder = temporaryFolder();
  const { url, ranges } = await serve((request, response) =>
    response.writeHead(request.headers["x-asked"] === "yes" ? 200 : 400, { "content-length": 0 }).end(),
  );
  await download(url, join(folder, "empty"), { ...QUICK, headers: { "x-asked": "yes" } });
  expect(readFileSync(join(folder, "empty"))).toHaveLength(0);
  const blocked = download(url, join(folder, "no", "f"), { ...QUICK, headers: { "x-asked": "yes" } });
  await expect(blocked).rejects.toThrow(/ENOENT.*check the folder's permissions/);
  await expect(blocked).rejects.toBeInstanceOf(DownloadError);
  expect(ranges).toHaveLength(1);
  await expect(download(url, join(folder, "f"), QUICK)).rejects.toMatchObject({ code: "download", status: 400 });
});

test("a stalled connection times out, and an abort is respected", async () => {
  const { url } = await serve((_, response) => response.writeHead(200, { "content-length": 10 }).write("x"));
  const file = join(temporaryFolder(), "f");
  await expect(download(url, file, { ...QUICK, retries: 0, stallMs: 20 })).rejects.toThrow(/no data for/);
  const controller = new AbortController();
  const running = download(url, file, { ...QUICK, signal: controller.signal });
  controller.abort();
  await expect(running).rejects.toThrow(/abort/i);
});

test("two concurrent downloads of one file do not interfere", async () => {
  const { url, ranges } = await serve((request, response, count) =>
    send(request, response, count < 3 ? { bytes: 60_000 } : {}),
  );
  const file = join(temporaryFolder(), "f");
  await Promise.all([download(url, file, QUICK), download(url, file, QUICK)]);
  expect(readFileSync(file).equals(BODY)).toBe(true);
  expect(ranges.slice(0, 2)).toEqual([undefined, undefined]);
  expect(readdirSync(dirname(file))).toEqual(["f"]);
});

test("a part whose process is gone is resumed; one in use, or of the older file format, is not", async () => {
  const { url, ranges } = await serve((request, response) => send(request, response, {}));
  const file = join(temporaryFolder(), "f");
  const running = `.part-${processName().replace(/\d+$/, "1")}.1`; // process 1 always runs
  leave(file, url, BODY.subarray(0, 10), running);
  writeFileSync(`${file}.part`, "a file");
  await download(url, file, QUICK);
  leave(file, url, BODY.subarray(0, 20), `.part-${processName().replace(/\d+$/, "999999999")}.1`);
  await download(url, file, QUICK);
  leave(file, url, BODY.subarray(0, 30), ".part-elsewhere.1.1");
  utimesSync(join(`${file}.part-elsewhere.1.1`, "data"), 1, 1);
  await download(url, file, QUICK);
  expect(ranges).toEqual([undefined, "bytes=20-", "bytes=30-"]);
  expect(readdirSync(dirname(file)).sort()).toEqual(["f", `f${running}`]);
});

test("a file larger than allowed is refused: by its declared size, and by the bytes received", async () => {
  const file = join(temporaryFolder(), "f");
  const said = await serve((request, response) => send(request, response, {}));
  await expect(download(said.url, file, { ...QUICK, maxBytes: 199_999 })).rejects.toThrow(
    /it has 200000 bytes, and 199999 are allowed/,
  );
  const endless = await serve((_, response) => {
    const more = () => {
      while (!response.destroyed && response.write(BODY));
    };
    response.on("drain", more);
    more();
  });
  let most = 0;
  const onProgress = ({ received }: { received: number }) => {
    most = received;
  };
  const coming = download(endless.url, file, { backoffMs: 0, maxBytes: 1_000_000, onProgress });
  await expect(coming).rejects.toThrow(/more than 1000000 bytes came/);
  expect(most).toBeLessThanOrEqual(1_000_000);
  expect([said.ranges.length, endless.ranges.length]).toEqual([1, 1]);
  expect(readdirSync(dirname(file))).toEqual([]);
  await download(said.url, file, { ...QUICK, maxBytes: 200_000 });
});

test("redirects are followed within limits; credentials stay with the first origin", async () => {
  const seen: (string | undefined)[] = [];
  const target = await serve((request, response) => {
    seen.push(request.headers.authorization);
    send(request, response, {});
  });
  const from = await serve((_, response) => response.writeHead(302, { location: target.url }).end());
  const file = join(temporaryFolder(), "f");
  await download(from.url, file, { ...QUICK, headers: { authorization: "Bearer secret" } });
  expect(readFileSync(file).equals(BODY)).toBe(true);
  expect(seen).toEqual([undefined]);
  const loop = await serve((_, response) => response.writeHead(302, { location: "/again" }).end());
  await expect(download(loop.url, file, QUICK)).rejects.toThrow(/more than 5 redirects/);
  const other = await serve((_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end());
  await expect(download(other.url, file, QUICK)).rejects.toThrow(/redirected to file: instead of http/);
  expect([loop.ranges.length, other.ranges.length]).toEqual([6, 1]);
});

test.each([
  ["https://93.184.216.34/x", "http://93.184.216.34/x", /from https to http/],
  ["https://93.184.216.34/x", "https://127.0.0.1/x", /private network \(127\.0\.0\.1\)/],
  ["http://93.184.216.34/x", "http://169.254.169.254/latest/meta-data", /private network/],
  ["http://93.184.216.34/x", "http://[::1]:8080/x", /private network/],
  ["http://93.184.216.34/x", "http://localhost/x", /private network/],
  ["http://93.184.216.34/x", "http://[::ffff:10.0.0.1]/x", /private network/],
])("%s may not lead to %s", async (from, location, message) => {
  const asked: string[] = [];
  const original = globalThis.fetch;
  onTestFinished(() => {
    globalThis.fetch = original;
  });
  globalThis.fetch = async (url) => {
    asked.push(String(url));
    return new Response(null, { status: 302, headers: { location } });
  };
  await expect(follow(from, {}, new AbortController().signal)).rejects.toThrow(message);
  expect(asked).toEqual([from]);
});

test("private addresses are recognized in all spellings", async () => {
  for (const host of [
    "10.1.2.3",
    "172.31.0.1",
    "192.168.1.1",
    "0.0.0.0",
    "[fd00::1]",
    "[fe80::1]",
    "a.localhost",
    "[::]",
  ])
    expect(await isPrivate(host), host).toBe(true);
  for (const host of ["8.8.8.8", "172.32.0.1", "[2606:4700::1111]"]) expect(await isPrivate(host), host).toBe(false);
});
