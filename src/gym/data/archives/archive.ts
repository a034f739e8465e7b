// Shared by all archive readers: safe entry names, one limit on unpacked bytes, one error type.
import { type ErrorParts, QuestionLoadError } from "../../../errors.ts";

export interface ArchiveEntry {
  /** Path relative to the folder it is unpacked into, with forward slashes. */
  readonly path: string;
  /** The file's bytes, in chunks; must be read before the next entry is requested. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** Maximum size of an unpacked archive, including nested archives. Spider takes 1 GB, BIRD's dev set 1.5 GB. */
export const MAX_UNPACKED_BYTES = 8_000_000_000;

/** Maximum number of entries, including nested archives; Spider has about 600. */
export const MAX_ENTRIES = 100_000;

/** Creates the error for an archive that is damaged, of an unknown kind, or dangerous to unpack. */
export function archiveError(parts: ErrorParts): QuestionLoadError {
  return new QuestionLoadError({ remedy: "download or pack it again", ...parts }, "bad_archive");
}

/** Counts what may still be unpacked. Nested archives share one budget: with one each there would be no limit. */
export class UnpackBudget {
  readonly #maxBytes: number;
  #bytes = 0;
  #entries = 0;

  constructor(maxBytes: number = MAX_UNPACKED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes unpacked so far, minus deleted ones. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws if a declared size exceeds the budget; bytes are counted when they are unpacked. */
  expect(bytes: number): void {
    if (this.#bytes + bytes <= this.#maxBytes) return;
    throw archiveError({
      what: "archive unpacks to more than allowed",
      value: `${this.#maxBytes} bytes`,
      remedy: "if you trust it, raise the limit with --max-bytes, or unpack it yourself and import the folder",
    });
  }

  take(bytes: number): void {
    this.expect(bytes);
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }

  entry(): void {
    if (++this.#entries > MAX_ENTRIES)
      throw archiveError({ what: "archive holds too many entries", value: MAX_ENTRIES });
  }
}

/** Maximum characters of a path and bytes of each part; file systems allow no more. */
const [MAX_PATH_CHARACTERS, MAX_PART_BYTES] = [1_000, 255];

/** Windows device names: a file with such a name, whatever its extension, would be written to the device. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?$/i;

/**
 * Normalizes an entry's name to a relative path. Refuses names that escape the folder or mean something else on another
 * system.
 */
export function safePath(name: string): string {
  const path = name.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "");
  const parts = path.split("/");
  const isUnsafe =
    path === "" ||
    path.startsWith("/") ||
    path.length > MAX_PATH_CHARACTERS ||
    /[\0:]/.test(path) || // drive letters and NTFS streams
    parts.some(
      (part) =>
        part === ".." || sizeOf(part) > MAX_PART_BYTES || DEVICE.test(part) || (part !== "." && /[. ]$/.test(part)),
    ); // Windows drops a trailing dot or space
  if (isUnsafe) {
    throw archiveError({
      what: "archive holds an unsafe path",
      value: JSON.stringify(name),
      remedy: "do not use this archive",
    });
  }
  return path;
}

function sizeOf(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Refuses duplicate paths, including ones that differ only in letter case or Unicode normalization. */
export class SeenPaths {
  readonly #spellings = new Map<string, string>();
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  /** Adds a file and its parent folders. */
  file(path: string): void {
    for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) {
      const folder = this.#spell(path.slice(0, at));
      if (this.#files.has(folder)) throw twice(path);
      this.#folders.add(folder);
    }
    const key = this.#spell(path);
    if (this.#files.has(key) || this.#folders.has(key)) throw twice(path);
    this.#files.add(key);
  }

  /** A key that is the same for all spellings of a path. */
  #spell(path: string): string {
    const key = path.normalize("NFC").toLowerCase();
    const known = this.#spellings.get(key);
    if (known !== undefined && known !== path) {
      const remedy = "rename one of them and pack it again";
      throw archiveError({ what: "archive holds paths that differ only in case", value: `${known}, ${path}`, remedy });
    }
    this.#spellings.set(key, path);
    return key;
  }
}

function twice(path: string): QuestionLoadError {
  return archiveError({ what: "archive holds the same path twice", value: path });
}

/** Refuses links, which could point anywhere. */
export function linkError(name: string): QuestionLoadError {
  return archiveError({ what: "archive holds a link", value: name, remedy: "pack it again with the files themselves" });
}
