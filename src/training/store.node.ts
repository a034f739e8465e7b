// A run as a folder on disk. Logs are appended to; everything else is written aside, synced and renamed, so that a process
// killed at any moment leaves files that are whole. A checkpoint knows how long the logs were: what was written after it
// is cut off when the run is taken up again.
import {
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
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { ModelLoadError, messageOf, SqlEnvError, UsageError } from "../errors.ts";
import { type Checkpoint, LOGS, type Log, type RunStore, type TrainerState } from "./store.ts";

const CHECKPOINTS = "checkpoints";
const STATE = "trainer.json";

/** What trainer.json holds. */
interface Saved {
  readonly state: TrainerState;
  /** Bytes of each log. */
  readonly logs: Readonly<Record<Log, number>>;
}

export class RunFolder implements RunStore {
  readonly name: string;

  constructor(folder: string) {
    this.name = folder;
    guarded("make the run's folder", folder, () => mkdirSync(join(folder, CHECKPOINTS), { recursive: true }));
  }

  append(log: Log, record: object): void {
    this.#guard(`write to ${log}`, () => {
      const file = openSync(join(this.name, log), "a");
      try {
        writeSync(file, `${JSON.stringify(record)}\n`);
      } finally {
        closeSync(file);
      }
    });
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
    for (const log of LOGS) {
      const path = join(this.name, log);
      if (!existsSync(path)) continue;
      const length = logs?.[log] ?? 0;
      if (statSync(path).size < length)
        throw new UsageError({
          what: `${path} is shorter than it was at checkpoint step-${step}`,
          value: `${statSync(path).size} of ${length} bytes`,
          remedy: "restore it, or start the run anew in another folder",
        });
      truncateSync(path, length);
    }
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
    return JSON.parse(readFileSync(path, "utf8")) as Saved;
  } catch (cause) {
    throw new ModelLoadError({
      what: `the checkpoint is damaged: ${messageOf(cause)}`,
      value: path,
      remedy: `delete ${dir} to resume from the one before it`,
      cause,
    });
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
