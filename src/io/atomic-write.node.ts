// Atomic writes of files and folders: written to a temporary path, synced, renamed, and the rename synced too, so that
// neither a kill nor a power failure leaves a partial file.
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";

/** Replaces a file's content. */
export function writeFileWhole(path: string, data: string | Uint8Array): void {
  const aside = join(dirname(path), `.${basename(path)}.part`);
  try {
    const file = openSync(aside, "w");
    try {
      writeFully(file, typeof data === "string" ? new TextEncoder().encode(data) : data);
      sync(file);
    } finally {
      closeSync(file);
    }
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** Writes a part of the bytes at the file's position and returns how many were written; fewer than requested is not an error. */
export type WriteBytes = (file: number, bytes: Uint8Array) => number;

/** Writes all bytes: the system may write fewer at a time, as it does just before a disk is full. */
export function writeFully(file: number, bytes: Uint8Array, write: WriteBytes = writeSync): void {
  for (let done = 0; done < bytes.length; ) {
    const count = write(file, bytes.subarray(done));
    if (count <= 0) throw new Error("the file system takes no more bytes");
    done += count;
  }
}

/** Creates or replaces a folder: `fill` writes into a temporary one beside it, `aside`, which is then renamed. */
export async function writeFolderWhole(
  path: string,
  fill: (aside: string) => unknown,
  aside = join(dirname(path), `.${basename(path)}.part`),
): Promise<void> {
  const old = `${aside}.old`;
  try {
    for (const left of [aside, old]) rmSync(left, { recursive: true, force: true });
    mkdirSync(aside, { recursive: true });
    await fill(aside);
    syncTree(aside);
    if (existsSync(path)) renameSync(path, old);
    try {
      renameSync(aside, path);
    } catch (error) {
      if (existsSync(old)) renameSync(old, path);
      throw error;
    }
  } finally {
    for (const left of [aside, old]) rmSync(left, { recursive: true, force: true });
  }
  syncFolder(dirname(path));
}

/** Syncs a file's content to disk, if it exists. */
export function syncFile(path: string): void {
  if (!existsSync(path)) return;
  const file = openSync(path, "r+"); // Windows syncs only what was opened for writing
  try {
    sync(file);
  } finally {
    closeSync(file);
  }
}

/** Syncs a folder's entries to disk; a no-op on systems that cannot open folders (Windows). */
export function syncFolder(folder: string): void {
  let handle: number;
  try {
    handle = openSync(folder, "r");
  } catch {
    return;
  }
  try {
    sync(handle);
  } catch (error) {
    // Some network and virtual file systems refuse this for folders; the files themselves are synced.
    if (!["EINVAL", "ENOTSUP", "EPERM", "EBADF"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    closeSync(handle);
  }
}

/** Files first, then the folders that list them. */
function syncTree(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) syncTree(path);
    else syncFile(path);
  }
  syncFolder(folder);
}

/** Syncs an open file or folder to disk. */
export function sync(file: number): void {
  try {
    fsyncSync(file);
  } catch (error) {
    // Node's permission model has no fsync; everything but a power failure is still safe.
    if ((error as NodeJS.ErrnoException).code !== "ERR_ACCESS_DENIED") throw error;
  }
}
