// The caller's side of an engine in a worker thread: it has the engine's methods and keeps the caller's event loop
// free.
import { Worker } from "node:worker_threads";
import { ModelLoadError, OOMError, SqlEnvError, UsageError } from "../../../errors.ts";
import type {
  AdamParams,
  Datum,
  Engine,
  ForwardBackwardOptions,
  ForwardBackwardOutput,
  LogprobOptions,
  OptimOutput,
  Sample,
  SampleRequest,
} from "../engine.ts";
import type {
  EngineFacts,
  EngineMemory,
  EngineSpec,
  ErrorFields,
  FromEngine,
  LoadStateOptions,
  ToEngine,
  Verb,
  Verbs,
} from "./protocol.ts";

interface Pending {
  readonly resolve: (give: never) => void;
  readonly reject: (error: Error) => void;
  readonly onToken: SampleRequest["onToken"];
}

export interface ThreadEngineOptions extends Partial<Omit<EngineSpec, "folder">> {
  /** Module of the worker thread; it calls `serveEngine` with its losses. @default one with cross_entropy only */
  readonly worker?: URL | undefined;
}

const WORKER = new URL("./worker.node.js", import.meta.url);

/** Starts an engine for a model folder in another thread. Resolves when the model is loaded. */
export function startEngine(folder: string, options: ThreadEngineOptions = {}): Promise<ThreadEngine> {
  const { trains = true, threads, simd, recompute = false, reference = false, device = "auto", precision } = options;
  const { maxGpuMemory, lora, adapter, worker: module = WORKER } = options;
  const spec: EngineSpec = {
    folder,
    trains,
    threads,
    simd,
    recompute,
    reference,
    device,
    precision,
    maxGpuMemory,
    lora,
    adapter,
  };
  const worker = new Worker(module, { workerData: spec });
  live.add(worker);
  worker.once("exit", () => live.delete(worker));
  return new Promise((resolve, reject) => {
    const failed = (error: Error) => {
      void worker.terminate();
      reject(error);
    };
    const onError = (error: Error) => failed(threadFailed(error));
    const onExit = (code: number) => failed(threadEnded(code, "while it loaded the model"));
    worker.once("error", onError);
    worker.once("exit", onExit);
    worker.once("message", (message: FromEngine) => {
      worker.off("error", onError);
      worker.off("exit", onExit);
      if ("ready" in message) resolve(new ThreadEngine(worker, message.ready));
      else
        failed(
          "failed" in message
            ? errorOf(message.failed)
            : new Error("unexpected first message from the engine's thread"),
        );
    });
  });
}

/** Worker threads that are still running. */
const live = new Set<Worker>();

/** Time limit for closing; a lost device may never answer. */
const CLOSE_MS = 10_000;
/** Time limit for terminating a thread. One that hangs in native code, such as a driver's, never ends. */
const TERMINATE_MS = 3_000;

/**
 * Ends the threads of all engines; resolves with false if one does not end. Then only SIGKILL ends the process, since
 * `process.exit` would wait for the thread.
 */
export async function terminateEngines(): Promise<boolean> {
  const ended = await Promise.all([...live].map((worker) => within(TERMINATE_MS, worker.terminate())));
  return !ended.includes(false);
}

/** Whether a promise settles within `ms` milliseconds. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  return Promise.race([settled, deadline]).finally(() => clearTimeout(timer));
}

/** The part of a worker thread that we use. Node's own type would force every user to install @types/node. */
interface Thread {
  on(event: "message", listener: (message: FromEngine) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "messageerror", listener: (error: Error) => void): unknown;
  on(event: "exit", listener: (code: number) => void): unknown;
  postMessage(message: unknown): void;
  ref(): void;
  unref(): void;
  terminate(): Promise<unknown>;
}

/** An engine in a worker thread. Without a call under way it does not keep the process alive. */
export class ThreadEngine implements Engine {
  readonly facts: EngineFacts;
  readonly #worker: Thread;
  readonly #pending = new Map<number, Pending>();
  #next = 0;
  /** The token texts last sent to the thread. */
  #texts: readonly string[] | undefined;
  #ended: Error | undefined;

  constructor(worker: Thread, facts: EngineFacts) {
    this.facts = facts;
    this.#worker = worker;
    worker.on("message", (message: FromEngine) => this.#hear(message));
    worker.on("error", (error) => this.#end(threadFailed(error)));
    worker.on("messageerror", (error) => {
      this.#end(threadFailed(error)); // a reply that cannot be deserialized would leave its call waiting forever
      void worker.terminate();
    });
    worker.on("exit", (code) => this.#end(threadEnded(code)));
    worker.unref();
  }

  sample({ signal, onToken, stop, ...take }: SampleRequest): Promise<Sample> {
    if (stop && stop.texts !== this.#texts) {
      this.#texts = stop.texts;
      this.#call("texts", stop.texts).catch(() => {}); // if the thread has ended, `sample` below reports it
    }
    const id = this.#next;
    const abort = () => this.#worker.postMessage({ abort: id } satisfies ToEngine);
    const sampled = this.#call("sample", { ...take, stop: stop?.rule, stream: onToken !== undefined }, onToken);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    return sampled.finally(() => signal?.removeEventListener("abort", abort));
  }

  forwardBackward(batch: readonly Datum[], options: ForwardBackwardOptions): Promise<ForwardBackwardOutput> {
    return this.#call("forwardBackward", { batch, options });
  }

  optimStep(adam: AdamParams): Promise<OptimOutput> {
    return this.#call("optimStep", adam);
  }

  logprobs(batch: readonly Datum[], options?: LogprobOptions): Promise<Float32Array[]> {
    return this.#call("logprobs", { batch, options });
  }

  /** Moves the reference weights towards the current ones: reference ← (1 − α) · reference + α · current. */
  async mixReference(alpha: number): Promise<void> {
    await this.#call("mixReference", alpha);
  }

  /** Saves a Hugging Face folder with merged adapters. The default `dtype` is lossless. */
  async saveModel(
    dir: string,
    { dtype, card }: { readonly dtype?: "F32" | "BF16"; readonly card?: string } = {},
  ): Promise<void> {
    await this.#call("saveModel", { dir, dtype, card });
  }

  /** Saves the adapters in PEFT's format; `base` names the model they adapt. */
  async saveAdapter(dir: string, base: string, { card }: { readonly card?: string } = {}): Promise<void> {
    await this.#call("saveAdapter", { dir, base, card });
  }

  /** Saves a checkpoint: trained values and optimizer state in full precision. */
  async saveState(dir: string): Promise<void> {
    await this.#call("saveState", dir);
  }

  async loadState(dir: string, options: LoadStateOptions = {}): Promise<void> {
    await this.#call("loadState", { dir, ...options });
  }

  memory(): Promise<EngineMemory> {
    return this.#call("memory", null);
  }

  /**
   * Frees the device and ends the thread. Never fails: a lost device must not hide the original error or keep the
   * process alive.
   */
  async close(): Promise<void> {
    if (!this.#ended) await within(CLOSE_MS, this.#call("close", null));
    this.#end(new UsageError({ what: "the engine is closed" }));
    await within(TERMINATE_MS, this.#worker.terminate());
  }

  #call<V extends Verb>(
    verb: V,
    take: Verbs[V]["take"],
    onToken?: SampleRequest["onToken"],
  ): Promise<Verbs[V]["give"]> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#worker.postMessage({ id, verb, take } as ToEngine); // throws if it cannot be cloned
      this.#pending.set(id, { resolve: resolve as Pending["resolve"], reject, onToken });
      this.#worker.ref();
    });
  }

  #hear(message: FromEngine): void {
    if (!("id" in message)) return;
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    if ("token" in message) {
      pending.onToken?.(message.token, message.logprob);
      return;
    }
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) this.#worker.unref();
    if ("error" in message) pending.reject(errorOf(message.error));
    else pending.resolve(message.give as never);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#pending.values()) reject(this.#ended);
    this.#pending.clear();
    this.#worker.unref();
  }
}

const RESUME = "a training can be resumed from its last checkpoint";

/** Makes the error for an uncaught exception in the thread. */
function threadFailed(cause: Error): SqlEnvError {
  return new SqlEnvError("engine_lost", {
    what: "the engine's thread failed",
    value: cause.message,
    remedy: RESUME,
    cause,
  });
}

function threadEnded(code: number, when = "unexpectedly"): SqlEnvError {
  return new SqlEnvError("engine_lost", {
    what: `the engine's thread ended ${when}`,
    value: `exit code ${code}`,
    remedy: RESUME,
  });
}

/** Rebuilds the error that was thrown in the thread. */
function errorOf({ name, code, message, what, value, remedy, stack }: ErrorFields): Error {
  const parts = { what: what ?? message, value, remedy };
  const made =
    name === "UsageError"
      ? new UsageError(parts)
      : name === "OOMError"
        ? new OOMError(parts)
        : name === "ModelLoadError"
          ? new ModelLoadError(parts, code)
          : code === undefined
            ? new Error(message)
            : new SqlEnvError(code, parts);
  if (stack) made.stack = stack;
  return made;
}
