// Demonstrations made on several threads, since a GPU learns faster than one thread can play. Their order is that of the
// worlds, so the number of threads changes only the time.
import { Worker } from "node:worker_threads";
import type { Datum } from "../../lm/engine/index.ts";
import type { Mixture } from "./demonstrations.ts";

/** What a thread is started with. */
export interface ThreadSpec {
  /** A model's folder, for its tokenizer. */
  readonly folder: string;
  readonly worldsPerBatch: number;
}

/** Asks for the demonstrations of some worlds. */
export interface Order {
  readonly number: number;
  readonly mixture: Mixture;
}

export interface Batch {
  readonly number: number;
  readonly data: readonly { readonly tokens: Uint32Array; readonly weights: Float32Array }[];
}

export interface ThreadedOptions {
  readonly threads: number;
  /** The mixture for the n-th batch of worlds; null ends the stream. */
  readonly mixtureOf: (batch: number) => Mixture | null;
  /** @default 16 */
  readonly worldsPerBatch?: number;
}

/** Batches queued per thread, so that none waits for the learner. */
const AHEAD = 2;

/** Encoded demonstrations for a model, in the order of the worlds. */
export async function* threadedDemonstrations(
  folder: string,
  { threads, mixtureOf, worldsPerBatch = 16 }: ThreadedOptions,
): AsyncGenerator<Datum, void> {
  const workerData: ThreadSpec = { folder, worldsPerBatch };
  const file = new URL("./demonstration-worker.node.js", import.meta.url);
  const workers = Array.from({ length: threads }, () => new Worker(file, { workerData }));
  const waiting = new Map<number, { resolve: (batch: Batch) => void; reject: (error: Error) => void }>();
  for (const worker of workers) {
    worker.on("message", (message: Batch | { number: number; error: string }) => {
      const { resolve, reject } = waiting.get(message.number)!;
      waiting.delete(message.number);
      if ("error" in message) reject(new Error(message.error));
      else resolve(message);
    });
    worker.on("error", (error) => {
      for (const { reject } of waiting.values()) reject(error);
    });
  }
  const ordered: Promise<Batch>[] = [];
  let next = 0;
  const order = () => {
    const mixture = mixtureOf(next);
    if (!mixture) return;
    const number = next++;
    const batch = new Promise<Batch>((resolve, reject) => waiting.set(number, { resolve, reject }));
    batch.catch(() => {}); // thrown where it is awaited
    ordered.push(batch);
    workers[number % threads]!.postMessage({ number, mixture } satisfies Order);
  };
  try {
    for (let i = 0; i < threads * AHEAD; i++) order();
    for (let batch = ordered.shift(); batch; batch = ordered.shift()) {
      const { data } = await batch;
      order();
      for (const { tokens, weights } of data) yield { tokens: Array.from(tokens), weights };
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}
