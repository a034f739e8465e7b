// Folders that several test files need and one of them makes, in a place that is removed when all tests are over.
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { built } from "./built.ts";

/** Called by vitest before the first test file and, what it returns, after the last. */
export default function setup(project: TestProject): () => void {
  built("index.node.js"); // throws where the package was not built
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-shared-"));
  project.provide("shared", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}

declare module "vitest" {
  export interface ProvidedContext {
    shared: string;
  }
}

/** Fills a new folder with a copy of what `make` writes; only the first test file of a run that asks has it made. */
export async function copyOfShared(
  name: string,
  folder: string,
  make: (folder: string) => Promise<void>,
): Promise<void> {
  const { inject } = await import("vitest"); // not while vitest itself runs the setup above
  const shared = join(inject("shared"), name);
  if (!existsSync(shared)) {
    const fresh = mkdtempSync(`${shared}-`);
    await make(fresh);
    // Two files may have made it at the same time; either is as good.
    if (existsSync(shared)) rmSync(fresh, { recursive: true });
    else renameSync(fresh, shared);
  }
  cpSync(shared, folder, { recursive: true });
}
