// Small tar archives, as servers send a PEFT folder: plain files, read by name and written in order.

const BLOCK = 512;
/** Maximum bytes of an unpacked archive. Adapters of large models are smaller. */
export const MAX_ARCHIVE_BYTES = 4 * 2 ** 30;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The files of a .tar or .tar.gz by their names, without folders. Throws RangeError if it is damaged. */
export async function readTarGz(archive: Uint8Array): Promise<Map<string, Uint8Array>> {
  const isGzip = archive[0] === 0x1f && archive[1] === 0x8b;
  return readTar(isGzip ? await piped(archive, new DecompressionStream("gzip")) : archive);
}

/** A .tar.gz of some files. */
export function writeTarGz(files: Iterable<readonly [name: string, data: Uint8Array]>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (const [name, data] of files)
    parts.push(header(name, data.length), data, new Uint8Array(-data.length & (BLOCK - 1)));
  parts.push(new Uint8Array(2 * BLOCK));
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return piped(all, new CompressionStream("gzip"));
}

function readTar(bytes: Uint8Array): Map<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  for (let at = 0; at + BLOCK <= bytes.length; ) {
    const block = bytes.subarray(at, at + BLOCK);
    if (block.every((byte) => byte === 0)) break;
    const name = text(block, 0, 100);
    const size = Number.parseInt(text(block, 124, 12).trim() || "0", 8);
    const type = String.fromCharCode(block[156]!);
    const from = at + BLOCK;
    if (!Number.isSafeInteger(size) || size < 0 || from + size > bytes.length)
      throw new RangeError("a file is cut off");
    const base = name.split("/").at(-1)!;
    if ((type === "0" || type === "\0") && base) files.set(base, bytes.subarray(from, from + size));
    at = from + Math.ceil(size / BLOCK) * BLOCK;
  }
  return files;
}

function header(name: string, size: number): Uint8Array {
  const block = new Uint8Array(BLOCK);
  const put = (value: string, at: number) => block.set(encoder.encode(value), at);
  put(name, 0);
  put("0000644\0", 100);
  put("0000000\0", 108);
  put("0000000\0", 116);
  put(`${size.toString(8).padStart(11, "0")}\0`, 124);
  put("00000000000\0", 136);
  put("        0ustar\x0000", 148);
  const sum = block.reduce((total, byte) => total + byte, 0);
  put(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function text(block: Uint8Array, from: number, length: number): string {
  const part = block.subarray(from, from + length);
  const end = part.indexOf(0);
  return decoder.decode(end < 0 ? part : part.subarray(0, end));
}

async function piped(bytes: Uint8Array, through: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(through);
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > MAX_ARCHIVE_BYTES) throw new RangeError("the archive is too large");
    chunks.push(value);
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}
