// A run as a folder on disk. Logs are appended to; everything else is written to a temporary name, synced and renamed, so that a
// process killed at any moment leaves complete files. A checkpoint records the lengths of the logs: what was written after it
// is truncated when the run is resumed.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { ModelLoadError, messageOf, SqlEnvError, UsageError } from "../../errors.ts";
import { syncFile, writeFileWhole, writeFolderWhole } from "../../io/atomic-write.node.ts";
import { RunLock } from "./lock.node.ts";
import {
  type Checkpoint,
  LOGS,
  type Log,
  type LogLengths,
  type ResumePoint,
  type RunStore,
  resumePointSchema,
  type TrainerState,
} from "./store.ts";

const CHECKPOINTS = "checkpoints";
const STATE = "trainer.json";
/** Prefix of temporary names. */
const ASIDE = /^\.(step-\d+|.+\.part)(\.old)?$|^\.(model|adapter|sft|self-taught-\d+)-\w{6}(\.old)?$/;

export { trainingProcess } from "./lock.node.ts";

/**
 * A run as a folder on disk: logs, checkpoints and results, whole whenever the process is killed.
 *
 * @example
 * const store = new RunFolder("runs/mine");
 * await runTraining({ model, data, config, store });
 */
export class RunFolder implements RunStore {
  readonly name: string;
  #lock: RunLock | undefined;

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

  /** Locks the run until `unlock` or the end of this process, however it ends; `force` takes it over from another. */
  lock({ force = false }: { readonly force?: boolean } = {}): void {
    this.#lock?.release();
    this.#lock = undefined;
    this.#lock = guarded("write lock", this.name, () => new RunLock(this.name, { force }));
  }

  unlock(): void {
    this.#lock?.release();
    this.#lock = undefined;
  }

  append(log: Log, ...records: readonly object[]): void {
    const lines = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    if (lines) this.#guard(`write to ${log}`, () => appendFileSync(join(this.name, log), lines));
  }

  write(file: string, text: string): void {
    this.#guard(`write ${file}`, () => writeFileWhole(join(this.name, file), text));
  }

  read(file: string): string | null {
    const path = join(this.name, file);
    return existsSync(path) ? readFileSync(path, "utf8") : null;
  }

  lengths(): LogLengths {
    return Object.fromEntries(LOGS.map((log) => [log, sizeOf(join(this.name, log))])) as LogLengths;
  }

  async checkpoint(
    state: TrainerState,
    save: (dir: string) => Promise<void>,
    keep: number,
    logs?: LogLengths,
  ): Promise<void> {
    const { step } = state;
    const folder = join(this.name, CHECKPOINTS);
    const fill = async (aside: string) => {
      await save(aside);
      for (const log of LOGS) syncFile(join(this.name, log));
      writeFileSync(
        join(aside, STATE),
        `${JSON.stringify({ state, logs: logs ?? this.lengths() } satisfies ResumePoint)}\n`,
      );
      this.#lock?.check();
    };
    try {
      this.#lock?.check();
      await writeFolderWhole(join(folder, `step-${step}`), fill, join(folder, `.step-${step}`));
    } catch (error) {
      throw failure(`save checkpoint step-${step}`, this.name, error);
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
    this.#lock?.check();
    for (const { path, length } of kept) if (sizeOf(path) > length) truncateSync(path, length);
    for (const folder of [this.name, join(this.name, CHECKPOINTS)])
      for (const name of readdirSync(folder).filter((name) => ASIDE.test(name)))
        rmSync(join(folder, name), { recursive: true, force: true }); // a process was killed while it wrote this
  }

  /** Steps with a checkpoint, newest first. */
  #steps(): number[] {
    const names = readdirSync(join(this.name, CHECKPOINTS));
    return names.flatMap((name) => (/^step-\d+$/.test(name) ? [Number(name.slice(5))] : [])).sort((a, b) => b - a);
  }

  #guard<T>(what: string, work: () => T): T {
    return guarded(what, this.name, () => {
      this.#lock?.check(); // after a takeover, only the other process may write
      return work();
    });
  }
}

function readState(dir: string): ResumePoint {
  const path = join(dir, STATE);
  try {
    return resumePointSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    throw new ModelLoadError({
      what: `the checkpoint is damaged: ${cause instanceof z.ZodError ? z.prettifyError(cause) : messageOf(cause)}`,
      value: path,
      remedy: `delete ${dir} to resume from the one before it`,
      cause,
    });
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
  // Of our own errors, only a failed save of the model is about writing to the folder.
  if (cause instanceof SqlEnvError && cause.code !== "model_save") return cause;
  const full = /\b(ENOSPC|EDQUOT|EFBIG)\b/.test(messageOf(cause));
  return new SqlEnvError("run_write", {
    what: `cannot ${what}: ${cause instanceof SqlEnvError ? cause.what : messageOf(cause)}`,
    value: folder,
    remedy: full
      ? "free some space, then resume: the checkpoint before is whole"
      : "make the folder writable, then resume: the checkpoint before is whole",
    cause,
  });
}
