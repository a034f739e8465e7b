// Folder entries on disk: a rename survives a power cut only when its folder was synced.
import { closeSync, fsyncSync, openSync } from "node:fs";

/** Writes a folder's entries to the disk; a no-op on systems that do not open folders (Windows). */
export function syncFolder(folder: string): void {
  let handle: number;
  try {
    handle = openSync(folder, "r");
  } catch {
    return;
  }
  try {
    fsyncSync(handle);
  } catch (error) {
    // Some network and virtual file systems refuse this for folders; the files themselves are synced.
    if (!["EINVAL", "ENOTSUP", "EPERM", "EBADF"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  } finally {
    closeSync(handle);
  }
}
