// Reads zip archives with yauzl, one entry at a time; names, types and checksums are checked here.
import type { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import { type Entry, getFileNameLowLevel, openPromise, type ZipFile } from "yauzl";
import { messageOf, SqlEnvError } from "../../../errors.ts";
import { type ArchiveEntry, archiveError, linkError, safePath, type UnpackBudget } from "./archive.ts";

const [STORED, DEFLATED] = [0, 8];
const [UNIX, MACOS] = [3, 19]; // systems whose external attributes hold the file type
const [FILE_TYPE_MASK, SYMLINK, FOLDER, PLAIN] = [0o170000, 0o120000, 0o040000, 0o100000];

/** Yields the files of a zip archive, in the order of its directory. Skips folders and refuses links. */
export async function* unzip(path: string, budget: UnpackBudget): AsyncGenerator<ArchiveEntry> {
  // Strings are decoded here: yauzl would refuse unsafe names with its own errors.
  const zip = await openPromise(path, { lazyEntries: true, autoClose: false, decodeStrings: false }).catch(
    damaged(path),
  );
  try {
    for await (const entry of readEntries(zip, path)) {
      budget.entry();
      const name = nameOf(entry);
      if (!isFile(entry, name)) continue;
      const path = safePath(name);
      budget.expect(entry.uncompressedSize);
      yield { path, content: contentOf(zip, entry, name, budget) };
    }
  } finally {
    zip.close();
  }
}

async function* readEntries(zip: ZipFile, path: string): AsyncGenerator<Entry> {
  try {
    yield* zip.eachEntry();
  } catch (error) {
    throw damagedBy(path, error);
  }
}

/** Decodes a name as UTF-8 if valid, since many programs write it without setting the flag; otherwise as declared. */
function nameOf({ generalPurposeBitFlag, fileNameRaw, extraFields }: Entry): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(fileNameRaw);
  } catch {
    return getFileNameLowLevel(generalPurposeBitFlag, fileNameRaw, extraFields, true);
  }
}

function isFile(entry: Entry, name: string): boolean {
  if (entry.isEncrypted()) {
    const remedy = "unpack it yourself and import the folder";
    throw archiveError({ what: "the zip archive is encrypted", value: name, remedy });
  }
  const madeBy = entry.versionMadeBy >>> 8;
  const kind = madeBy === UNIX || madeBy === MACOS ? (entry.externalFileAttributes >>> 16) & FILE_TYPE_MASK : 0;
  if (kind === SYMLINK) throw linkError(name);
  if (![0, FOLDER, PLAIN].includes(kind))
    throw archiveError({ what: "archive holds something other than files", value: name });
  if (!name.endsWith("/") && kind !== FOLDER) return true;
  safePath(name.replace(/\/+$/, ""));
  return false;
}

async function* contentOf(zip: ZipFile, entry: Entry, name: string, budget: UnpackBudget): AsyncGenerator<Uint8Array> {
  if (entry.compressionMethod !== STORED && entry.compressionMethod !== DEFLATED) {
    throw archiveError({
      what: "zip entry is packed in an unknown way",
      value: `${name}, method ${entry.compressionMethod}`,
      remedy: "pack it with plain `zip`",
    });
  }
  let sum = 0;
  try {
    const stream: Readable = await zip.openReadStreamPromise(entry);
    // yauzl checks the inflated size, but not the checksum.
    for await (const piece of stream as AsyncIterable<Uint8Array>) {
      budget.take(piece.length);
      sum = crc32(piece, sum);
      yield piece;
    }
  } catch (error) {
    if (error instanceof SqlEnvError) throw error;
    throw archiveError({ what: `zip entry is damaged (${messageOf(error)})`, value: name, cause: error });
  }
  if (sum !== entry.crc32) throw archiveError({ what: "zip entry is damaged (wrong checksum)", value: name });
}

function damaged(path: string): (error: unknown) => never {
  return (error) => {
    throw damagedBy(path, error);
  };
}

function damagedBy(path: string, error: unknown) {
  const what = `not a zip archive, or one that is damaged or cut off (${messageOf(error)})`;
  return archiveError({ what, value: path, cause: error });
}
