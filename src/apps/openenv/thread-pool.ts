// The environment threads. A session stays on its thread; a thread that hangs or dies is replaced.
// Requests are queued here, not in the threads, and the client with the least recent usage goes first.
import { Worker } from "node:worker_threads";
import { SqlEnvError } from "../../errors.ts";
import { FairQueue, Usage } from "./fair-queue.ts";
import type { Answer, FromThread, SessionRequest, ThreadData, ThreadSpec, ToThread } from "./thread-protocol.ts";

/** A reply must come well within the 60 seconds clients wait; a request queued longer is not started. */
export const REPLY_WITHIN_MS = 10_000;

/** Statements are stopped after a second; a thread silent for this long hangs. */
export const SILENT_MS = 15_000;

interface Job {
  readonly id: number;
  readonly client: string;
  readonly session: string;
  readonly ask: SessionRequest;
  /** `performance.now()`. */
  readonly expires: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

interface Slot {
  worker: Worker | undefined;
  readonly sessions: Set<string>;
  readonly queue: FairQueue<Job>;
  /** Requests sent to the thread and not answered, all of one client. */
  readonly running: Map<number, Job>;
  /** The client of the running requests. */
  client: string;
  /** When the thread last replied, or got work while idle. */
  since: number;
  /** Shared memory, read by the thread while a statement runs: number of other clients waiting for it. */
  readonly others: Int32Array;
  isReady: boolean;
  /** Consecutive failed starts. */
  failures: number;
}

/** Requests sent ahead to a thread while only one client has any: saves wake-ups. It returns unstarted ones when another client waits. */
const AHEAD = 16;

const MAX_FAILURES = 3; // consecutive starts; after that only a new session starts the thread

export interface ThreadPoolOptions {
  readonly threads: number;
  /** @default REPLY_WITHIN_MS */
  readonly replyWithinMs?: number;
  /** @default SILENT_MS */
  readonly silentMs?: number;
  /** Called when a thread is replaced. */
  readonly onLost?: (reason: string, sessions: number) => void;
}

/** Sessions distributed over threads. */
export class ThreadPool {
  readonly #spec: ThreadSpec;
  readonly #slots: Slot[];
  readonly #bySession = new Map<string, Slot>();
  readonly #usage = new Usage();
  readonly #onLost: ThreadPoolOptions["onLost"];
  readonly #replyWithinMs: number;
  readonly #silentMs: number;
  readonly #watch: NodeJS.Timeout;
  #next = 0;
  #closed = false;

  constructor(spec: ThreadSpec, options: ThreadPoolOptions) {
    const { threads, replyWithinMs = REPLY_WITHIN_MS, silentMs = SILENT_MS, onLost } = options;
    this.#spec = spec;
    this.#replyWithinMs = replyWithinMs;
    this.#silentMs = silentMs;
    this.#onLost = onLost;
    this.#slots = Array.from({ length: threads }, () => ({
      worker: undefined,
      sessions: new Set<string>(),
      queue: new FairQueue<Job>(this.#usage),
      running: new Map<number, Job>(),
      client: "",
      since: 0,
      others: new Int32Array(new SharedArrayBuffer(4)),
      isReady: false,
      failures: 0,
    }));
    for (const slot of this.#slots) this.#start(slot);
    this.#watch = setInterval(() => this.#check(), Math.min(1_000, silentMs / 2));
  }

  get threads(): number {
    return this.#slots.length;
  }

  get sessions(): number {
    return this.#bySession.size;
  }

  /** Requests not answered yet. */
  get waiting(): number {
    return this.#slots.reduce((sum, { queue, running }) => sum + queue.size + running.size, 0);
  }

  /** Resolves when every thread is up. */
  async ready(): Promise<void> {
    await Promise.all(
      this.#slots.map(
        (slot) =>
          new Promise<void>((resolve, reject) => {
            if (slot.isReady) resolve();
            slot.worker?.once("message", () => resolve());
            slot.worker?.once("error", reject);
          }),
      ),
    );
  }

  /** Creates an environment on the thread with the fewest. Rejects with `factory` if it cannot be created. */
  async open(session: string, client: string): Promise<void> {
    const slot = this.#slots.reduce((best, other) => (other.sessions.size < best.sessions.size ? other : best));
    if (!slot.worker) this.#start(slot);
    slot.sessions.add(session);
    this.#bySession.set(session, slot);
    await this.#send(slot, session, client, { verb: "open" });
  }

  /** Sends a client's request to a session. Only requests sent after the previous answer are ordered. */
  ask(session: string, client: string, ask: SessionRequest): Promise<Answer> {
    const slot = this.#bySession.get(session);
    if (!slot) return Promise.reject(new SqlEnvError("unknown_session", { what: "no such session", value: session }));
    return this.#send(slot, session, client, ask);
  }

  /** Closes the environment. A running request is still answered; queued ones are not started. */
  drop(session: string): void {
    const slot = this.#bySession.get(session);
    if (!slot) return;
    this.#bySession.delete(session);
    slot.sessions.delete(session);
    this.#rejectAll(slot, (job) => job.session === session, refusal("lost", "the session was closed"));
    slot.worker?.postMessage({ session, verb: "close" } satisfies ToThread);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    await Promise.all(this.#slots.map(({ worker }) => worker?.terminate()));
    for (const slot of this.#slots) this.#rejectAll(slot, () => true, refusal("lost", "the server is shutting down"));
  }

  #send(slot: Slot, session: string, client: string, ask: SessionRequest): Promise<Answer> {
    if (!slot.worker) return Promise.reject(refusal("factory", "no environment thread could be started"));
    return new Promise((resolve, reject) => {
      const expires = performance.now() + this.#replyWithinMs;
      slot.queue.add(client, { id: this.#next++, client, session, ask, expires, resolve, reject });
      this.#dispatch(slot);
    });
  }

  /** Sends the thread its next request if it is idle, and more while no other client waits. */
  #dispatch(slot: Slot): void {
    const { queue, running } = slot;
    const isFree = () => running.size === 0 || (running.size < AHEAD && queue.clients === 1 && queue.has(slot.client));
    while (slot.worker && queue.clients > 0 && isFree()) {
      const job = queue.next()!;
      const { id, client, session, ask, expires, reject } = job;
      const now = performance.now();
      if (now > expires) reject(late());
      else {
        try {
          slot.worker.postMessage({ id, session, ask, isAhead: running.size > 0 } satisfies ToThread);
          if (running.size === 0) slot.since = now;
          slot.client = client;
          running.set(id, job);
        } catch (error) {
          reject(error as Error); // not sent, so no answer will come
        }
      }
    }
    publishWaiting(slot);
  }

  /** Starts a thread, and recreates the environments of its sessions. */
  #start(slot: Slot): void {
    const workerData: ThreadData = { ...this.#spec, others: slot.others };
    const worker = new Worker(new URL("./thread.js", import.meta.url), { workerData });
    slot.worker = worker;
    slot.isReady = false;
    worker.on("message", (message: FromThread) => this.#receive(slot, message));
    worker.on("error", (error) => this.#lose(slot, worker, error.message));
    worker.on("exit", () => this.#lose(slot, worker, "it ended"));
    for (const session of slot.sessions) worker.postMessage({ session, verb: "reopen" } satisfies ToThread);
  }

  #receive(slot: Slot, message: FromThread): void {
    slot.since = performance.now();
    if ("ready" in message) {
      slot.isReady = true;
      slot.failures = 0;
      return;
    }
    const job = slot.running.get(message.id);
    if (!job) return;
    slot.running.delete(message.id);
    if ("returned" in message) {
      slot.queue.putBack(job.client, job, (other) => other.id > job.id);
      this.#dispatch(slot);
      return;
    }
    this.#usage.charge(job.client, message.milliseconds);
    this.#dispatch(slot); // before the answer is processed, so that the thread does not wait
    if ("answer" in message) job.resolve(message.answer);
    else job.reject(refusal(message.refused, message.message));
  }

  /** Ends hanging threads, and rejects requests that waited too long. */
  #check(): void {
    const now = performance.now();
    for (const slot of this.#slots) {
      this.#rejectAll(slot, (job) => now > job.expires, late());
      // Expired requests sent ahead are returned, as if another client waited, and are rejected then.
      if ([...slot.running.values()].some(({ expires }) => now > expires)) Atomics.store(slot.others, 0, 1);
      const isSilent = slot.running.size > 0 && now - slot.since > this.#silentMs;
      if (isSilent && slot.isReady) void slot.worker?.terminate();
    }
  }

  /** Replaces a thread; its sessions get new environments, and learn of it from their next request. */
  #lose(slot: Slot, worker: Worker, reason: string): void {
    if (this.#closed || slot.worker !== worker) return;
    slot.worker = undefined;
    this.#onLost?.(reason, slot.sessions.size);
    this.#rejectAll(slot, () => true, refusal("lost", "the environment was lost; reset to start again"));
    if (++slot.failures < MAX_FAILURES) this.#start(slot);
  }

  /** Rejects the matching queued requests; if the slot's thread has ended, also all that it was running. */
  #rejectAll(slot: Slot, matches: (job: Job) => boolean, error: SqlEnvError): void {
    const jobs = slot.queue.remove(matches);
    if (this.#closed || !slot.worker) {
      jobs.push(...slot.running.values());
      slot.running.clear();
    }
    for (const { reject } of jobs) reject(error);
    publishWaiting(slot);
  }
}

/** Tells the thread how many other clients wait. */
function publishWaiting({ others, queue, client }: Slot): void {
  const count = queue.clients - (queue.has(client) ? 1 : 0);
  if (others[0] !== count) Atomics.store(others, 0, count); // only this thread writes
}

function late(): SqlEnvError {
  return refusal("late", "the server is busy: nothing was done; try again");
}

/** Why a request was not executed: `late`, `lost`, `failed`, or `factory` if there is no environment. */
function refusal(code: "late" | "lost" | "failed" | "factory", what: string): SqlEnvError {
  return new SqlEnvError(code, { what });
}
