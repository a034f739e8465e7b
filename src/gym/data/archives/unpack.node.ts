// Unpacks an archive into a folder as a stream. The first bytes tell the format, not the file name.
import { closeSync, createReadStream, mkdirSync, openSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import xz from "xz-decompress";
import { messageOf, SqlEnvError } from "../../../errors.ts";
import { writeFully } from "../../../io/atomic-write.node.ts";
import { type ArchiveEntry, archiveError, SeenPaths, UnpackBudget } from "./archive.ts";
import { isTar, untar } from "./untar.ts";
import { unzip } from "./unzip.node.ts";

export interface UnpackOptions {
  /** Shared with nested archives. @default a budget of MAX_UNPACKED_BYTES */
  readonly budget?: UnpackBudget;
  /** Called after each file. */
  readonly onFile?: (path: string) => void;
}

/** Unpacks a .zip, .tar, .tar.gz or .tar.xz into a folder that nothing else uses. Returns the number of files. */
export async function unpack(
  archive: string,
  folder: string,
  { budget = new UnpackBudget(), onFile }: UnpackOptions = {},
): Promise<number> {
  let files = 0;
  const seen = new SeenPaths();
  for await (const { path, content } of readEntries(archive, budget)) {
    seen.file(path);
    try {
      await write(join(folder, path), content);
    } catch (cause) {
      if (cause instanceof SqlEnvError) throw cause;
      const what = `the archive cannot be unpacked (${messageOf(cause)})`;
      throw archiveError({ what, value: path, remedy: "check the folder's permissions and the free space", cause });
    }
    files++;
    onFile?.(path);
  }
  if (files === 0) throw archiveError({ what: "archive holds no files", value: archive });
  return files;
}

async function write(target: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  mkdirSync(dirname(target), { recursive: true });
  const out = openSync(target, "wx");
  try {
    for await (const piece of content) {
      writeFully(out, piece);
    }
  } finally {
    closeSync(out);
  }
}

function readEntries(archive: string, budget: UnpackBudget): AsyncIterable<ArchiveEntry> {
  const start = head(archive);
  if (start[0] === 0x50 && start[1] === 0x4b) return unzip(archive, budget);
  if (XZ_MAGIC.every((byte, i) => start[i] === byte)) return untar(unxz(archive), budget);
  if (start[0] === 0x1f && start[1] === 0x8b) return untar(gunzip(archive), budget);
  if (isTar(start)) return untar(createReadStream(archive), budget);
  throw archiveError({
    what: start.length === 0 ? "archive is empty" : "not an archive of a known kind",
    value: archive,
    remedy: "use .zip, .tar, .tar.gz or .tar.xz",
  });
}

async function* gunzip(archive: string): AsyncGenerator<Uint8Array> {
  const out = pipeline(createReadStream(archive), createGunzip(), () => {}); // errors reach the loop below
  try {
    yield* out as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw archiveError({ what: `the .gz file is damaged (${messageOf(cause)})`, value: archive, cause });
  }
}

const XZ_MAGIC = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];
// Out of memory or unsupported options: other filters, SHA-256 checks, dictionaries of gigabytes.
const XZ_UNSUPPORTED = /code [36]$/;

/** Yields the decompressed bytes of an .xz file; the library verifies checks and index. */
export async function* unxz(archive: string): AsyncGenerator<Uint8Array> {
  const file = createReadStream(archive);
  const packed = Readable.toWeb(file) as ReadableStream<Uint8Array>;
  const reader = new xz.XzReadableStream(packed).getReader();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield piece.value;
  } catch (cause) {
    if (cause instanceof SqlEnvError) throw cause;
    const message = messageOf(cause);
    throw XZ_UNSUPPORTED.test(message)
      ? archiveError({
          what: "the .xz file uses something unusual",
          value: archive,
          remedy: "unpack it with `xz -d` and import the .tar",
          cause,
        })
      : archiveError({ what: "the .xz file is damaged or cut off", value: archive, cause });
  } finally {
    // A reader may stop early, but the library cannot be cancelled once it has reached the end.
    await reader.cancel().catch(() => {});
    file.destroy();
  }
}

function head(path: string): Uint8Array {
  const file = openSync(path, "r");
  try {
    const buffer = new Uint8Array(512);
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, 0));
  } finally {
    closeSync(file);
  }
}
