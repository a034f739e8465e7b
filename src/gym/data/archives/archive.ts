// What all archives have in common: entries with safe names, one limit on all that they unpack to, one kind of error.
import { type ErrorParts, QuestionLoadError } from "../../../errors.ts";

export interface ArchiveEntry {
  /** Relative, with forward slashes, inside the folder it is unpacked into. */
  readonly path: string;
  /** The file's bytes, in pieces; to be read before the next entry is asked for. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** Bytes that an archive may take on disk, those of archives inside it included; Spider has 1 GB, the dev half of BIRD 1.5 GB. */
export const MAX_UNPACKED_BYTES = 8_000_000_000;

/** Entries an archive may hold, those of archives inside it included; Spider has about 600. */
export const MAX_ENTRIES = 100_000;

/** An archive that is damaged, of an unknown kind, or dangerous to unpack. */
export function archiveError(parts: ErrorParts): QuestionLoadError {
  return new QuestionLoadError({ remedy: "download or pack it again", ...parts }, "bad_archive");
}

/** What may still be unpacked. One for an archive and all archives inside it: a limit for each would be none. */
export class UnpackBudget {
  readonly #maxBytes: number;
  #bytes = 0;
  #entries = 0;

  constructor(maxBytes: number = MAX_UNPACKED_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes unpacked so far, less those that were deleted again. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Refuses bytes that are announced; they are counted when they come. */
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

/** Characters of a path and bytes of its parts; file systems take no more. */
const [MAX_PATH_CHARACTERS, MAX_PART_BYTES] = [1_000, 255];

/** Devices of Windows: a file of such a name, with any ending, would be written to the device. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?$/i;

/** The entry's name made relative and plain; refuses names that would leave the folder, or mean something else on another system. */
export function safePath(name: string): string {
  const path = name.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "");
  const parts = path.split("/");
  const isUnsafe =
    path === "" ||
    path.startsWith("/") ||
    path.length > MAX_PATH_CHARACTERS ||
    /[\0:]/.test(path) || // drives, and streams of NTFS
    parts.some(
      (part) =>
        part === ".." || sizeOf(part) > MAX_PART_BYTES || DEVICE.test(part) || (part !== "." && /[. ]$/.test(part)),
    ); // Windows drops a last dot or space
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

/** Refuses paths that are the same twice, also for file systems that do not tell cases or forms of accents apart. */
export class SeenPaths {
  readonly #spellings = new Map<string, string>();
  readonly #files = new Set<string>();
  readonly #folders = new Set<string>();

  /** Adds a file and the folders that it is in. */
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

  /** What a path has in common with its other spellings. */
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
