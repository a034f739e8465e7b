// A file from a URL, resumed where a broken connection left off, never left half-written under its own name.
import { createHash } from "node:crypto";
import {
  closeSync,
  createReadStream,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import type { ReadableStream } from "node:stream/web";
import { setTimeout as wait } from "node:timers/promises";
import { DownloadError, messageOf } from "./errors.ts";

export interface DownloadProgress {
  readonly received: number;
  /** Undefined while the server has not said. */
  readonly total: number | undefined;
}

export interface DownloadOptions {
  readonly onProgress?: (progress: DownloadProgress) => void;
  /** Tries after the first; counted anew when one got further than any before. @default 5 */
  readonly retries?: number;
  /** Pause before the first retry; doubles each time. @default 500 */
  readonly backoffMs?: number;
  /** A connection without data for this long is given up. @default 60000 */
  readonly stallMs?: number;
  /** Sent with each request; `authorization` is not passed on when another host is redirected to. */
  readonly headers?: Readonly<Record<string, string>>;
  /** What the file must be; a file that is not is fetched once more from its beginning, then given up. */
  readonly checksum?: Checksum | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A file's SHA-256, or its SHA-1 as git names blobs. */
export interface Checksum {
  readonly kind: "sha256" | "git";
  readonly hex: string;
}

const MAX_BACKOFF_MS = 30_000;

/** What must be the same for a resume to make sense. */
interface PartInfo {
  readonly url: string;
  /** A strong ETag or the Last-Modified date, sent as If-Range. */
  readonly validator: string;
}

/** Downloads to `file` by way of `file.part`; a later call with the same URL continues a part that was left. */
export async function download(url: string, file: string, options: DownloadOptions = {}): Promise<void> {
  const { retries = 5, backoffMs = 500, checksum, signal } = options;
  let failures = 0;
  let mismatches = 0;
  let most = sizeOf(`${file}.part`);
  for (;;) {
    try {
      await attempt(url, file, options);
      if (checksum && (await digestOf(`${file}.part`, checksum.kind)) !== checksum.hex) {
        for (const path of [`${file}.part`, `${file}.part.json`]) onDisk(() => rmSync(path, { force: true }));
        if (++mismatches > 1) throw new FinalError("its checksum is wrong", "try again later, or another source");
        continue;
      }
      onDisk(() => renameSync(`${file}.part`, file));
      rmSync(`${file}.part.json`, { force: true });
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof FinalError) throw failed(url, error.message, error.remedy, error);
      const size = sizeOf(`${file}.part`);
      failures = size > most ? 1 : failures + 1;
      most = Math.max(most, size);
      if (failures > retries) {
        throw failed(url, reasonOf(error), "check the connection and run the same command again: it resumes", error);
      }
      await wait(Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (failures - 1)), undefined, signal ? { signal } : {});
    }
  }
}

/** An answer that trying again will not change. */
class FinalError extends Error {
  readonly remedy: string;
  readonly status: number | undefined;

  constructor(message: string, remedy: string, status?: number) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }
}

/** Runs what touches the disk: a full or forbidden disk is no reason to ask the server again. */
function onDisk<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new FinalError(messageOf(error), "check the folder's permissions and the free space");
  }
}

async function attempt(
  url: string,
  file: string,
  { onProgress, stallMs = 60_000, headers, signal }: DownloadOptions,
): Promise<void> {
  const part = `${file}.part`;
  const resume = resumeInfo(url, file);
  const stall = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stall.abort(new Error(`no data for ${stallMs / 1000} s`)), stallMs);
  };
  alive();
  try {
    const response = await fetch(url, {
      // Compressed transfer would make lengths and ranges those of another file.
      headers: {
        ...headers,
        "accept-encoding": "identity",
        ...(resume && { range: `bytes=${resume.offset}-`, "if-range": resume.validator }),
      },
      signal: signal ? AbortSignal.any([signal, stall.signal]) : stall.signal,
    });
    const { offset, total } = placeOf(response, part, resume?.offset ?? 0);
    if (offset > 0 && offset === total) return; // all of it was already there
    if (offset === 0) onDisk(() => remember(url, file, response.headers));
    let received = offset;
    const out = onDisk(() => openSync(part, offset === 0 ? "w" : "a"));
    try {
      // Written at once: what has come stays, however the connection ends.
      for await (const chunk of (response.body ?? []) as ReadableStream<Uint8Array>) {
        onDisk(() => writeFileSync(out, chunk));
        received += chunk.length;
        alive();
        onProgress?.({ received, total });
      }
    } finally {
      closeSync(out);
    }
    if (total !== undefined && received > total) {
      rmSync(part, { force: true });
      throw new Error(`${received} bytes came instead of ${total}`);
    }
    if (total !== undefined && received < total) throw new Error(`only ${received} of ${total} bytes came`);
  } finally {
    clearTimeout(timer);
  }
}

/** Where the answer's bytes belong: at the end of the part, or at the beginning when the server sends all of it. */
function placeOf(response: Response, part: string, asked: number): { offset: number; total: number | undefined } {
  const range = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  const rangeTotal = range?.[2] === undefined || range[2] === "*" ? undefined : Number(range[2]);
  if (response.status === 206 && asked > 0 && Number(range?.[1]) === asked) return { offset: asked, total: rangeTotal };
  if (response.status === 416 && rangeTotal === asked) return { offset: asked, total: asked };
  if (response.status === 206 || response.status === 416) {
    rmSync(part, { force: true }); // what we have is not a beginning of what the server has
    throw new Error(`the server cannot continue at byte ${asked}`);
  }
  if (response.ok) {
    const length = response.headers.get("content-length");
    return { offset: 0, total: length === null ? undefined : Number(length) };
  }
  const message = `the server answered ${response.status} ${response.statusText}`.trim();
  if (response.status === 408 || response.status === 429 || response.status >= 500) throw new Error(message);
  throw new FinalError(
    message,
    response.status === 404 ? "check the address" : "check the address and your access to it",
    response.status,
  );
}

function resumeInfo(url: string, file: string): { offset: number; validator: string } | undefined {
  const offset = sizeOf(`${file}.part`);
  if (offset === 0 || !existsSync(`${file}.part.json`)) return undefined;
  try {
    const info = JSON.parse(readFileSync(`${file}.part.json`, "utf8")) as Partial<PartInfo>;
    return info.url === url && info.validator ? { offset, validator: info.validator } : undefined;
  } catch {
    return undefined; // unreadable side file: start again
  }
}

/** Keeps what proves that a later answer is about the same file; weak ETags do not. */
function remember(url: string, file: string, headers: Headers): void {
  const etag = headers.get("etag");
  const validator = etag && !etag.startsWith("W/") ? etag : headers.get("last-modified");
  const info: PartInfo = { url, validator: validator ?? "" };
  writeFileSync(`${file}.part.json`, JSON.stringify(info));
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** fetch hides the reason one level down. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? cause.message || messageOf(error) : messageOf(error);
}

function failed(url: string, reason: string, remedy: string, cause: unknown): DownloadError {
  const status = cause instanceof FinalError ? cause.status : undefined;
  return new DownloadError({ what: `download failed (${reason})`, value: url, remedy, cause, status });
}

/** The checksum of a file on disk, read piece by piece. */
export async function digestOf(file: string, kind: Checksum["kind"]): Promise<string> {
  const hash = createHash(kind === "sha256" ? "sha256" : "sha1");
  if (kind === "git") hash.update(`blob ${statSync(file).size}\0`);
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}
