// What all archives have in common: entries with safe names, a limit on what they may unpack to, one kind of error.
import { type ErrorParts, QuestionLoadError } from "../errors.ts";

export interface ArchiveEntry {
  /** Relative, with forward slashes, inside the folder it is unpacked into. */
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Bytes an archive may unpack to, against archives made to fill a disk; Spider has 1 GB, the dev half of BIRD 1.5 GB. */
export const MAX_UNPACKED_BYTES = 4 * 1024 ** 3;

/** Entries an archive may hold; Spider has about 600. */
export const MAX_ENTRIES = 100_000;

/** An archive that is damaged, of an unknown kind, or dangerous to unpack. */
export function archiveError(parts: ErrorParts): QuestionLoadError {
  return new QuestionLoadError({ remedy: "download or pack it again", ...parts }, "bad_archive");
}

export interface UnpackLimits {
  /** @default MAX_UNPACKED_BYTES */
  readonly maxBytes?: number;
}

/** The error for an archive that unpacks to more than it may. */
export function tooLarge(maxBytes: number): QuestionLoadError {
  return archiveError({
    what: "archive unpacks to more than allowed",
    value: `${maxBytes} bytes`,
    remedy: "unpack it yourself if you trust it, and import the folder",
  });
}

/** The entry's name made relative and plain; refuses names that would leave the folder it is unpacked into. */
export function safePath(name: string): string {
  const path = name.replaceAll("\\", "/").replace(/^(?:\.\/)+/, "");
  const isUnsafe =
    path === "" ||
    path.startsWith("/") ||
    /^[A-Za-z]:/.test(path) ||
    path.includes("\0") ||
    path.split("/").includes("..");
  if (isUnsafe) {
    throw archiveError({
      what: "archive holds an unsafe path",
      value: JSON.stringify(name),
      remedy: "do not use this archive",
    });
  }
  return path;
}

/** Refuses links, which could point anywhere. */
export function linkError(name: string): QuestionLoadError {
  return archiveError({ what: "archive holds a link", value: name, remedy: "pack it again with the files themselves" });
}
