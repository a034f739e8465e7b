// Tar archives: ustar, with the long names of pax and GNU tar.
import { type ArchiveEntry, archiveError, linkError, MAX_ENTRIES, safePath } from "./archive.ts";

const BLOCK = 512;
const decoder = new TextDecoder();

/** Whether bytes begin with a tar header. */
export function isTar(bytes: Uint8Array): boolean {
  return bytes.length >= BLOCK && decoder.decode(bytes.subarray(257, 262)) === "ustar";
}

/** The files of a tar archive, in order; their bytes are views into it. Folders are left out, links refused. */
export function* untar(archive: Uint8Array): Generator<ArchiveEntry> {
  let longName: string | undefined;
  let entries = 0;
  for (let at = 0; ; ) {
    if (at + BLOCK > archive.length) {
      if (at === archive.length && entries > 0) return; // some writers leave out the two empty blocks at the end
      throw archiveError({ what: "the tar archive ends too early", value: `${archive.length} bytes` });
    }
    const header = archive.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) return;
    checkHeader(header, at);
    const size = octal(header.subarray(124, 136), at);
    const start = at + BLOCK;
    if (start + size > archive.length) {
      throw archiveError({ what: "the tar archive ends inside a file", value: text(header, 0, 100) });
    }
    const data = archive.subarray(start, start + size);
    at = start + Math.ceil(size / BLOCK) * BLOCK;
    if (++entries > MAX_ENTRIES) throw archiveError({ what: "archive holds too many entries", value: MAX_ENTRIES });
    const type = String.fromCharCode(header[156]!);
    if (type === "L") {
      longName = text(data, 0, data.length);
      continue;
    }
    if (type === "x") {
      longName = paxPath(data) ?? longName;
      continue;
    }
    const name = longName ?? ustarName(header);
    longName = type === "g" || type === "K" ? longName : undefined;
    if (type === "1" || type === "2") throw linkError(name);
    const isFile = type === "0" || type === "\0" || type === "7";
    if (isFile && !name.endsWith("/")) yield { path: safePath(name), bytes: data };
    else if (type === "5" || isFile) safePath(name.replace(/\/+$/, "") || ".");
    else if (type !== "g" && type !== "K")
      throw archiveError({ what: "archive holds something other than files", value: name });
  }
}

/** The header's own checksum: the sum of its bytes with the checksum field taken as spaces. */
function checkHeader(header: Uint8Array, at: number): void {
  const sum = header.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0);
  if (octal(header.subarray(148, 156), at) !== sum) {
    throw archiveError({ what: "not a tar archive, or a damaged one", value: `header at byte ${at}` });
  }
}

function octal(field: Uint8Array, at: number): number {
  const digits = text(field, 0, field.length).trim();
  if (!/^[0-7]+$/.test(digits)) {
    // GNU's base-256 numbers are for files beyond 8 GB.
    throw archiveError({ what: "tar header has a number that cannot be read", value: `header at byte ${at}` });
  }
  return Number.parseInt(digits, 8);
}

function ustarName(header: Uint8Array): string {
  const name = text(header, 0, 100);
  const isPosix = text(header, 257, 263) === "ustar" && header[262] === 0; // GNU's old header uses the prefix for times
  const prefix = isPosix ? text(header, 345, 500) : "";
  return prefix ? `${prefix}/${name}` : name;
}

/** The path record of a pax header: `<length> path=<value>\n`. */
function paxPath(data: Uint8Array): string | undefined {
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(32, at);
    const length = space < 0 ? Number.NaN : Number(text(data, at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > data.length) {
      throw archiveError({ what: "tar archive has a damaged pax header" });
    }
    const record = decoder.decode(data.subarray(space + 1, at + length - 1));
    if (record.startsWith("path=")) return record.slice("path=".length);
    at += length;
  }
  return undefined;
}

/** Text up to the first NUL. */
function text(bytes: Uint8Array, start: number, end: number): string {
  const field = bytes.subarray(start, end);
  const nul = field.indexOf(0);
  return decoder.decode(nul < 0 ? field : field.subarray(0, nul));
}
