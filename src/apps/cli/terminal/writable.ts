// Checks of output paths before the work whose result would be written there.
import { accessSync, closeSync, constants, existsSync, openSync, rmSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { UsageError } from "../../../errors.ts";

/** Refuses a file that cannot be written; an existing one is not changed. */
export function checkWritable(option: string, file: string): void {
  const existed = existsSync(file);
  try {
    closeSync(openSync(file, "a"));
    if (!existed) rmSync(file, { force: true });
  } catch (cause) {
    const remedy = "name a file in a folder that exists and can be written";
    throw new UsageError({ what: `cannot write ${option}`, value: file, remedy, cause });
  }
}

/** Refuses a folder that is a file, or that cannot be created. */
export function checkFolder(option: string, folder: string): void {
  let near = resolve(folder);
  while (!existsSync(near) && dirname(near) !== near) near = dirname(near);
  const refuse = (what: string, cause?: unknown) =>
    new UsageError({ what: `${option} ${what}`, value: folder, remedy: "name another folder", cause });
  if (!statSync(near).isDirectory()) throw refuse("is a file, or is below one");
  try {
    accessSync(near, constants.W_OK);
  } catch (cause) {
    throw refuse("cannot be written", cause);
  }
  if (/^\/(?:proc|sys|dev)(?:\/|$)/.test(near)) throw refuse("is not a place for files");
}
