// The CPU device under Node: worker threads, and relaxed SIMD switched on where Node still hides it.
import { availableParallelism } from "node:os";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { type CpuDevice, type CpuOptions, createCpuDevice } from "./cpu.ts";

export interface CpuNodeOptions extends Omit<CpuOptions, "startWorker"> {
  /** @default as many as the machine has cores, at most 8 */
  readonly threads?: number;
}

/** Makes the CPU device with threads. */
export function createCpu({
  threads = Math.min(8, availableParallelism()),
  ...options
}: CpuNodeOptions = {}): CpuDevice {
  setFlagsFromString("--experimental-wasm-relaxed-simd"); // on by default from Node 24
  return createCpuDevice({
    ...options,
    threads,
    startWorker: (source, data) => {
      const worker = new Worker(`${source}\nserve(require("node:worker_threads").workerData);`, {
        eval: true,
        workerData: data,
        execArgv: [], // --input-type and --import are meant for the program, and would break or slow a worker
      });
      worker.unref(); // a sleeping worker must not keep the process alive
      return { end: () => void worker.terminate() };
    },
  });
}
