// A file system of a few kilobytes, for tests of full disks; only root on Linux can mount one.
import { spawnSync } from "node:child_process";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "./data-files.ts";

/** A folder on a file system of this size, removed after the test; undefined if none can be mounted. */
export function smallDisk(bytes: number): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  const folder = temporaryFolder();
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", folder]);
  if (mounted.status !== 0) return undefined;
  onTestFinished(() => void spawnSync("umount", [folder]));
  return folder;
}
