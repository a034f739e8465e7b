// Downloads a file: resumed after a broken connection, and never half-written under its final name.
import { createHash } from "node:crypto";
import { closeSync, createReadStream, fsyncSync, openSync, renameSync, statSync, writeFileSync } from "node:fs";
import type { ReadableStream } from "node:stream/web";
import { setTimeout as wait } from "node:timers/promises";
import { DownloadError, messageOf } from "../errors.ts";
import { follow, RedirectError } from "./download/follow.node.ts";
import { Part } from "./download/part.node.ts";

/** Largest file, whether the server declares its size or not; the largest files of published models have 50 GB. */
export const MAX_DOWNLOAD_BYTES = 100_000_000_000;

export interface DownloadProgress {
  readonly received: number;
  /** Undefined if the server does not say. */
  readonly total: number | undefined;
}

export interface DownloadOptions {
  readonly onProgress?: (progress: DownloadProgress) => void;
  /** Retries; the count restarts when an attempt got further than all before. @default 5 */
  readonly retries?: number;
  /** Pause before the first retry; doubles each time. @default 500 */
  readonly backoffMs?: number;
  /** Timeout of a connection without data. @default 60000 */
  readonly stallMs?: number;
  /** Sent with each request; `authorization` is not sent to another host after a redirect. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A larger file is refused. @default MAX_DOWNLOAD_BYTES */
  readonly maxBytes?: number | undefined;
  /** Path of the unfinished download, a folder `PATH.part`. @default beside the file */
  readonly part?: string | undefined;
  /** Expected checksum; a file with another one is downloaded once more from its beginning, then refused. */
  readonly checksum?: Checksum | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A file's SHA-256, or its SHA-1 as git names blobs. */
export interface Checksum {
  readonly kind: "sha256" | "git";
  readonly hex: string;
}

const MAX_BACKOFF_MS = 30_000;

/**
 * Downloads to `file` through `file.part`; a later call with the same URL resumes an unfinished part. Processes that
 * download the same file at the same time do not interfere.
 */
export async function download(url: string, file: string, options: DownloadOptions = {}): Promise<void> {
  const part = onDiskFor(url, () => new Part(options.part ?? file));
  try {
    await fetchInto(part, url, options);
    onDiskFor(url, () => renameSync(part.data, file));
    part.remove();
  } catch (error) {
    part.release();
    throw error;
  }
}

async function fetchInto(part: Part, url: string, options: DownloadOptions): Promise<void> {
  const { retries = 5, backoffMs = 500, checksum, signal } = options;
  let failures = 0;
  let mismatches = 0;
  let most = part.size;
  for (;;) {
    try {
      await attempt(url, part, options);
      if (!checksum || (await hashFile(part.data, checksum.kind)) === checksum.hex) return;
      onDisk(() => part.clear());
      if (++mismatches > 1) throw new FinalError("its checksum is wrong", "try again later, or another source");
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof FinalError) throw failed(url, error.message, error.remedy, error);
      if (error instanceof RedirectError)
        throw failed(url, error.message, "use the address it leads to, if you trust it", error);
      failures = part.size > most ? 1 : failures + 1;
      most = Math.max(most, part.size);
      if (failures > retries) {
        throw failed(url, reasonOf(error), "check the connection and run the same command again: it resumes", error);
      }
      await wait(Math.min(MAX_BACKOFF_MS, backoffMs * 2 ** (failures - 1)), undefined, signal ? { signal } : {});
    }
  }
}

/** An error that a retry would not change. */
class FinalError extends Error {
  readonly remedy: string;
  readonly status: number | undefined;

  constructor(message: string, remedy: string, status?: number) {
    super(message);
    this.remedy = remedy;
    this.status = status;
  }
}

/** Runs disk operations: their errors are not retried. */
function onDisk<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new FinalError(messageOf(error), "check the folder's permissions and the free space");
  }
}

function onDiskFor<T>(url: string, action: () => T): T {
  try {
    return onDisk(action);
  } catch (error) {
    if (error instanceof FinalError) throw failed(url, error.message, error.remedy, error);
    throw error;
  }
}

async function attempt(
  url: string,
  part: Part,
  { onProgress, stallMs = 60_000, headers, signal, maxBytes = MAX_DOWNLOAD_BYTES }: DownloadOptions,
): Promise<void> {
  const resume = resumeInfo(url, part);
  const stall = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => stall.abort(new Error(`no data for ${stallMs / 1000} s`)), stallMs);
  };
  alive();
  try {
    const response = await follow(
      url,
      // With compression, lengths and ranges would be those of other bytes.
      {
        ...headers,
        "accept-encoding": "identity",
        ...(resume && { range: `bytes=${resume.offset}-`, "if-range": resume.validator }),
      },
      signal ? AbortSignal.any([signal, stall.signal]) : stall.signal,
    );
    const { offset, total } = writeOffset(response, part, resume);
    if (offset > 0 && offset === total) return; // the part is complete
    if (total !== undefined && total > maxBytes) {
      await response.body?.cancel();
      throw tooLarge(maxBytes, total);
    }
    if (offset === 0) onDisk(() => remember(url, part, response.headers));
    let received = offset;
    const out = onDisk(() => openSync(part.data, offset === 0 ? "w" : "a"));
    try {
      // Written immediately, so that received bytes are kept however the connection ends.
      for await (const chunk of (response.body ?? []) as ReadableStream<Uint8Array>) {
        if (received + chunk.length > maxBytes) {
          part.clear(); // useless to a later call
          throw tooLarge(maxBytes);
        }
        onDisk(() => writeFileSync(out, chunk));
        received += chunk.length;
        alive();
        onProgress?.({ received, total });
      }
      onDisk(() => fsyncSync(out));
    } finally {
      closeSync(out);
    }
    if (total !== undefined && received > total) {
      part.clear();
      throw new Error(`${received} bytes came instead of ${total}`);
    }
    if (total !== undefined && received < total) throw new Error(`only ${received} of ${total} bytes came`);
  } finally {
    clearTimeout(timer);
  }
}

function tooLarge(maxBytes: number, total?: number): FinalError {
  const size = total === undefined ? `more than ${maxBytes} bytes came` : `it has ${total} bytes`;
  return new FinalError(`${size}, and ${maxBytes} are allowed`, "raise the limit if you trust the source");
}

/** Where the response is written: at the end of the part, or at its beginning when the server sends the whole file. */
function writeOffset(
  response: Response,
  part: Part,
  resume: ResumeInfo | undefined,
): { offset: number; total: number | undefined } {
  const asked = resume?.offset ?? 0;
  const range = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "");
  const rangeTotal = range?.[2] === undefined || range[2] === "*" ? undefined : Number(range[2]);
  const continues = response.status === 206 && asked > 0 && Number(range?.[1]) === asked;
  // A server or cache that ignores If-Range may continue another version of the file.
  if (continues && isSameFile(resume!.validator, response.headers)) return { offset: asked, total: rangeTotal };
  if (response.status === 416 && rangeTotal === asked) return { offset: asked, total: asked };
  if (response.status === 206 || response.status === 416) {
    part.clear(); // the part is not a prefix of the server's file
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

interface ResumeInfo {
  readonly offset: number;
  readonly validator: string;
}

/** Whether a response is about the same version of the file as the part; one without a validator is trusted. */
function isSameFile(validator: string, headers: Headers): boolean {
  const now = validator.startsWith('"') ? headers.get("etag") : headers.get("last-modified");
  return now === null || now === validator;
}

function resumeInfo(url: string, part: Part): ResumeInfo | undefined {
  const { size: offset, info } = part;
  return offset > 0 && info?.url === url && info.validator ? { offset, validator: info.validator } : undefined;
}

/** Saves the validator with which later responses are compared; weak ETags are not used. */
function remember(url: string, part: Part, headers: Headers): void {
  const etag = headers.get("etag");
  const validator = etag && !etag.startsWith("W/") ? etag : headers.get("last-modified");
  part.info = { url, validator: validator ?? "" };
}

/** fetch has the reason in `cause`. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? cause.message || messageOf(error) : messageOf(error);
}

function failed(url: string, reason: string, remedy: string, cause: unknown): DownloadError {
  const status = cause instanceof FinalError ? cause.status : undefined;
  return new DownloadError({ what: `download failed (${reason})`, value: url, remedy, cause, status });
}

/** Computes the checksum of a file on disk, in chunks. */
export async function hashFile(file: string, kind: Checksum["kind"]): Promise<string> {
  const hash = createHash(kind === "sha256" ? "sha256" : "sha1");
  if (kind === "git") hash.update(`blob ${statSync(file).size}\0`);
  for await (const chunk of createReadStream(file)) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

/** @deprecated use `hashFile` */
export { hashFile as digestOf };
