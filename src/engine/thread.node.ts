// An engine in a thread of its own, with the same verbs: the caller's thread stays free for keys, pages and progress.
import { Worker } from "node:worker_threads";
import { ModelLoadError, OOMError, SqlEnvError, UsageError } from "../errors.ts";
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
} from "./engine.ts";
import type {
  EngineFacts,
  EngineMemory,
  EngineSpec,
  ErrorFields,
  FromEngine,
  ToEngine,
  Verb,
  Verbs,
} from "./protocol.ts";

interface Pending {
  readonly resolve: (give: never) => void;
  readonly reject: (error: Error) => void;
  readonly onToken: ((token: number) => void) | undefined;
}

export interface ThreadEngineOptions extends Partial<Omit<EngineSpec, "folder">> {}

/** Starts an engine for a model folder in another thread; resolves when the model is loaded. */
export function startEngine(folder: string, options: ThreadEngineOptions = {}): Promise<ThreadEngine> {
  const { trains = true, threads, simd, recompute = false, reference = false, device = "auto", precision } = options;
  const { maxGpuMemory, lora, adapter } = options;
  const spec: EngineSpec = {
    ...{ folder, trains, threads, simd, recompute, reference, device, precision },
    ...{ maxGpuMemory, lora, adapter },
  };
  const worker = new Worker(new URL("./worker.node.js", import.meta.url), { workerData: spec });
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("message", (message: FromEngine) => {
      worker.off("error", reject);
      if ("ready" in message) resolve(new ThreadEngine(worker, message.ready));
      else reject("failed" in message ? errorOf(message.failed) : new Error("the engine's thread spoke out of turn"));
    });
  });
}

/** The caller's end. */
export class ThreadEngine implements Engine {
  readonly facts: EngineFacts;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #next = 0;
  #ended: Error | undefined;

  constructor(worker: Worker, facts: EngineFacts) {
    this.facts = facts;
    this.#worker = worker;
    worker.on("message", (message: FromEngine) => this.#hear(message));
    worker.on("error", (error) => this.#end(error));
    worker.on("exit", (code) => this.#end(new Error(`the engine's thread ended (${code})`)));
  }

  sample({ signal, onToken, ...take }: SampleRequest): Promise<Sample> {
    const id = this.#next;
    const abort = () => this.#worker.postMessage({ abort: id } satisfies ToEngine);
    const sampled = this.#call("sample", { ...take, stream: onToken !== undefined }, onToken);
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

  /** Saves a folder that `transformers` loads, adapters merged; without a dtype in one that loses nothing. */
  async saveModel(
    dir: string,
    { dtype, card }: { readonly dtype?: "F32" | "BF16"; readonly card?: string } = {},
  ): Promise<void> {
    await this.#call("saveModel", { dir, dtype, card });
  }

  /** Saves the adapters where `peft` loads them; `base` is the model they adapt. */
  async saveAdapter(dir: string, base: string, { card }: { readonly card?: string } = {}): Promise<void> {
    await this.#call("saveAdapter", { dir, base, card });
  }

  /** Saves what is learned and the optimizer in full precision, to go on from. */
  async saveState(dir: string): Promise<void> {
    await this.#call("saveState", dir);
  }

  async loadState(dir: string, { anyVariant = false }: { readonly anyVariant?: boolean } = {}): Promise<void> {
    await this.#call("loadState", { dir, anyVariant });
  }

  memory(): Promise<EngineMemory> {
    return this.#call("memory", null);
  }

  async close(): Promise<void> {
    if (this.#ended) return;
    await this.#call("close", null);
    await this.#worker.terminate();
  }

  #call<V extends Verb>(verb: V, take: Verbs[V]["take"], onToken?: (token: number) => void): Promise<Verbs[V]["give"]> {
    if (this.#ended) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve: resolve as Pending["resolve"], reject, onToken });
      this.#worker.postMessage({ id, verb, take } as ToEngine);
    });
  }

  #hear(message: FromEngine): void {
    if (!("id" in message)) return;
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    if ("token" in message) {
      pending.onToken?.(message.token);
      return;
    }
    this.#pending.delete(message.id);
    if ("error" in message) pending.reject(errorOf(message.error));
    else pending.resolve(message.give as never);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#pending.values()) reject(this.#ended);
    this.#pending.clear();
  }
}

/** The error as it was thrown over there. */
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
