// The CPU device under Node: worker threads, and relaxed SIMD switched on in Node 20.
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";
import { type CpuDevice, type CpuOptions, createCpuDevice } from "./cpu.ts";
import { bindFromText, bindingText, nativeCode } from "./native/native.node.ts";
import type { WorkerHandle } from "./team.ts";

export interface CpuNodeOptions extends Omit<CpuOptions, "startWorker" | "native"> {
  /** @default as many as the machine has cores, at most 8 */
  readonly threads?: number;
  /** Products as machine code where processor and system allow it; the bits are the same. @default true, unless SQLENV_NATIVE=0 */
  readonly native?: boolean;
}

/** Makes the CPU device with threads. */
export function createCpu({
  threads = Math.min(8, availableParallelism()),
  native: wantsNative = process.env.SQLENV_NATIVE !== "0",
  ...options
}: CpuNodeOptions = {}): CpuDevice {
  // Node 20 has relaxed SIMD behind a flag; later versions always have it, and complain of the flag on stderr.
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--experimental-wasm-relaxed-simd");
  const native = wantsNative ? nativeCode() : null;
  return createCpuDevice({
    ...options,
    threads,
    native: native && ((memory) => bindFromText(native, memory)),
    startWorker: (source, data) => startThread(source, data, native ? bindingText(native) : undefined),
  });
}

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
