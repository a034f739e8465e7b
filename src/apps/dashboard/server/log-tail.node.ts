// Reads a growing log that another process may be writing: complete lines only, each with its byte range.
import { type FileHandle, open } from "node:fs/promises";

/** Bytes per read; small enough that parsing does not delay other requests. */
const CHUNK = 1 << 20;
/** Bytes before the current offset that are compared on every read: they differ if the log was truncated and rewritten. */
const REMEMBERED = 64;

export interface LogLine {
  readonly text: string;
  /** Byte offset, and length without the line break. */
  readonly offset: number;
  readonly length: number;
}

export class LogTail {
  readonly #path: string;
  #offset = 0;
  #remembered = Buffer.alloc(0);
  #size = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Share of the file that has been read. */
  get share(): number {
    return this.#size === 0 ? 1 : this.#offset / this.#size;
  }

  /**
   * Reads lines added since the last call, in chunks, yielding to other work in between.
   * @returns false if the file was truncated or replaced since: start over
   */
  async read(onLines: (lines: LogLine[]) => void): Promise<boolean> {
    let file: FileHandle;
    try {
      file = await open(this.#path, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      return this.#offset === 0;
    }
    try {
      const { size } = await file.stat();
      this.#size = size;
      if (size < this.#offset || !(await this.#isSame(file))) return false;
      let rest = Buffer.alloc(0); // the start of a line that continues after a chunk
      for (let at = this.#offset; at < size; ) {
        const chunk = Buffer.allocUnsafe(Math.min(CHUNK, size - at));
        const { bytesRead } = await file.read(chunk, 0, chunk.length, at);
        if (bytesRead === 0) break;
        at += bytesRead;
        const read = chunk.subarray(0, bytesRead);
        const bytes = rest.length > 0 ? Buffer.concat([rest, read]) : read;
        const { lines, length } = linesOf(bytes, this.#offset);
        this.#offset += length;
        this.#remember(bytes.subarray(0, length));
        rest = bytes.subarray(length);
        if (lines.length > 0) onLines(lines);
      }
      return true;
    } finally {
      await file.close();
    }
  }

  async #isSame(file: FileHandle): Promise<boolean> {
    const { length } = this.#remembered;
    if (length === 0) return true;
    const now = Buffer.alloc(length);
    await file.read(now, 0, length, this.#offset - length);
    return now.equals(this.#remembered);
  }

  #remember(read: Buffer): void {
    if (read.length === 0) return;
    this.#remembered = Buffer.from(Buffer.concat([this.#remembered, read.subarray(-REMEMBERED)]).subarray(-REMEMBERED));
  }
}

/** The complete lines in some bytes, and their total length. */
function linesOf(bytes: Buffer, offset: number): { readonly lines: LogLine[]; readonly length: number } {
  const lines: LogLine[] = [];
  let start = 0;
  for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
    if (end > start)
      lines.push({ text: bytes.toString("utf8", start, end), offset: offset + start, length: end - start });
    start = end + 1;
  }
  return { lines, length: start };
}
