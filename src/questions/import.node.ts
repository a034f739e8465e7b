// Data sets brought in from a folder, an archive or a URL; they appear under their name whole or not at all.
import { cpSync, existsSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type DownloadOptions, download } from "../download.node.ts";
import { QuestionLoadError, UsageError } from "../errors.ts";
import { linkError, UnpackBudget } from "./archive.ts";
import type { Layout } from "./dataset.ts";
import { findLayout } from "./layout.node.ts";
import { dataSetsFolder } from "./open.node.ts";
import { unpack } from "./unpack.node.ts";

export interface ImportOptions extends DownloadOptions {
  /** @default the source's name without its ending */
  readonly name?: string | undefined;
  /** Bytes that an archive may take on disk, archives inside it included. @default MAX_UNPACKED_BYTES */
  readonly maxBytes?: number | undefined;
  /** Replaces an imported set of the same name. @default false */
  readonly replace?: boolean;
  /** What is being done now, for people. */
  readonly onStage?: (text: string) => void;
}

export interface ImportedDataSet {
  readonly name: string;
  readonly path: string;
  readonly layout: Layout;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Imports a folder, .zip, .tar, .tar.gz, .tar.xz, or a URL to one, into `into` under a name; `openDataSet(name)` finds it there. */
export async function importDataSet(
  source: string,
  into: string = dataSetsFolder(),
  options: ImportOptions = {},
): Promise<ImportedDataSet> {
  const name = options.name ?? nameOf(source);
  if (!NAME.test(name) || name === "bundled") {
    throw new UsageError({
      what: "not a name for a data set",
      value: name,
      remedy: "use letters, digits, dots, dashes; give one with --name",
    });
  }
  const target = join(into, name);
  if (existsSync(target) && !options.replace) {
    throw new QuestionLoadError({
      what: "a data set of this name is already imported",
      value: name,
      remedy: "choose another with --name, or --replace it",
    });
  }
  mkdirSync(into, { recursive: true });
  // In the same folder, so that the final rename cannot cross file systems; the dot keeps it out of listings.
  const aside = mkdtempSync(join(into, `.import-${name}-`));
  const clean = () => rmSync(aside, { recursive: true, force: true });
  process.once("exit", clean); // also when interrupted
  try {
    await bring(source, join(aside, "new"), into, options);
    const { layout, root } = findLayout(join(aside, "new"));
    if (existsSync(target)) renameSync(target, join(aside, "old"));
    try {
      renameSync(root, target);
    } catch (error) {
      if (existsSync(join(aside, "old"))) renameSync(join(aside, "old"), target);
      throw error;
    }
    return { name, path: target, layout };
  } finally {
    clean();
    process.removeListener("exit", clean);
  }
}

async function bring(source: string, folder: string, into: string, options: ImportOptions): Promise<void> {
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(source)) {
    if (!/^https?:/i.test(source)) {
      throw new UsageError({ what: "cannot download from this address", value: source, remedy: "use http or https" });
    }
    // Kept beside the data sets, not in the folder that is cleaned up: a broken download can then be resumed.
    const file = join(into, `.download-${nameOf(source)}`);
    options.onStage?.(`downloading ${source}`);
    await download(source, file, options);
    options.onStage?.("unpacking");
    try {
      await unpackAll(file, folder, options.maxBytes);
    } finally {
      rmSync(file, { force: true });
    }
    return;
  }
  const stats = statSync(source, { throwIfNoEntry: false });
  if (!stats) throw new QuestionLoadError({ what: "nothing to import", value: source, remedy: "check the path" });
  if (stats.isDirectory()) {
    options.onStage?.(`copying ${source}`);
    copy(findLayout(source).root, folder);
  } else {
    options.onStage?.(`unpacking ${source}`);
    await unpackAll(source, folder, options.maxBytes);
  }
}

/** Unpacks an archive, and BIRD's archives of databases inside it, all within one limit. */
async function unpackAll(archive: string, folder: string, maxBytes: number | undefined): Promise<void> {
  const budget = new UnpackBudget(maxBytes);
  let inner: string[] = [];
  await unpack(archive, folder, {
    budget,
    onFile: (path) => {
      if (/(?:^|\/)(?:train|dev)_databases\.zip$/.test(path) && !path.startsWith("__MACOSX/"))
        inner.push(join(folder, path));
    },
  });
  inner = inner.filter((path) => !existsSync(path.slice(0, -".zip".length)));
  for (const path of inner) {
    await unpack(path, `${path}-unpacked`, { budget });
    const databases = basename(path, ".zip");
    const packed = join(`${path}-unpacked`, databases);
    renameSync(existsSync(packed) ? packed : `${path}-unpacked`, join(dirname(path), databases));
    rmSync(`${path}-unpacked`, { recursive: true, force: true });
    budget.release(statSync(path).size);
    rmSync(path);
  }
}

function copy(from: string, to: string): void {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => {
      if (lstatSync(path).isSymbolicLink()) throw linkError(path);
      return true;
    },
  });
}

/** The last part of a path or URL without query and archive ending. */
export function nameOf(source: string): string {
  const path = /^https?:/i.test(source) ? decodeURI(new URL(source).pathname) : resolve(source);
  return basename(path).replace(/\.(?:zip|tar|tgz|txz|tar\.gz|tar\.xz)$/i, "");
}
