// Imports a data set from a folder, an archive or a URL. It appears under its name only when complete.
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { QuestionLoadError, UsageError } from "../../../errors.ts";
import { type DownloadOptions, download, hashFile } from "../../../io/download.node.ts";
import { hasEnded, processName } from "../../../io/process.node.ts";
import { archiveError, linkError, MAX_UNPACKED_BYTES, UnpackBudget } from "../archives/archive.ts";
import { unpack } from "../archives/unpack.node.ts";
import type { Layout } from "../dataset.ts";
import { findLayout } from "./layout.node.ts";
import { dataSetsFolder, isDatabase, NO_QUESTIONS } from "./open.node.ts";

export interface ImportOptions extends Omit<DownloadOptions, "checksum" | "part"> {
  /** @default the source's name without its extension */
  readonly name?: string | undefined;
  /** Maximum size of the unpacked archive, in bytes, including nested archives. @default MAX_UNPACKED_BYTES */
  readonly maxBytes?: number | undefined;
  /** Expected SHA-256 of the archive, in hexadecimal; any other archive is refused before unpacking. */
  readonly sha256?: string | undefined;
  /** Replaces an imported set of the same name. @default false */
  readonly replace?: boolean;
  /** Called with a progress message for people. */
  readonly onStage?: (text: string) => void;
}

export interface ImportedDataSet {
  readonly name: string;
  readonly path: string;
  readonly layout: Layout;
  /** SHA-256 of the archive; undefined for a folder. */
  readonly sha256?: string | undefined;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/**
 * Imports a folder, a .zip, .tar, .tar.gz or .tar.xz, or a URL of one, into the folder `into`; `openDataSet(name)`
 * finds it there.
 *
 * @example
 * await importDataSet("spider_data.zip", undefined, { name: "spider" });
 * const spider = await openDataSet("spider");
 */
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
  const taken = () =>
    new QuestionLoadError({
      what: "a data set of this name is already imported",
      value: name,
      remedy: "choose another with --name, or --replace it",
    });
  if (existsSync(target) && !options.replace) throw taken();
  if (options.sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(options.sha256)) {
    const remedy = "give 64 hexadecimal digits";
    throw new UsageError({ what: "not a SHA-256", value: options.sha256, remedy });
  }
  mkdirSync(into, { recursive: true });
  removeAbandoned(into);
  // Created in the same folder, so that the final rename stays on one file system; the dot hides it from listings.
  const aside = mkdtempSync(join(into, `${ASIDE}${processName()}~`));
  const clean = () => rmSync(aside, { recursive: true, force: true });
  process.once("exit", clean); // also runs on interruption
  try {
    const sha256 = await bring(source, aside, join(into, `.download-${name}`), options);
    const { layout, root } = findLayout(join(aside, "new"));
    if (options.replace && existsSync(target)) renameSync(target, join(aside, "old"));
    try {
      renameSync(root, target);
    } catch (error) {
      if (!options.replace && existsSync(target)) throw taken(); // another process may have created it
      if (existsSync(join(aside, "old"))) renameSync(join(aside, "old"), target);
      throw error;
    }
    return { name, path: target, layout, ...(sha256 && { sha256 }) };
  } catch (error) {
    throw withoutFolder(error, aside, source);
  } finally {
    clean();
    process.removeListener("exit", clean);
  }
}

/** Puts the source's path into the error: the temporary folder is gone when a person reads it. */
function withoutFolder(error: unknown, aside: string, source: string): unknown {
  if (!(error instanceof QuestionLoadError) || !error.message.includes(aside)) return error;
  const { what, value, remedy, code, cause } = error;
  const named = (text: string) =>
    text
      .replaceAll(join(aside, "archive"), source)
      .replaceAll(join(aside, "new", "/"), "")
      .replaceAll(join(aside, "new"), source);
  return new QuestionLoadError(
    { what: named(what), value: value && named(value), remedy: remedy && named(remedy), cause },
    code,
  );
}

/**
 * Copies or unpacks the source into `aside/new` and returns an archive's SHA-256. An unfinished download stays at
 * `part`, so that it can be resumed.
 */
async function bring(source: string, aside: string, part: string, options: ImportOptions): Promise<string | undefined> {
  const folder = join(aside, "new");
  const { maxBytes = MAX_UNPACKED_BYTES, onStage } = options;
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(source)) {
    if (!/^https?:/i.test(source)) {
      throw new UsageError({ what: "cannot download from this address", value: source, remedy: "use http or https" });
    }
    const file = join(aside, "archive");
    onStage?.(`downloading ${source}`);
    await download(source, file, { ...options, maxBytes, part });
    onStage?.("unpacking");
    const sha256 = await checked(file, source, options.sha256);
    await unpackAll(file, folder, maxBytes);
    return sha256;
  }
  const stats = statSync(source, { throwIfNoEntry: false });
  if (!stats) throw new QuestionLoadError({ what: "no such file or folder", value: source, remedy: "check the path" });
  if (stats.isFile() && isDatabase(source))
    throw new QuestionLoadError({ what: "not a data set", value: source, remedy: NO_QUESTIONS });
  if (stats.isDirectory()) {
    if (options.sha256 !== undefined) {
      throw new UsageError({ what: "a folder has no SHA-256", value: source, remedy: "leave out --sha256" });
    }
    onStage?.(`copying ${source}`);
    copy(findLayout(source).root, folder);
    return undefined;
  }
  onStage?.(`unpacking ${source}`);
  const sha256 = await checked(source, source, options.sha256);
  await unpackAll(source, folder, maxBytes);
  return sha256;
}

/** Compares an archive's SHA-256 with the expected one before anything is unpacked. */
async function checked(file: string, source: string, expected: string | undefined): Promise<string> {
  const sha256 = await hashFile(file, "sha256");
  if (expected === undefined || expected.toLowerCase() === sha256) return sha256;
  throw archiveError({
    what: `the archive's SHA-256 is ${sha256}, not what --sha256 says`,
    value: source,
    remedy: "do not use it unless you know why",
  });
}

const ASIDE = ".import-";
const DAY_MS = 86_400_000;

/** Removes what killed imports left: folders whose process is gone, or that are a day old. */
function removeAbandoned(into: string): void {
  for (const name of readdirSync(into).filter((name) => name.startsWith(ASIDE))) {
    const path = join(into, name);
    const age = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
    if (hasEnded(name.slice(ASIDE.length, name.lastIndexOf("~"))) || age > DAY_MS) {
      rmSync(path, { recursive: true, force: true });
    }
  }
}

/** Unpacks an archive and, for BIRD, the archives of databases inside it, all within one limit. */
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

/** The last part of a path or URL, without the query and the archive extension. */
export function nameOf(source: string): string {
  const path = /^https?:/i.test(source) ? decodeURI(new URL(source).pathname) : resolve(source);
  return basename(path).replace(/\.(?:zip|tar|tgz|txz|tar\.gz|tar\.xz)$/i, "");
}
