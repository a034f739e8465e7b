// Any archive to a folder: the kind is told from the first bytes, not from the name.
import { closeSync, mkdirSync, openSync, readFileSync, readSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type ArchiveEntry, archiveError, MAX_UNPACKED_BYTES, tooLarge, type UnpackLimits } from "./archive.ts";
import { isTar, untar } from "./untar.ts";
import { isXz, unxz } from "./unxz.ts";
import { unzip } from "./unzip.node.ts";

export interface UnpackOptions extends UnpackLimits {
  /** Called after each file. */
  readonly onFile?: (path: string) => void;
}

/** Unpacks a .zip, .tar, .tar.gz or .tar.xz into a folder that is ours alone; returns the number of files. */
export async function unpack(
  archive: string,
  folder: string,
  { maxBytes = MAX_UNPACKED_BYTES, onFile }: UnpackOptions = {},
): Promise<number> {
  let files = 0;
  for (const { path, bytes } of entriesOf(archive, maxBytes)) {
    const target = join(folder, path);
    try {
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, bytes, { flag: "wx" });
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code;
      if (code !== "EEXIST" && code !== "ENOTDIR") throw cause;
      throw archiveError({ what: "archive holds the same path twice", value: path, cause });
    }
    files++;
    onFile?.(path);
    await new Promise((resolve) => setImmediate(resolve)); // lets Ctrl-C in
  }
  if (files === 0) throw archiveError({ what: "archive holds no files", value: archive });
  return files;
}

function entriesOf(archive: string, maxBytes: number): Iterable<ArchiveEntry> {
  const start = head(archive);
  if (start[0] === 0x50 && start[1] === 0x4b) return unzip(archive, { maxBytes });
  if (isXz(start)) return untar(unxz(readFileSync(archive), { maxBytes }));
  if (start[0] === 0x1f && start[1] === 0x8b) return untar(gunzip(archive, maxBytes));
  if (isTar(start)) return untar(readFileSync(archive));
  throw archiveError({
    what: start.length === 0 ? "archive is empty" : "not an archive of a known kind",
    value: archive,
    remedy: "use .zip, .tar, .tar.gz or .tar.xz",
  });
}

function gunzip(archive: string, maxBytes: number): Uint8Array {
  try {
    return gunzipSync(readFileSync(archive), { maxOutputLength: maxBytes });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw tooLarge(maxBytes);
    throw archiveError({ what: "the .gz file is damaged", value: archive, cause });
  }
}

function head(path: string): Uint8Array {
  const file = openSync(path, "r");
  try {
    const buffer = new Uint8Array(512);
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, 0));
  } finally {
    closeSync(file);
  }
}
