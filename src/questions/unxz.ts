// A decoder for .xz files: container, LZMA2 chunks and the LZMA algorithm, with all sizes and CRCs verified (SHA-256, which xz writes only when told to, is not).
// The format: https://tukaani.org/xz/xz-file-format.txt; the algorithm: the LZMA specification in the LZMA SDK.
import { archiveError, MAX_UNPACKED_BYTES, tooLarge, type UnpackLimits } from "./archive.ts";
import { crc32, crc64 } from "./crc.ts";
import { Lzma } from "./lzma.ts";

const HEADER_MAGIC = [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00];
const LZMA2_FILTER = 0x21;
const CHECK_SIZES = [0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64]; // by check type
const [CHECK_CRC32, CHECK_CRC64] = [1, 4];

/** Whether bytes begin as an .xz file does. */
export function isXz(bytes: Uint8Array): boolean {
  return HEADER_MAGIC.every((byte, i) => bytes[i] === byte);
}

/** Unpacks an .xz file of any number of streams and blocks. */
export function unxz(bytes: Uint8Array, { maxBytes = MAX_UNPACKED_BYTES }: UnpackLimits = {}): Uint8Array {
  const input = new Input(bytes);
  const output = new Output(maxBytes);
  readStream(input, output);
  while (!input.atEnd) {
    // Streams may follow each other, with zeros in fours between them.
    if (input.peek() === 0) {
      if (input.u32() !== 0) throw damaged("stream padding");
    } else readStream(input, output);
  }
  return output.done();
}

interface BlockSizes {
  readonly unpadded: number;
  readonly uncompressed: number;
}

function readStream(input: Input, output: Output): void {
  const magic = input.take(6);
  if (!isXz(magic)) throw archiveError({ what: "not an .xz file", remedy: "check what the file is" });
  const flags = input.take(2);
  if (input.u32() !== crc32(flags)) throw damaged("stream header");
  const check = flags[1]!;
  if (flags[0] !== 0 || check > 15) throw unsupported(`stream flags ${flags.join(" ")}`);
  const blocks: BlockSizes[] = [];
  while (input.peek() !== 0) blocks.push(readBlock(input, output, check));
  const indexSize = readIndex(input, blocks);
  const stored = input.u32();
  const rest = input.take(6);
  const backward = (new DataView(rest.buffer, rest.byteOffset).getUint32(0, true) + 1) * 4;
  const isFooter = crc32(rest) === stored && backward === indexSize && rest[4] === flags[0] && rest[5] === check;
  if (!isFooter || input.take(2).join() !== "89,90") throw damaged("stream footer");
}

function readBlock(input: Input, output: Output, check: number): BlockSizes {
  const blockStart = input.position;
  const header = new Input(input.take((input.peek() + 1) * 4));
  const body = header.bytes.subarray(0, -4);
  if (new DataView(header.bytes.buffer, header.bytes.byteOffset).getUint32(body.length, true) !== crc32(body)) {
    throw damaged("block header");
  }
  header.take(1);
  const flags = header.take(1)[0]!;
  if (flags & 0x3c) throw unsupported(`block flags ${flags}`);
  const compressed = flags & 0x40 ? header.size() : undefined;
  const uncompressed = flags & 0x80 ? header.size() : undefined;
  const filter = header.size();
  if ((flags & 3) !== 0 || filter !== LZMA2_FILTER) throw unsupported(`filter ${filter}, of ${(flags & 3) + 1}`);
  const dataStart = input.position;
  const outputStart = output.length;
  readLzma2(input, output);
  const sizes = { unpadded: 0, uncompressed: output.length - outputStart };
  const dataSize = input.position - dataStart;
  if ((compressed ?? dataSize) !== dataSize || (uncompressed ?? sizes.uncompressed) !== sizes.uncompressed) {
    throw damaged("block sizes");
  }
  const unpadded = input.position - blockStart + CHECK_SIZES[check]!;
  input.padding(input.position - blockStart);
  verify(check, input.take(CHECK_SIZES[check]!), output.since(outputStart));
  return { ...sizes, unpadded };
}

function verify(check: number, stored: Uint8Array, data: Uint8Array): void {
  const view = new DataView(stored.buffer, stored.byteOffset);
  if (check === CHECK_CRC32 && view.getUint32(0, true) !== crc32(data)) throw damaged("checksum of the data");
  if (check === CHECK_CRC64) {
    const [low, high] = crc64(data);
    if (view.getUint32(0, true) !== low || view.getUint32(4, true) !== high) throw damaged("checksum of the data");
  }
}

/** The index repeats the sizes of all blocks; returns its own size. */
function readIndex(input: Input, blocks: readonly BlockSizes[]): number {
  const start = input.position;
  input.take(1);
  if (input.size() !== blocks.length) throw damaged("index");
  for (const { unpadded, uncompressed } of blocks) {
    if (input.size() !== unpadded || input.size() !== uncompressed) throw damaged("index");
  }
  input.padding(input.position - start);
  const body = input.bytes.subarray(start, input.position);
  if (input.u32() !== crc32(body)) throw damaged("index");
  return input.position - start;
}

/** LZMA2: a row of chunks, plain or compressed, which reset the decoder's state as their control byte says. */
function readLzma2(input: Input, output: Output): void {
  const lzma = new Lzma();
  let needs: "dictionary" | "properties" | "nothing" = "dictionary";
  for (;;) {
    const control = input.take(1)[0]!;
    if (control === 0) return;
    if (control >= 0xe0 || control === 1) {
      lzma.dictionaryStart = output.length;
      needs = "properties";
    } else if (needs === "dictionary") throw damaged("first chunk");
    if (control < 0x80) {
      if (control > 2) throw damaged("chunk control byte");
      const plain = input.take(input.u16() + 1);
      output.reserve(plain.length);
      output.bytes.set(plain, output.length);
      output.length += plain.length;
      continue;
    }
    const unpackedSize = ((control & 0x1f) << 16) + input.u16() + 1;
    const packedSize = input.u16() + 1;
    if (control >= 0xc0) {
      lzma.setProperties(input.take(1)[0]!);
      needs = "nothing";
    } else if (needs !== "nothing") throw damaged("chunk without properties");
    if (control >= 0xa0) lzma.reset();
    output.reserve(unpackedSize);
    lzma.decode(input.take(packedSize), output.bytes, output.length, output.length + unpackedSize);
    output.length += unpackedSize;
  }
}

/** Bytes read in order; reading past the end is an error. */
class Input {
  readonly bytes: Uint8Array;
  position = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get atEnd(): boolean {
    return this.position === this.bytes.length;
  }

  peek(): number {
    const byte = this.bytes[this.position];
    if (byte === undefined) throw truncated();
    return byte;
  }

  take(count: number): Uint8Array {
    if (this.position + count > this.bytes.length) throw truncated();
    this.position += count;
    return this.bytes.subarray(this.position - count, this.position);
  }

  u16(): number {
    const [high, low] = this.take(2);
    return (high! << 8) | low!;
  }

  u32(): number {
    const four = this.take(4);
    return new DataView(four.buffer, four.byteOffset).getUint32(0, true);
  }

  /** A number in groups of seven bits, least significant first. */
  size(): number {
    let value = 0;
    for (let i = 0; i < 7; i++) {
      const byte = this.take(1)[0]!;
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return value;
    }
    throw damaged("size"); // more than 2^49 bytes
  }

  /** Zeros up to a multiple of four of what came before. */
  padding(length: number): void {
    if (this.take((4 - (length % 4)) % 4).some((byte) => byte !== 0)) throw damaged("padding");
  }
}

/** Bytes written in order; grows up to a limit. */
class Output {
  bytes = new Uint8Array(1 << 16);
  length = 0;
  readonly #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  reserve(count: number): void {
    const needed = this.length + count;
    if (needed > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, Math.min(this.bytes.length * 2, this.#maxBytes)));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }

  since(start: number): Uint8Array {
    return this.bytes.subarray(start, this.length);
  }

  done(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }
}

function damaged(where: string) {
  return archiveError({ what: "the .xz file is damaged", value: where });
}

function truncated() {
  return archiveError({ what: "the .xz file ends too early" });
}

function unsupported(value: string) {
  return archiveError({ what: "the .xz file uses something unusual", value, remedy: "pack it with plain `xz`" });
}
