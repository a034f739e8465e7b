// One process at a time trains in a folder: a file that says who, kept fresh while it runs. It works across containers
// and machines that share the folder, where process ids say nothing.
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { SqlEnvError, UsageError } from "../../errors.ts";
import { isAlive } from "../../io/process.node.ts";

const LOCK = "lock";
/** How often a holder shows that it runs. */
const BEAT_MS = 10_000;
/** A holder that cannot be looked up counts as gone when it has not shown itself for so long. */
const STALE_MS = 60_000;

/** What the file holds. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** The machine since its start, and its process ids' namespace: two processes with the same of both see each other. Null where the system does not tell. */
  readonly boot: string | null;
  readonly namespace: string | null;
  /** When the process started, in the kernel's ticks: ids are used again. */
  readonly start: string | null;
  readonly nonce: string;
}

/** What this process has written into locks it holds. */
const ours = new Set<string>();

/** A folder's lock, as held by this process. */
export class RunLock {
  readonly #file: string;
  readonly #text: string;
  readonly #timer: NodeJS.Timeout;

  /** Takes the lock, or throws a UsageError that names who has it; `force` takes it from anyone. */
  constructor(folder: string, { force = false }: { readonly force?: boolean } = {}) {
    this.#file = join(folder, LOCK);
    this.#text = `${JSON.stringify(ourselves())}\n`;
    take(folder, this.#text, force);
    ours.add(this.#text);
    this.#timer = setInterval(() => this.#beat(), BEAT_MS).unref();
  }

  /** Throws when somebody has taken the lock: two that write would spoil the run. One that is gone was taken, and given up since. */
  check(): void {
    const text = readText(this.#file);
    if (text === this.#text) return;
    throw new SqlEnvError("run_taken", {
      what: "another process has taken over this run",
      value: text === null ? "its lock is gone" : nameOf(text),
      remedy: "this one ends without writing anything more; its last checkpoint is whole",
    });
  }

  /** Shows that this process runs. The file's time is then that of the file server, which is what others compare with. */
  #beat(): void {
    try {
      if (readText(this.#file) === this.#text) touch(this.#file, this.#text);
    } catch {
      // a file server that is away; the next beat may find it
    }
  }

  release(): void {
    clearInterval(this.#timer);
    ours.delete(this.#text);
    if (readText(this.#file) === this.#text) rmSync(this.#file, { force: true });
  }
}

/** Id of the process that trains in a folder, here or on another machine; null when none does. */
export function trainingProcess(folder: string): number | null {
  const file = join(folder, LOCK);
  const text = readText(file);
  if (text === null || !isHeld(text, () => Date.now() - modified(file))) return null;
  return parse(text)?.pid ?? 0;
}

function take(folder: string, text: string, force: boolean): void {
  const file = join(folder, LOCK);
  for (let attempt = 0; attempt < 3; attempt++) {
    if (create(file, text)) return;
    const there = readText(file);
    if (there === null) continue; // given up since
    if (!force && isHeld(there, () => age(folder, file))) throw inUse(folder, there);
    // Moved aside first: of two that find it stale only one gets it, and one that moved somebody's new lock sees so.
    const aside = join(folder, `.${LOCK}-${process.pid}.part`);
    try {
      renameSync(file, aside);
    } catch {
      continue;
    }
    if (!force && readText(aside) !== there && !existsSync(file)) renameSync(aside, file);
    else rmSync(aside, { force: true });
  }
  throw inUse(folder, readText(file) ?? "");
}

/** Whether whoever wrote the lock is still there; `age` gives the milliseconds since it was last fresh. */
function isHeld(text: string, age: () => number): boolean {
  if (/^\d+\n?$/.test(text)) return isNode(Number(text)); // as versions before this one wrote it: an id of this machine
  const holder = parse(text);
  if (!holder) return age() < STALE_MS; // being written, or damaged
  const { boot, namespace, host } = ourselves();
  const isVisible = holder.boot === boot && holder.namespace === namespace && (boot !== null || holder.host === host);
  if (!isVisible) return age() < STALE_MS;
  if (holder.pid === process.pid) return ours.has(text); // else a process that ended and had our id
  return isAlive(holder.pid) && (holder.start === null || holder.start === startOf(holder.pid));
}

function inUse(folder: string, text: string): UsageError {
  return new UsageError({
    what: "another process is training in this folder",
    value: `${folder}, ${nameOf(text)}`,
    remedy: "wait for it or end it, use another folder, or take the run over with --force",
  });
}

/** The holder for people. */
function nameOf(text: string): string {
  const holder = parse(text);
  if (holder) return `process ${holder.pid} on ${holder.host}`;
  return /^\d+\n?$/.test(text) ? `process ${text.trim()}` : "a lock that cannot be read";
}

function parse(text: string): Holder | null {
  try {
    const holder = JSON.parse(text) as Partial<Holder> | null;
    return Number.isInteger(holder?.pid) && typeof holder?.nonce === "string" ? (holder as Holder) : null;
  } catch {
    return null;
  }
}

let known: Holder | undefined;

function ourselves(): Holder {
  known ??= {
    ...{ pid: process.pid, host: hostname() },
    boot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    namespace: attempt(() => readlinkSync("/proc/self/ns/pid")),
    start: startOf(process.pid),
    nonce: "",
  };
  return { ...known, nonce: crypto.randomUUID() };
}

/** Field 22 of /proc/PID/stat; the second, the name, may hold anything but ends with the last parenthesis. */
function startOf(pid: number): string | null {
  return attempt(() => {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]!;
  });
}

/** Whether there is such a process and it may be a training. */
function isNode(pid: number): boolean {
  if (pid <= 0 || !isAlive(pid)) return false;
  const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"));
  return command === null || /node|deno|bun|sqlenv/.test(command);
}

/** Milliseconds since a file was last written, by the clock that wrote both times: the file server's. */
function age(folder: string, file: string): number {
  const probe = join(folder, `.${LOCK}-probe-${process.pid}.part`);
  try {
    writeFileSync(probe, "");
    return modified(probe) - modified(file);
  } finally {
    rmSync(probe, { force: true });
  }
}

function modified(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Writes the first byte again: the content stays, the time is new. */
function touch(file: string, text: string): void {
  const handle = openSync(file, "r+");
  try {
    writeSync(handle, text.slice(0, 1), 0);
  } finally {
    closeSync(handle);
  }
}

/** Makes the file; false when there is one. */
function create(file: string, text: string): boolean {
  let handle: number;
  try {
    handle = openSync(file, "wx");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    writeFileSync(handle, text);
    return true;
  } catch (error) {
    rmSync(file, { force: true }); // the disk is full: an empty one would keep everybody out
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** Null when there is none; a file server that is away is an error. */
function readText(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch {
    return null;
  }
}
