// Reads tar archives as a stream: ustar, pax (long names and sizes) and GNU tar (long names).
import { type ArchiveEntry, archiveError, linkError, safePath, type UnpackBudget } from "./archive.ts";

const BLOCK = 512;
/** Maximum bytes of a pax header or a long name, which are held in memory. */
const MAX_HEADER_BYTES = 1_000_000;
const decoder = new TextDecoder();

/** Whether bytes begin with a tar header. */
export function isTar(bytes: Uint8Array): boolean {
  return bytes.length >= BLOCK && decoder.decode(bytes.subarray(257, 262)) === "ustar";
}

/**
 * Yields the files of a tar archive, in order. Skips folders and refuses links; all bytes of the archive count towards
 * the budget.
 */
export async function* untar(archive: AsyncIterable<Uint8Array>, budget: UnpackBudget): AsyncGenerator<ArchiveEntry> {
  const input = new Pieces(archive, budget);
  try {
    yield* readEntries(input, budget);
  } finally {
    await input.close();
  }
}

async function* readEntries(input: Pieces, budget: UnpackBudget): AsyncGenerator<ArchiveEntry> {
  let pax: PaxFields = {};
  for (let entries = 0; ; entries++) {
    const at = input.position;
    const header = await input.block(entries > 0);
    if (!header || header.every((byte) => byte === 0)) return;
    budget.entry();
    checkHeader(header, at);
    const type = String.fromCharCode(header[156]!);
    const isExtension = ["L", "K", "x", "g"].includes(type);
    const size = (isExtension ? undefined : pax.size) ?? octal(header.subarray(124, 136), at);
    budget.expect(size);
    if (isExtension) {
      if (size > MAX_HEADER_BYTES)
        throw archiveError({ what: "tar archive has a header that is too long", value: size });
      const data = await input.bytes(size);
      await input.skip(padding(size));
      if (type === "L") pax = { ...pax, path: text(data, 0, data.length) };
      else if (type === "x") pax = { ...pax, ...paxFields(data) };
      else if (type === "g" && Object.keys(paxFields(data)).length > 0) {
        throw archiveError({ what: "tar archive has a pax header that gives all files one name or size" });
      }
      continue;
    }
    const name = pax.path ?? ustarName(header);
    pax = {};
    if (type === "1" || type === "2") throw linkError(name);
    const isFile = type === "0" || type === "\0" || type === "7";
    if (!isFile && type !== "5") throw archiveError({ what: "archive holds something other than files", value: name });
    if (type === "5" || name.endsWith("/")) {
      safePath(name.replace(/\/+$/, "") || ".");
      await input.skip(size);
    } else {
      const path = safePath(name);
      const end = input.position + size;
      yield { path, content: input.pieces(size, path) };
      await input.skip(end - input.position);
    }
    await input.skip(padding(size));
  }
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

/** Reads requested lengths from chunks of any length. */
class Pieces {
  position = 0;
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #budget: UnpackBudget;
  #rest: Uint8Array = new Uint8Array();

  constructor(source: AsyncIterable<Uint8Array>, budget: UnpackBudget) {
    this.#source = source[Symbol.asyncIterator]();
    this.#budget = budget;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  /** Reads up to `most` bytes; undefined at the end. */
  async #next(most: number): Promise<Uint8Array | undefined> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#source.next();
      if (done) return undefined;
      this.#budget.take(value.length);
      this.#rest = value;
    }
    const piece = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(piece.length);
    this.position += piece.length;
    return piece;
  }

  async bytes(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    let done = 0;
    for await (const piece of this.pieces(length, "a header")) {
      bytes.set(piece, done);
      done += piece.length;
    }
    return bytes;
  }

  /** Reads a header block; undefined at the end, which some writers do not mark with two empty blocks. */
  async block(mayEnd: boolean): Promise<Uint8Array | undefined> {
    const start = this.position;
    const first = await this.#next(BLOCK);
    if (!first) {
      if (mayEnd) return undefined;
      throw archiveError({ what: "the tar archive ends too early", value: `${start} bytes` });
    }
    const block = new Uint8Array(BLOCK);
    block.set(first);
    for (let done = first.length; done < BLOCK; ) {
      const piece = await this.#next(BLOCK - done);
      if (!piece) throw archiveError({ what: "the tar archive ends too early", value: `${this.position} bytes` });
      block.set(piece, done);
      done += piece.length;
    }
    return block;
  }

  async *pieces(length: number, name: string): AsyncGenerator<Uint8Array> {
    for (let left = length; left > 0; ) {
      const piece = await this.#next(left);
      if (!piece) throw archiveError({ what: "the tar archive ends inside a file", value: name });
      left -= piece.length;
      yield piece;
    }
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.pieces(length, "the last one"));
  }
}

/** Verifies a header's checksum: the sum of its bytes, with the checksum field read as spaces. */
function checkHeader(header: Uint8Array, at: number): void {
  const sum = header.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 32 : byte), 0);
  if (octal(header.subarray(148, 156), at) !== sum) {
    throw archiveError({ what: "not a tar archive, or a damaged one", value: `header at byte ${at}` });
  }
}

function octal(field: Uint8Array, at: number): number {
  const digits = text(field, 0, field.length).trim();
  if (!/^[0-7]+$/.test(digits)) {
    // GNU writes sizes above 8 GB in base 256.
    throw archiveError({ what: "tar header has a number that cannot be read", value: `header at byte ${at}` });
  }
  return Number.parseInt(digits, 8);
}

function ustarName(header: Uint8Array): string {
  const name = text(header, 0, 100);
  // GNU's old header stores times in the prefix field.
  const isPosix = text(header, 257, 263) === "ustar" && header[262] === 0;
  const prefix = isPosix ? text(header, 345, 500) : "";
  return prefix ? `${prefix}/${name}` : name;
}

interface PaxFields {
  readonly path?: string;
  /** Overrides the header's size. A reader that ignored it would find different files. */
  readonly size?: number;
}

/** Parses a pax header, which describes the next file in records `<length> <key>=<value>\n`. */
function paxFields(data: Uint8Array): PaxFields {
  let fields: PaxFields = {};
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(32, at);
    const length = space < 0 ? Number.NaN : Number(text(data, at, space));
    if (!Number.isInteger(length) || length <= space - at || at + length > data.length) {
      throw archiveError({ what: "tar archive has a damaged pax header" });
    }
    const record = decoder.decode(data.subarray(space + 1, at + length - 1));
    const equals = record.indexOf("=");
    const [key, value] = [record.slice(0, equals), record.slice(equals + 1)];
    if (key === "path") fields = { ...fields, path: value };
    if (key === "size") {
      if (!/^\d{1,15}$/.test(value))
        throw archiveError({ what: "tar archive has a damaged pax header", value: record });
      fields = { ...fields, size: Number(value) };
    }
    if (key.startsWith("GNU.sparse")) {
      throw archiveError({ what: "tar archive holds a sparse file", remedy: "pack it again without --sparse" });
    }
    at += length;
  }
  return fields;
}

/** Decodes text up to the first NUL. */
function text(bytes: Uint8Array, start: number, end: number): string {
  const field = bytes.subarray(start, end);
  const nul = field.indexOf(0);
  return decoder.decode(nul < 0 ? field : field.subarray(0, nul));
}
