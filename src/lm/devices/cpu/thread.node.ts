// Starts worker threads for the CPU device's thread pool under Node.
import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { WorkerHandle } from "./thread-pool.ts";

/** JavaScript expression for the thread's Linux id; 1 if unknown. */
const THREAD_ID = `(() => {
  try {
    return Number(require("node:fs").readlinkSync("/proc/thread-self").split("/").pop()) || 1;
  } catch {
    return 1;
  }
})()`;

/** Starts a thread of the pool. */
export function startThread(
  source: string,
  data: unknown,
  bind = "undefined",
): WorkerHandle & { readonly worker: Worker } {
  const worker = new Worker(`${source}\nserve(require("node:worker_threads").workerData, ${bind}, ${THREAD_ID});`, {
    eval: true,
    workerData: data,
    execArgv: [], // --input-type and --import are meant for the main program and would break or slow down a worker
  });
  worker.unref(); // a sleeping worker must not keep the process alive
  worker.on("error", () => {}); // the pool notices and throws to the caller of a kernel
  return {
    worker,
    end: () => void worker.terminate(),
    isAlive: (id) => id === 1 || existsSync(`/proc/self/task/${id}`),
  };
}
