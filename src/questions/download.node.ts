// A file from a URL, resumed where a broken connection left off, never left half-written under its own name.
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import type { ReadableStream } from "node:stream/web";
import { setTimeout as wait } from "node:timers/promises";
import { messageOf, QuestionLoadError } from "../errors.ts";

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
  readonly signal?: AbortSignal;
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
  const { retries = 5, backoffMs = 500, signal } = options;
  let failures = 0;
  let most = sizeOf(`${file}.part`);
  for (;;) {
    try {
      await attempt(url, file, options);
      renameSync(`${file}.part`, file);
      rmSync(`${file}.part.json`, { force: true });
      return;
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof FinalError) throw failed(url, messageOf(error.cause ?? error), error.remedy, error);
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

  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}

async function attempt(
  url: string,
  file: string,
  { onProgress, stallMs = 60_000, signal }: DownloadOptions,
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
        "accept-encoding": "identity",
        ...(resume && { range: `bytes=${resume.offset}-`, "if-range": resume.validator }),
      },
      signal: signal ? AbortSignal.any([signal, stall.signal]) : stall.signal,
    });
    const { offset, total } = placeOf(response, part, resume?.offset ?? 0);
    if (offset === total) return; // all of it was already there
    if (!response.body) throw new Error("the answer has no body");
    if (offset === 0) remember(url, file, response.headers);
    let received = offset;
    const out = openSync(part, offset === 0 ? "w" : "a");
    try {
      // Written at once: what has come stays, however the connection ends.
      for await (const chunk of response.body as ReadableStream<Uint8Array>) {
        writeFileSync(out, chunk);
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

function failed(url: string, reason: string, remedy: string, cause: unknown): QuestionLoadError {
  return new QuestionLoadError({ what: `download failed (${reason})`, value: url, remedy, cause }, "download");
}
