// Environments on worker threads: episodes step there while the main thread keeps the engine busy. An episode stays on
// one thread. The number of threads and their assignment affect only the time.
import { Worker } from "node:worker_threads";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import type { DataSet, QuestionRecord } from "../../data/index.ts";
import {
  type EnvironmentOptions,
  type Outcome,
  rulesOf,
  type SQLAction,
  type SQLObservation,
} from "../../env/index.ts";
import {
  applyDiff,
  type EnvironmentThreadData,
  type FromEnvironments,
  type ObservationDiff,
  type ToEnvironments,
} from "./messages.ts";
import type { EnvironmentSource, OpenedEnvironment } from "./source.ts";

/** Silence after which a thread counts as hung: a statement may take five seconds, and so may a gold query. */
export const SILENT_MS = 30_000;

/** Maximum bytes of database files sent to threads in advance; others are sent when needed. */
const SENT_AHEAD_BYTES = 256 * 1024 * 1024;

/** Time limit for starting a thread. */
const START_MS = 60_000;

/** Time limit for terminating a thread. */
const TERMINATE_MS = 3_000;

/** How often one step may be retried because its thread was lost to another episode. */
const MAX_MOVES = 8;

/** Consecutive failed starts after which a thread is not started again. */
const MAX_FAILURES = 3;

export interface EnvironmentThreadsOptions {
  readonly threads: number;
  /** Ids of questions that will be asked; idle threads run their gold queries in advance. @default none */
  readonly ahead?: readonly string[];
  /** @default SILENT_MS */
  readonly silentMs?: number;
  /**
   * Called when a thread is lost, with the number of its open episodes. All of them continue, except the one it was
   * working on.
   */
  readonly onLost?: (reason: string, episodes: number) => void;
}

interface Reply {
  readonly news: ObservationDiff;
  readonly outcome: Outcome;
}

interface Pending {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

interface Thread {
  readonly worker: Worker;
  /** Databases already sent to this thread. */
  readonly databases: Set<string>;
  /** Episodes open on this thread. */
  readonly episodes: Set<number>;
  readonly pending: Map<number, Pending>;
  /** Time of its last message, or of the request that ended its idle time. */
  since: number;
  isReady: boolean;
  isLost: boolean;
}

/**
 * A pool of environment threads over one data set. Environments are reset by `question_id`.
 *
 * @example
 * const environments = await EnvironmentThreads.start(data, { threads: 4 });
 * await runTraining({ model, data, config, environments });
 * await environments.close();
 */
export class EnvironmentThreads implements EnvironmentSource {
  readonly #spec: EnvironmentThreadData;
  readonly #file: (database: string) => Uint8Array;
  readonly #questions: ReadonlyMap<string, QuestionRecord>;
  readonly #shared = new Map<string, Uint8Array>();
  readonly #slots: (Thread | undefined)[];
  readonly #failures: number[];
  readonly #silentMs: number;
  readonly #onLost: EnvironmentThreadsOptions["onLost"];
  readonly #watch: NodeJS.Timeout;
  #workSeconds = 0;
  #requests = 0;
  #episodes = 0;
  #closed = false;

  /** Starts the threads and waits until one is usable. Throws SqlEnvError if none is. */
  static async start(data: DataSet, options: EnvironmentThreadsOptions): Promise<EnvironmentThreads> {
    const threads = new EnvironmentThreads(data, options);
    const started = threads.#slots.map(
      (thread) =>
        new Promise<boolean>((resolve) => {
          thread!.worker.ref();
          thread!.worker.once("message", () => resolve(true));
          for (const event of ["error", "exit"]) thread!.worker.once(event, () => resolve(false));
        }),
    );
    const isUp = await Promise.all(started);
    for (const thread of threads.#slots) thread?.worker.unref();
    if (isUp.includes(true)) return threads;
    await threads.close();
    throw cannotStart();
  }

  /** Throws UsageError if the data set does not provide its database files. */
  private constructor(data: DataSet, options: EnvironmentThreadsOptions) {
    const { threads, ahead = [], silentMs = SILENT_MS, onLost } = options;
    const { name, questions, file, databases } = data;
    if (!file) throw new UsageError({ what: "the data set does not give its database files", value: name });
    this.#file = file;
    this.#questions = new Map(questions.map((question) => [question.question_id, question]));
    const { names, doubleQuotedStrings } = databases;
    this.#spec = { name, questions, databases: names, doubleQuotedStrings, ahead };
    this.#silentMs = silentMs;
    this.#onLost = onLost;
    this.#failures = Array.from({ length: threads }, () => 0);
    this.#slots = this.#failures.map((_, slot) => this.#start(slot));
    this.#watch = setInterval(() => this.#endSilent(), Math.min(1_000, silentMs / 2)).unref();
  }

  get threads(): number {
    return this.#slots.length;
  }

  get workSeconds(): number {
    return this.#workSeconds;
  }

  open(options: EnvironmentOptions): OpenedEnvironment {
    // This is no failure of a single episode: it must end the evaluation.
    if (this.#failures.every((count) => count >= MAX_FAILURES)) throw cannotStart();
    const rules = rulesOf(options);
    let thread: Thread | undefined;
    let episode = -1;
    let question: string | undefined; // id of the running episode's question
    let actions: SQLAction[] = [];
    let observation: SQLObservation | undefined;
    let outcome: Outcome | undefined;
    const close = () => {
      if (thread?.episodes.delete(episode) && !thread.isLost) post(thread, { close: episode });
      thread = undefined;
      question = undefined;
    };
    const take = ({ news, outcome: now }: Reply): SQLObservation => {
      outcome = now;
      observation = applyDiff(observation, news);
      return observation;
    };
    /** Starts the episode on a thread. After a loss it replays the actions taken so far, with the same results. */
    const begin = async (question_id: string): Promise<Reply> => {
      const given = this.#leastBusy();
      const number = this.#episodes++;
      [thread, episode] = [given, number];
      given.episodes.add(number);
      const database = this.#questions.get(question_id)?.database_name;
      if (database !== undefined) this.#sendDatabase(given, database);
      let reply = await this.#ask(given, (id) => ({ id, episode: number, question_id, options }));
      for (const action of actions) {
        if (thread !== given) throw lost(); // closed in the meantime
        reply = await this.#ask(given, (id) => ({ id, episode: number, action }));
      }
      return reply;
    };
    /** Retries work on another thread if its thread was lost because of another episode. */
    const moved = async (work: () => Promise<Reply>): Promise<Reply> => {
      for (let moves = 0; ; moves++) {
        try {
          return await work();
        } catch (error) {
          if (!(error instanceof Bystander)) throw error;
          if (question === undefined || moves === MAX_MOVES) throw lost();
        }
      }
    };
    return {
      rules,
      reset: async ({ question_id }) => {
        close();
        if (question_id === undefined) throw new UsageError({ what: "environment threads need a question_id" });
        [question, actions, observation] = [question_id, [], undefined];
        return take(await moved(() => begin(question_id)));
      },
      step: async ({ action_type, argument }: SQLAction) => {
        if (question === undefined)
          throw new UsageError({ what: "no episode is running", remedy: "call reset() first" });
        const [question_id, action] = [question, { action_type, argument }];
        const reply = await moved(async () => {
          if (thread?.isLost) await begin(question_id);
          if (!thread) throw lost();
          return this.#ask(thread, (id) => ({ id, episode, action }));
        });
        actions.push(action);
        return take(reply);
      },
      get outcome(): Outcome {
        if (!outcome) throw new UsageError({ what: "no episode is running", remedy: "call reset() first" });
        return outcome;
      },
      close,
    };
  }

  /** Ends the threads and rejects all pending requests, within TERMINATE_MS. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    const threads = this.#slots.filter((thread) => thread !== undefined);
    for (const thread of threads) rejectAll(thread, new UsageError({ what: "the environment threads are closed" }));
    const deadline = new Promise((resolve) => setTimeout(resolve, TERMINATE_MS).unref());
    await Promise.race([Promise.all(threads.map(({ worker }) => worker.terminate())), deadline]);
  }

  #leastBusy(): Thread {
    if (this.#closed) throw new UsageError({ what: "the environment threads are closed" });
    for (const [slot, thread] of this.#slots.entries())
      if (!thread && this.#failures[slot]! < MAX_FAILURES) this.#slots[slot] = this.#start(slot);
    const threads = this.#slots.filter((thread) => thread !== undefined);
    if (threads.length === 0) throw cannotStart();
    return threads.reduce((best, other) => (other.episodes.size < best.episodes.size ? other : best));
  }

  #ask(thread: Thread, message: (id: number) => ToEnvironments): Promise<Reply> {
    if (thread.isLost) return Promise.reject(new Bystander());
    return new Promise((resolve, reject) => {
      const id = this.#requests++;
      post(thread, message(id)); // throws if the message cannot be cloned
      if (thread.pending.size === 0) {
        thread.since = performance.now();
        thread.worker.ref(); // keeps the process alive while a reply is pending
      }
      thread.pending.set(id, { resolve, reject });
    });
  }

  /** Databases of the questions in `ahead`, up to SENT_AHEAD_BYTES. */
  *#databasesAhead(): Generator<string> {
    const names = new Set(this.#spec.ahead.map((id) => this.#questions.get(id)?.database_name));
    let bytes = 0;
    for (const name of names) {
      if (name === undefined) continue;
      if (bytes > SENT_AHEAD_BYTES) return;
      yield name;
      bytes += this.#shared.get(name)!.length;
    }
  }

  #sendDatabase(thread: Thread, database: string): void {
    if (thread.databases.has(database)) return;
    let bytes = this.#shared.get(database);
    if (!bytes) {
      const read = this.#file(database);
      bytes = new Uint8Array(new SharedArrayBuffer(read.length));
      bytes.set(read);
      this.#shared.set(database, bytes);
    }
    post(thread, { database, bytes });
    thread.databases.add(database);
  }

  #start(slot: number): Thread {
    const worker = new Worker(new URL("./worker.node.js", import.meta.url), { workerData: this.#spec });
    const thread: Thread = {
      worker,
      databases: new Set<string>(),
      episodes: new Set<number>(),
      pending: new Map<number, Pending>(),
      since: performance.now(),
      isReady: false,
      isLost: false,
    };
    worker.unref();
    worker.on("message", (message: FromEnvironments) => this.#hear(thread, slot, message));
    worker.on("error", (error) => this.#lose(thread, slot, error.message));
    worker.on("messageerror", (error) => this.#lose(thread, slot, error.message));
    worker.on("exit", () => this.#lose(thread, slot, "it ended"));
    for (const database of this.#databasesAhead()) this.#sendDatabase(thread, database);
    return thread;
  }

  #hear(thread: Thread, slot: number, message: FromEnvironments): void {
    thread.since = performance.now();
    if ("ready" in message) {
      thread.isReady = true;
      this.#failures[slot] = 0;
      return;
    }
    const pending = thread.pending.get(message.id);
    if (!pending) return;
    thread.pending.delete(message.id);
    if (thread.pending.size === 0) thread.worker.unref();
    this.#workSeconds += message.seconds;
    if ("news" in message) pending.resolve(message);
    else {
      const { code = "environment_failed", message: what } = message.error;
      pending.reject(code === "usage" ? new UsageError({ what }) : new SqlEnvError(code, { what }));
    }
  }

  /** Terminates threads that have been silent for too long; they are replaced like crashed ones. */
  #endSilent(): void {
    const now = performance.now();
    for (const [slot, thread] of this.#slots.entries()) {
      if (!thread || thread.pending.size === 0) continue;
      const silent = now - thread.since;
      if (silent > (thread.isReady ? this.#silentMs : START_MS))
        this.#lose(thread, slot, `it has not answered for ${(silent / 1000).toFixed(1)} s`);
    }
  }

  /** Handles the loss of a thread: its current request fails; its other episodes continue on other threads. */
  #lose(thread: Thread, slot: number, reason: string): void {
    if (thread.isLost || this.#closed) return;
    thread.isLost = true;
    this.#slots[slot] = undefined;
    this.#failures[slot]!++;
    void thread.worker.terminate();
    this.#onLost?.(reason, thread.episodes.size);
    const [first] = thread.pending.values(); // requests are processed in order
    if (thread.isReady) first?.reject(lost());
    rejectAll(thread, new Bystander());
  }
}

function post({ worker }: Thread, message: ToEnvironments): void {
  worker.postMessage(message);
}

function rejectAll({ pending }: Thread, error: Error): void {
  for (const { reject } of pending.values()) reject(error);
  pending.clear();
}

/** Thrown to episodes whose thread was lost while it served another episode. */
class Bystander extends Error {}

function lost(): SqlEnvError {
  return new SqlEnvError("environment_lost", { what: "the environment's thread was lost" });
}

function cannotStart(): SqlEnvError {
  return new SqlEnvError("environment_lost", {
    what: "no environment thread can be started",
    remedy: "environments can step in the main thread: environment_threads 0",
  });
}
