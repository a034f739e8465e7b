// What has come of a file so far, in a folder of its own that one process works in: `FILE.part` while nobody does, `FILE.part-WHO` while somebody does.
// A rename takes it over with all that is in it, and only one process can.
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { hasEnded, processName } from "../process.node.ts";

/** What must be the same for a resume to make sense. */
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

  /** Continues what an earlier call left, or begins anew. */
  constructor(file: string) {
    this.#rest = `${file}.part`;
    this.#folder = `${this.#rest}-${processName()}.${++calls}`;
    for (const left of [this.#rest, ...abandoned(this.#rest)]) {
      if (lstatSync(left, { throwIfNoEntry: false })?.isDirectory() === false) rmSync(left, { force: true });
      try {
        renameSync(left, this.#folder);
        return;
      } catch {
        // none, or somebody else was faster
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

  /** Undefined when there is none, or none that can be read: then the file is fetched from its beginning. */
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

  /** Forgets what has come. */
  clear(): void {
    for (const name of ["data", "info.json"]) rmSync(join(this.#folder, name), { force: true });
  }

  /** Leaves what has come to a later call; of two that do, the first. */
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
