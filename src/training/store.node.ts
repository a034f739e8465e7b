// A run as a folder on disk. Logs are appended to; everything else is written aside, synced and renamed, so that a process
// killed at any moment leaves files that are whole. A checkpoint knows how long the logs were: what was written after it
// is cut off when the run is taken up again.
import {
  appendFileSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { ModelLoadError, messageOf, SqlEnvError, UsageError } from "../errors.ts";
import { type Checkpoint, LOGS, type Log, type RunStore, type TrainerState } from "./store.ts";

const CHECKPOINTS = "checkpoints";
const LOCK = "lock";
const STATE = "trainer.json";
/** Names of what is being written aside. */
const ASIDE = /^\.(step-\d+|.+\.part|\.?model-\w{6})$/;

/** What trainer.json holds. */
interface Saved {
  readonly state: TrainerState;
  /** Bytes of each log. */
  readonly logs: Readonly<Record<Log, number>>;
}

const count = z.int().min(0);
const savedSchema = z.object({
  state: z.object({
    ...{ step: count, generation: count, episodes: count, tokens: count, evaluated: count },
    elapsed: z.number(),
    since_log: z.record(z.string(), z.tuple([z.number(), z.number()])),
    warned: z.array(z.string()),
  }),
  logs: z.record(z.enum(LOGS), count),
});

export class RunFolder implements RunStore {
  readonly name: string;

  constructor(folder: string) {
    this.name = folder;
    try {
      mkdirSync(join(folder, CHECKPOINTS), { recursive: true });
    } catch (cause) {
      throw new SqlEnvError("run_write", {
        what: `cannot make the run's folder: ${messageOf(cause)}`,
        value: folder,
        remedy: "make its place writable, or name another with --output-dir",
        cause,
      });
    }
  }

  /** Keeps other processes out until `unlock`, or until this one has ended however it may. */
  lock(): void {
    const holder = trainingProcess(this.name);
    if (holder !== null && holder !== process.pid)
      throw new UsageError({
        what: "another process is training in this folder",
        value: `${this.name}, process ${holder}`,
        remedy: "wait for it, end it, or use another folder",
      });
    this.write(LOCK, `${process.pid}\n`);
  }

  unlock(): void {
    rmSync(join(this.name, LOCK), { force: true });
  }

  append(log: Log, record: object): void {
    this.#guard(`write to ${log}`, () => appendFileSync(join(this.name, log), `${JSON.stringify(record)}\n`));
  }

  write(file: string, text: string): void {
    this.#guard(`write ${file}`, () => writeWhole(join(this.name, file), text));
  }

  read(file: string): string | null {
    const path = join(this.name, file);
    return existsSync(path) ? readFileSync(path, "utf8") : null;
  }

  async checkpoint(state: TrainerState, save: (dir: string) => Promise<void>, keep: number): Promise<void> {
    const folder = join(this.name, CHECKPOINTS);
    const [aside, final] = [join(folder, `.step-${state.step}`), join(folder, `step-${state.step}`)];
    try {
      rmSync(aside, { recursive: true, force: true });
      mkdirSync(aside, { recursive: true });
      await save(aside);
      const logs = Object.fromEntries(LOGS.map((log) => [log, sizeOf(join(this.name, log))])) as Saved["logs"];
      for (const log of LOGS) syncFile(join(this.name, log));
      writeFileSync(join(aside, STATE), `${JSON.stringify({ state, logs } satisfies Saved)}\n`);
      for (const file of readdirSync(aside)) syncFile(join(aside, file));
      rmSync(final, { recursive: true, force: true });
      renameSync(aside, final);
      syncFile(folder);
    } catch (error) {
      rmSync(aside, { recursive: true, force: true });
      throw failure(`save checkpoint step-${state.step}`, this.name, error);
    }
    for (const step of this.#steps().slice(keep))
      rmSync(join(folder, `step-${step}`), { recursive: true, force: true });
  }

  newest(): Checkpoint | null {
    const [step] = this.#steps();
    if (step === undefined) return null;
    const dir = join(this.name, CHECKPOINTS, `step-${step}`);
    return { state: readState(dir).state, dir };
  }

  rewind(): void {
    const [step] = this.#steps();
    const logs = step === undefined ? undefined : readState(join(this.name, CHECKPOINTS, `step-${step}`)).logs;
    const kept = LOGS.map((log) => ({ path: join(this.name, log), length: logs?.[log] ?? 0 }));
    const short = kept.find(({ path, length }) => sizeOf(path) < length);
    if (short)
      throw new UsageError({
        what: `${short.path} is shorter than it was at checkpoint step-${step}`,
        value: `${sizeOf(short.path)} of ${short.length} bytes`,
        remedy: "restore it, or start the run anew in another folder",
      });
    for (const { path, length } of kept) if (sizeOf(path) > length) truncateSync(path, length);
    for (const folder of [this.name, join(this.name, CHECKPOINTS)])
      for (const name of readdirSync(folder).filter((name) => ASIDE.test(name)))
        rmSync(join(folder, name), { recursive: true, force: true }); // a process was killed while it wrote this
  }

  /** Steps there are checkpoints of, newest first. */
  #steps(): number[] {
    const names = readdirSync(join(this.name, CHECKPOINTS));
    return names.flatMap((name) => (/^step-\d+$/.test(name) ? [Number(name.slice(5))] : [])).sort((a, b) => b - a);
  }

  #guard<T>(what: string, work: () => T): T {
    return guarded(what, this.name, work);
  }
}

function readState(dir: string): Saved {
  const path = join(dir, STATE);
  try {
    return savedSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    throw new ModelLoadError({
      what: `the checkpoint is damaged: ${cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause)}`,
      value: path,
      remedy: `delete ${dir} to resume from the one before it`,
      cause,
    });
  }
}

/** Id of the process that trains in a folder; null when none does. */
export function trainingProcess(folder: string): number | null {
  const file = join(folder, LOCK);
  const holder = existsSync(file) ? Number(readFileSync(file, "utf8")) : Number.NaN;
  return isAlive(holder) ? holder : null;
}

/** Whether there is such a process; signal 0 only asks. */
function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // there is, and it is somebody else's
  }
}

/** The file has its old content or its new one, never a part. */
function writeWhole(path: string, text: string): void {
  const aside = join(dirname(path), `.${path.slice(dirname(path).length + 1)}.part`);
  try {
    writeFileSync(aside, text);
    syncFile(aside);
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

/** Forces a file, or a folder's list of files, out to the disk. */
function syncFile(path: string): void {
  if (!existsSync(path)) return;
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function sizeOf(path: string): number {
  return existsSync(path) ? statSync(path).size : 0;
}

function guarded<T>(what: string, folder: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw failure(what, folder, error);
  }
}

function failure(what: string, folder: string, cause: unknown): Error {
  if (cause instanceof SqlEnvError) return cause;
  const full = (cause as { code?: string }).code === "ENOSPC";
  return new SqlEnvError("run_write", {
    what: `cannot ${what}: ${messageOf(cause)}`,
    value: folder,
    remedy: full
      ? "free some space, then resume: the checkpoint before is whole"
      : "make the folder writable, then resume: the checkpoint before is whole",
    cause,
  });
}
