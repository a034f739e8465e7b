// Folders that several test files need: created once, copied for each, removed after all tests.
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { built } from "./built.ts";

/** Called by vitest before the first test file; the returned function runs after the last. */
export default function setup(project: TestProject): () => void {
  built("index.node.js"); // throws if the package is not built
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-shared-"));
  project.provide("shared", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}

declare module "vitest" {
  export interface ProvidedContext {
    shared: string;
  }
}

/** Fills a new folder with a copy of what `make` writes; `make` runs once per test run. */
export async function copyOfShared(
  name: string,
  folder: string,
  make: (folder: string) => Promise<void>,
): Promise<void> {
  const { inject } = await import("vitest"); // unavailable while vitest runs the setup above
  const shared = join(inject("shared"), name);
  if (!existsSync(shared)) {
    const fresh = mkdtempSync(`${shared}-`);
    await make(fresh);
    // Two files may have created it concurrently; the copies are equal.
    if (existsSync(shared)) rmSync(fresh, { recursive: true });
    else renameSync(fresh, shared);
  }
  cpSync(shared, folder, { recursive: true });
}
