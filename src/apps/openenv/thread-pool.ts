// The threads environments live in. A session stays on its thread; a thread that hangs or dies is replaced.
// Requests wait here, not in the threads, and the client that used the least time lately goes first.
import { Worker } from "node:worker_threads";
import { SqlEnvError } from "../../errors.ts";
import { FairQueue, Usage } from "./fair-queue.ts";
import type { Answer, Ask, FromThread, ThreadData, ThreadSpec, ToThread } from "./thread-protocol.ts";

/** A reply must come well within the 60 seconds clients wait; what waited longer is not begun. */
export const REPLY_WITHIN_MS = 10_000;

/** A statement is stopped after a second; a thread that says nothing for this long will not come back. */
export const SILENT_MS = 15_000;

interface Job {
  readonly id: number;
  readonly client: string;
  readonly session: string;
  readonly ask: Ask;
  /** By `performance.now()`. */
  readonly expires: number;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

interface Slot {
  worker: Worker | undefined;
  readonly sessions: Set<string>;
  readonly queue: FairQueue<Job>;
  /** What the thread was given and has not answered, all of one client. */
  readonly running: Map<number, Job>;
  /** Whose it is. */
  client: string;
  /** When the thread last said something, or was given work while it had none. */
  since: number;
  /** Read by the thread while a statement runs: how many clients wait for it, beside the one that is served. */
  readonly others: Int32Array;
  isReady: boolean;
  /** Starts that failed in a row. */
  failures: number;
}

/** Requests a thread may be given at once while only one client asks: saves wake-ups. It returns what it has not begun when another comes. */
const AHEAD = 16;

const MAX_FAILURES = 3; // starts; then a new one is tried only when a session asks

export interface PoolOptions {
  readonly threads: number;
  /** @default REPLY_WITHIN_MS */
  readonly replyWithinMs?: number;
  /** @default SILENT_MS */
  readonly silentMs?: number;
  /** Called when a thread had to be replaced. */
  readonly onLost?: (reason: string, sessions: number) => void;
}

/** Sessions by their id, spread over threads. */
export class Pool {
  readonly #spec: ThreadSpec;
  readonly #slots: Slot[];
  readonly #bySession = new Map<string, Slot>();
  readonly #usage = new Usage();
  readonly #onLost: PoolOptions["onLost"];
  readonly #replyWithinMs: number;
  readonly #silentMs: number;
  readonly #watch: NodeJS.Timeout;
  #next = 0;
  #closed = false;

  constructor(spec: ThreadSpec, options: PoolOptions) {
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
    this.#watch = setInterval(() => this.#look(), Math.min(1_000, silentMs / 2));
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

  /** Makes an environment on the thread that has the fewest. Rejects with `factory` when it cannot be made. */
  async open(session: string, client: string): Promise<void> {
    const slot = this.#slots.reduce((best, other) => (other.sessions.size < best.sessions.size ? other : best));
    if (!slot.worker) this.#start(slot);
    slot.sessions.add(session);
    this.#bySession.set(session, slot);
    await this.#send(slot, session, client, { verb: "open" });
  }

  /** Asks a session on behalf of a client; whoever waits for each answer before asking on gets them in order. */
  ask(session: string, client: string, ask: Ask): Promise<Answer> {
    const slot = this.#bySession.get(session);
    if (!slot) return Promise.reject(new SqlEnvError("unknown_session", { what: "no such session", value: session }));
    return this.#send(slot, session, client, ask);
  }

  /** Gives the environment up. What it is working on is still answered; what waits is not begun. */
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

  #send(slot: Slot, session: string, client: string, ask: Ask): Promise<Answer> {
    if (!slot.worker) return Promise.reject(refusal("factory", "no environment thread could be started"));
    return new Promise((resolve, reject) => {
      const expires = performance.now() + this.#replyWithinMs;
      slot.queue.add(client, { id: this.#next++, client, session, ask, expires, resolve, reject });
      this.#dispatch(slot);
    });
  }

  /** Gives the thread its next request if it is free, and some more while nobody else wants it. */
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
          reject(error as Error); // it never arrived, so no answer will come
        }
      }
    }
    tellWaiting(slot);
  }

  /** Starts a thread, and makes new environments for the sessions that are its own already. */
  #start(slot: Slot): void {
    const workerData: ThreadData = { ...this.#spec, others: slot.others };
    const worker = new Worker(new URL("./thread.js", import.meta.url), { workerData });
    slot.worker = worker;
    slot.isReady = false;
    worker.on("message", (message: FromThread) => this.#hear(slot, message));
    worker.on("error", (error) => this.#lose(slot, worker, error.message));
    worker.on("exit", () => this.#lose(slot, worker, "it ended"));
    for (const session of slot.sessions) worker.postMessage({ session, verb: "reopen" } satisfies ToThread);
  }

  #hear(slot: Slot, message: FromThread): void {
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
    this.#dispatch(slot); // before the answer is looked at, so that the thread does not wait for us
    if ("answer" in message) job.resolve(message.answer);
    else job.reject(refusal(message.refused, message.message));
  }

  /** Ends threads that hang, and answers what waited too long. */
  #look(): void {
    const now = performance.now();
    for (const slot of this.#slots) {
      this.#rejectAll(slot, (job) => now > job.expires, late());
      // What was given ahead and has expired comes back, as if somebody else waited, and is answered then.
      if ([...slot.running.values()].some(({ expires }) => now > expires)) Atomics.store(slot.others, 0, 1);
      const isSilent = slot.running.size > 0 && now - slot.since > this.#silentMs;
      if (isSilent && slot.isReady) void slot.worker?.terminate();
    }
  }

  /** Replaces a thread; its sessions go on with new environments, and are told so when they next ask. */
  #lose(slot: Slot, worker: Worker, reason: string): void {
    if (this.#closed || slot.worker !== worker) return;
    slot.worker = undefined;
    this.#onLost?.(reason, slot.sessions.size);
    this.#rejectAll(slot, () => true, refusal("lost", "the environment was lost; reset to start again"));
    if (++slot.failures < MAX_FAILURES) this.#start(slot);
  }

  /** Rejects waiting requests that fit; those a thread was given too when there is no thread any more. */
  #rejectAll(slot: Slot, fits: (job: Job) => boolean, error: SqlEnvError): void {
    const jobs = slot.queue.remove(fits);
    if (this.#closed || !slot.worker) {
      jobs.push(...slot.running.values());
      slot.running.clear();
    }
    for (const { reject } of jobs) reject(error);
    tellWaiting(slot);
  }
}

/** Lets the thread know whether others wait for what it is doing. */
function tellWaiting({ others, queue, client }: Slot): void {
  const count = queue.clients - (queue.has(client) ? 1 : 0);
  if (others[0] !== count) Atomics.store(others, 0, count); // only this thread writes
}

function late(): SqlEnvError {
  return refusal("late", "the server is busy: nothing was done; try again");
}

/** Why nothing was done: `late`, `lost`, `failed`, or `factory` when there is no environment at all. */
function refusal(code: "late" | "lost" | "failed" | "factory", what: string): SqlEnvError {
  return new SqlEnvError(code, { what });
}
