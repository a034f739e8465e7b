// A worker thread of the CPU device's team under Node.
import { existsSync } from "node:fs";
import { Worker } from "node:worker_threads";
import type { WorkerHandle } from "./thread-pool.ts";

/** What a thread is called by Linux; 1 where that is not known. */
const THREAD_ID = `(() => {
  try {
    return Number(require("node:fs").readlinkSync("/proc/thread-self").split("/").pop()) || 1;
  } catch {
    return 1;
  }
})()`;

/** Starts a thread of the team. */
export function startThread(
  source: string,
  data: unknown,
  bind = "undefined",
): WorkerHandle & { readonly worker: Worker } {
  const worker = new Worker(`${source}\nserve(require("node:worker_threads").workerData, ${bind}, ${THREAD_ID});`, {
    eval: true,
    workerData: data,
    execArgv: [], // --input-type and --import are meant for the program, and would break or slow a worker
  });
  worker.unref(); // a sleeping worker must not keep the process alive
  worker.on("error", () => {}); // the team notices, and throws to whoever runs a kernel
  return {
    worker,
    end: () => void worker.terminate(),
    isAlive: (id) => id === 1 || existsSync(`/proc/self/task/${id}`),
  };
}
