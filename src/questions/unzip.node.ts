// Zip archives, read by their central directory, one entry at a time.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { inflateRawSync } from "node:zlib";
import {
  type ArchiveEntry,
  archiveError,
  linkError,
  MAX_ENTRIES,
  MAX_UNPACKED_BYTES,
  safePath,
  tooLarge,
  type UnpackLimits,
} from "./archive.ts";
import { crc32 } from "./crc.ts";

const END_RECORD = 0x06054b50;
const END_RECORD_BYTES = 22;
const MAX_COMMENT_BYTES = 65_535;
const CENTRAL_HEADER = 0x02014b50;
const CENTRAL_HEADER_BYTES = 46;
const LOCAL_HEADER = 0x04034b50;
const LOCAL_HEADER_BYTES = 30;
const [STORED, DEFLATED] = [0, 8];
const UNIX = 3;
const [FILE_TYPE_MASK, SYMLINK, FOLDER, PLAIN] = [0o170000, 0o120000, 0o040000, 0o100000];

interface CentralEntry {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly packedSize: number;
  readonly size: number;
  readonly localHeaderAt: number;
}

/** The files of a zip archive, in the order of its directory. Folders are left out, links refused. */
export function* unzip(path: string, { maxBytes = MAX_UNPACKED_BYTES }: UnpackLimits = {}): Generator<ArchiveEntry> {
  const file = openSync(path, "r");
  try {
    const entries = readDirectory(file);
    // The declared sizes bound what is unpacked: an entry that inflates to more is refused as damaged.
    if (entries.reduce((sum, { size }) => sum + size, 0) > maxBytes) throw tooLarge(maxBytes);
    for (const entry of entries) yield { path: safePath(entry.name), bytes: unpack(file, entry) };
  } finally {
    closeSync(file);
  }
}

function readDirectory(file: number): CentralEntry[] {
  const fileSize = fstatSync(file).size;
  const tailSize = Math.min(fileSize, END_RECORD_BYTES + MAX_COMMENT_BYTES);
  const tail = read(file, fileSize - tailSize, tailSize);
  let endAt = tail.length - END_RECORD_BYTES;
  while (endAt >= 0 && tail.readUInt32LE(endAt) !== END_RECORD) endAt--;
  if (endAt < 0) throw archiveError({ what: "not a zip archive, or one that was cut off", value: `${fileSize} bytes` });
  const count = tail.readUInt16LE(endAt + 10);
  const size = tail.readUInt32LE(endAt + 12);
  const offset = tail.readUInt32LE(endAt + 16);
  if (count === 0xffff || size === 0xffffffff || offset === 0xffffffff) throw zip64();
  if (count > MAX_ENTRIES) throw archiveError({ what: "archive holds too many entries", value: count });
  const directory = read(file, offset, size);
  const entries: CentralEntry[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + CENTRAL_HEADER_BYTES > directory.length || directory.readUInt32LE(at) !== CENTRAL_HEADER) {
      throw archiveError({ what: "the zip archive's directory is damaged", value: `entry ${i + 1} of ${count}` });
    }
    const nameEnd = at + CENTRAL_HEADER_BYTES + directory.readUInt16LE(at + 28);
    const name = directory.toString("utf8", at + CENTRAL_HEADER_BYTES, nameEnd);
    const entry = {
      name,
      method: directory.readUInt16LE(at + 10),
      crc: directory.readUInt32LE(at + 16),
      packedSize: directory.readUInt32LE(at + 20),
      size: directory.readUInt32LE(at + 24),
      localHeaderAt: directory.readUInt32LE(at + 42),
    };
    if (directory.readUInt16LE(at + 8) & 1) {
      throw archiveError({
        what: "the zip archive is encrypted",
        value: name,
        remedy: "unpack it yourself and import the folder",
      });
    }
    if ([entry.packedSize, entry.size, entry.localHeaderAt].includes(0xffffffff)) throw zip64();
    const madeBy = directory.readUInt16LE(at + 4) >> 8;
    const kind = madeBy === UNIX ? (directory.readUInt32LE(at + 38) >>> 16) & FILE_TYPE_MASK : 0;
    if (kind === SYMLINK) throw linkError(name);
    if (![0, FOLDER, PLAIN].includes(kind))
      throw archiveError({ what: "archive holds something other than files", value: name });
    if (name.endsWith("/") || kind === FOLDER) safePath(name.replace(/\/+$/, ""));
    else entries.push(entry);
    at = nameEnd + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  return entries;
}

function unpack(file: number, { name, method, crc, packedSize, size, localHeaderAt }: CentralEntry): Uint8Array {
  const local = read(file, localHeaderAt, LOCAL_HEADER_BYTES);
  if (local.readUInt32LE(0) !== LOCAL_HEADER) throw damaged(name);
  const dataAt = localHeaderAt + LOCAL_HEADER_BYTES + local.readUInt16LE(26) + local.readUInt16LE(28);
  const packed = read(file, dataAt, packedSize);
  const bytes = method === STORED ? packed : method === DEFLATED ? inflate(packed, size, name) : undefined;
  if (!bytes) {
    throw archiveError({
      what: "zip entry is packed in an unknown way",
      value: `${name}, method ${method}`,
      remedy: "pack it with plain `zip`",
    });
  }
  if (bytes.length !== size || crc32(bytes) !== crc) throw damaged(name);
  return bytes;
}

function inflate(packed: Uint8Array, size: number, name: string): Uint8Array {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(size, 1) });
  } catch (cause) {
    throw damaged(name, cause);
  }
}

function read(file: number, position: number, length: number): Buffer {
  const buffer = Buffer.alloc(Math.min(length, Math.max(0, fstatSync(file).size - position)));
  if (buffer.length < length)
    throw archiveError({ what: "the zip archive ends too early", value: `byte ${position + length}` });
  for (let done = 0; done < length; ) done += readSync(file, buffer, done, length - done, position + done);
  return buffer;
}

function damaged(name: string, cause?: unknown) {
  return archiveError({ what: "zip entry is damaged", value: name, cause });
}

function zip64() {
  return archiveError({
    what: "the zip archive is in the zip64 format, which is not read here",
    remedy: "unpack it with `unzip` and import the folder",
  });
}
