// The unfinished part of a download, a folder that one process uses at a time: `FILE.part` while unused, `FILE.part-PROCESS`
// while in use. A process claims it by a rename, which only one can win.
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { hasEnded, processName } from "../process.node.ts";

/** Facts about the server's file that must match to resume. */
export interface PartInfo {
  readonly url: string;
  /** A strong ETag or the Last-Modified date, sent as If-Range. */
  readonly validator: string;
}

const HOUR_MS = 3_600_000;
let calls = 0;

/** A file's part, held by this process until it is released or removed. */
export class Part {
  readonly #rest: string;
  readonly #folder: string;

  /** Claims the part of an earlier call, or begins a new one. */
  constructor(file: string) {
    this.#rest = `${file}.part`;
    this.#folder = `${this.#rest}-${processName()}.${++calls}`;
    for (const left of [this.#rest, ...abandoned(this.#rest)]) {
      if (lstatSync(left, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(left, { force: true });
      try {
        renameSync(left, this.#folder);
        return;
      } catch {
        // there is none, or another process was faster
      }
    }
    mkdirSync(this.#folder);
  }

  get data(): string {
    return join(this.#folder, "data");
  }

  get size(): number {
    return statSync(this.data, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Undefined when there is none, or it cannot be read: then the file is downloaded from its beginning. */
  get info(): PartInfo | undefined {
    try {
      return JSON.parse(readFileSync(join(this.#folder, "info.json"), "utf8")) as PartInfo;
    } catch {
      return undefined;
    }
  }

  set info(info: PartInfo) {
    writeFileSync(join(this.#folder, "info.json"), JSON.stringify(info));
  }

  /** Deletes the bytes received so far. */
  clear(): void {
    for (const name of ["data", "info.json"]) rmSync(join(this.#folder, name), { force: true });
  }

  /** Keeps the received bytes for a later download. If another process has kept its own already, these are deleted. */
  release(): void {
    try {
      if (this.size > 0) renameSync(this.#folder, this.#rest);
      else this.remove();
    } catch {
      this.remove();
    }
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Parts of processes that were killed. */
function abandoned(rest: string): string[] {
  const prefix = `${basename(rest)}-`;
  return readdirSync(dirname(rest))
    .filter((name) => name.startsWith(prefix))
    .map((name) => ({ name: name.slice(prefix.length).replace(/\.\d+$/, ""), path: join(dirname(rest), name) }))
    .filter(({ name, path }) => hasEnded(name) || isOld(join(path, "data")))
    .map(({ path }) => path);
}

function isOld(path: string): boolean {
  const time = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return time !== undefined && Date.now() - time > HOUR_MS;
}
