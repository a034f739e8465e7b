// The threads environments live in. A session stays on its thread; a thread that hangs or dies is replaced.
import { Worker } from "node:worker_threads";
import { SqlEnvError } from "../errors.ts";
import type { Answer, Ask, FromThread, ThreadSpec, ToThread } from "./protocol.ts";

/** A reply must come well within the 60 seconds clients wait; what waited longer is not begun. */
export const REPLY_WITHIN_MS = 10_000;

/** A statement is stopped after 5 s; a thread that says nothing for this long will not come back. */
export const SILENT_MS = 15_000;

interface Pending {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

interface Slot {
  worker: Worker | undefined;
  readonly sessions: Set<string>;
  readonly pending: Map<number, Pending>;
  heardAt: number;
  isReady: boolean;
  /** Starts that failed in a row. */
  failures: number;
}

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
      pending: new Map<number, Pending>(),
      heardAt: 0,
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
    return this.#slots.reduce((sum, { pending }) => sum + pending.size, 0);
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
  async open(session: string): Promise<void> {
    const slot = this.#slots.reduce((best, other) => (other.sessions.size < best.sessions.size ? other : best));
    if (!slot.worker) this.#start(slot);
    slot.sessions.add(session);
    this.#bySession.set(session, slot);
    await this.#send(slot, session, { verb: "open" });
  }

  /** Asks a session; answers come in the order of the questions. */
  ask(session: string, ask: Ask): Promise<Answer> {
    const slot = this.#bySession.get(session);
    if (!slot) return Promise.reject(new SqlEnvError("unknown_session", { what: "no such session", value: session }));
    return this.#send(slot, session, ask);
  }

  /** Gives the environment up; what was asked before is still answered. */
  drop(session: string): void {
    const slot = this.#bySession.get(session);
    this.#bySession.delete(session);
    slot?.sessions.delete(session);
    slot?.worker?.postMessage({ session, ask: { verb: "close" } } satisfies ToThread);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#watch);
    await Promise.all(this.#slots.map(({ worker }) => worker?.terminate()));
    for (const slot of this.#slots) this.#rejectAll(slot, "the server is shutting down");
  }

  #send(slot: Slot, session: string, ask: Ask): Promise<Answer> {
    if (!slot.worker) return Promise.reject(refusal("factory", "no environment thread could be started"));
    const id = this.#next++;
    if (slot.pending.size === 0) slot.heardAt = Date.now();
    const { worker, pending } = slot;
    return new Promise((resolve, reject) => {
      // A message that cannot be sent throws here and must leave nothing behind that waits for its answer.
      worker.postMessage({ id, session, expires: Date.now() + this.#replyWithinMs, ask } satisfies ToThread);
      pending.set(id, { resolve, reject });
    });
  }

  /** Starts a thread, and makes new environments for the sessions that are its own already. */
  #start(slot: Slot): void {
    const worker = new Worker(new URL("./thread.js", import.meta.url), { workerData: this.#spec });
    slot.worker = worker;
    slot.isReady = false;
    slot.heardAt = Date.now();
    worker.on("message", (message: FromThread) => this.#hear(slot, message));
    worker.on("error", (error) => this.#lose(slot, worker, error.message));
    worker.on("exit", () => this.#lose(slot, worker, "it ended"));
    for (const session of slot.sessions) this.#send(slot, session, { verb: "open" }).catch(() => {});
  }

  #hear(slot: Slot, message: FromThread): void {
    slot.heardAt = Date.now();
    if ("ready" in message) {
      slot.isReady = true;
      slot.failures = 0;
      return;
    }
    const pending = slot.pending.get(message.id);
    slot.pending.delete(message.id);
    if ("answer" in message) pending?.resolve(message.answer);
    else pending?.reject(refusal(message.refused, message.message));
  }

  /** Ends threads that hang. */
  #look(): void {
    for (const { worker, isReady, pending, heardAt } of this.#slots)
      if (worker && isReady && pending.size > 0 && Date.now() - heardAt > this.#silentMs) void worker.terminate();
  }

  /** Replaces a thread; its sessions go on with new environments, and are told so when they next ask. */
  #lose(slot: Slot, worker: Worker, reason: string): void {
    if (this.#closed || slot.worker !== worker) return;
    slot.worker = undefined;
    this.#onLost?.(reason, slot.sessions.size);
    this.#rejectAll(slot, "the environment was lost; reset to start again");
    if (++slot.failures < MAX_FAILURES) this.#start(slot);
  }

  #rejectAll({ pending }: Slot, message: string): void {
    for (const { reject } of pending.values()) reject(refusal("lost", message));
    pending.clear();
  }
}

/** Why nothing was done: `late`, `lost`, `failed`, or `factory` when there is no environment at all. */
function refusal(code: "late" | "lost" | "failed" | "factory", what: string): SqlEnvError {
  return new SqlEnvError(code, { what });
}
