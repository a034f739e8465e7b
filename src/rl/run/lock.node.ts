// A lock file, so that only one process trains in a folder: it names the holder, which refreshes it. It works across containers
// and machines that share the folder, where process ids cannot be compared.
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
/** Milliseconds between refreshes by the holder. */
const BEAT_MS = 10_000;
/** A holder whose process cannot be checked counts as gone after this time without a refresh. */
const STALE_MS = 60_000;

/** Contents of the file. */
export interface Holder {
  readonly pid: number;
  readonly host: string;
  /**
   * Identifies the machine's current boot and its process-id namespace: processes with the same value can see each
   * other. Null if the system does not provide it.
   */
  readonly boot: string | null;
  readonly namespace: string | null;
  /** Start time of the process in kernel ticks, since ids are reused. */
  readonly start: string | null;
  readonly nonce: string;
}

/** Contents of the locks that this process holds. */
const ours = new Set<string>();

/** A folder's lock, as held by this process. */
export class RunLock {
  readonly #file: string;
  readonly #text: string;
  readonly #timer: NodeJS.Timeout;

  /** Acquires the lock, or throws a UsageError that names the holder; `force` takes it over. */
  constructor(folder: string, { force = false }: { readonly force?: boolean } = {}) {
    this.#file = join(folder, LOCK);
    this.#text = `${JSON.stringify(ourselves())}\n`;
    take(folder, this.#text, force);
    ours.add(this.#text);
    this.#timer = setInterval(() => this.#beat(), BEAT_MS).unref();
  }

  /** Throws if this process has lost the lock: two writers would corrupt the run. If the file is gone, the other process has ended already. */
  check(): void {
    const text = readText(this.#file);
    if (text === this.#text) return;
    throw new SqlEnvError("run_taken", {
      what: "another process has taken over this run",
      value: text === null ? "its lock is gone" : nameOf(text),
      remedy: "this one ends without writing anything more; its last checkpoint is whole",
    });
  }

  /** Refreshes the lock. Its modification time is the file server's, which other processes compare with. */
  #beat(): void {
    try {
      if (readText(this.#file) === this.#text) touch(this.#file, this.#text);
    } catch {
      // the file server is unreachable; the next refresh may succeed
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
    if (there === null) continue; // released meanwhile
    if (!force && isHeld(there, () => age(folder, file))) throw inUse(folder, there);
    // Renamed first: of two processes that find it stale only one succeeds, and one that renamed a new lock notices.
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

/** Whether the lock's holder is still running; `age` returns the milliseconds since the last refresh. */
function isHeld(text: string, age: () => number): boolean {
  if (/^\d+\n?$/.test(text)) return isNode(Number(text)); // written by an earlier version: a process id of this machine
  const holder = parse(text);
  if (!holder) return age() < STALE_MS; // being written, or damaged
  const { boot, namespace, host } = ourselves();
  const isVisible = holder.boot === boot && holder.namespace === namespace && (boot !== null || holder.host === host);
  if (!isVisible) return age() < STALE_MS;
  if (holder.pid === process.pid) return ours.has(text); // otherwise an ended process that had our id
  return isAlive(holder.pid) && (holder.start === null || holder.start === startOf(holder.pid));
}

function inUse(folder: string, text: string): UsageError {
  return new UsageError({
    what: "another process is training in this folder",
    value: `${folder}, ${nameOf(text)}`,
    remedy: "wait for it or end it, use another folder, or take the run over with --force",
  });
}

/** The holder, as text. */
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
    pid: process.pid,
    host: hostname(),
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

/** Whether the process exists and may be a training. */
function isNode(pid: number): boolean {
  if (pid <= 0 || !isAlive(pid)) return false;
  const command = attempt(() => readFileSync(`/proc/${pid}/cmdline`, "utf8"));
  return command === null || /node|deno|bun|sqlenv/.test(command);
}

/** Milliseconds since a file was last written, by the file server's clock. */
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

/** Rewrites the first byte: the same content with a new modification time. */
function touch(file: string, text: string): void {
  const handle = openSync(file, "r+");
  try {
    writeSync(handle, text.slice(0, 1), 0);
  } finally {
    closeSync(handle);
  }
}

/** Creates the file; false if it exists. */
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
    rmSync(file, { force: true }); // the disk is full: an empty lock would block everybody
    throw error;
  } finally {
    closeSync(handle);
  }
}

/** Null if there is none; throws if the file server is unreachable. */
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
