// Starts the CPU device in a browser: with threads if the page is cross-origin isolated, else single-threaded.
import { type CpuDevice, createCpuDevice } from "./device.ts";
import { WORKER } from "./thread-pool.ts";

export interface CpuWebOptions {
  /** Number of threads, if the page is cross-origin isolated. @default the machine's cores, at most 8 */
  readonly threads?: number | undefined;
  /** @default relaxed if available, else plain */
  readonly simd?: "plain" | "relaxed" | undefined;
}

/** Creates the device. With threads, call it in a worker: a page's main thread may not block. */
export async function createWebCpu({
  threads = Math.min(8, globalThis.navigator?.hardwareConcurrency || 1),
  simd,
}: CpuWebOptions = {}): Promise<CpuDevice> {
  const options = simd === undefined ? {} : { simd };
  const isPage = "document" in globalThis;
  if (threads === 1 || isPage || !globalThis.crossOriginIsolated) return createCpuDevice(options);
  // A worker starts only when its creating thread is idle, which never happens during a kernel: start all before the
  // first kernel.
  const waiting = await Promise.all(Array.from({ length: threads - 1 }, readyWorker));
  return createCpuDevice({
    ...options,
    threads,
    startWorker: (_, data) => {
      const worker = waiting.pop()!;
      worker.postMessage(data);
      return { end: () => worker.terminate() };
    },
  });
}

/** Starts a worker; resolves when it is ready for its part. */
function readyWorker(): Promise<Worker> {
  const source = `${WORKER}\nonmessage = ({ data }) => serve(data);\npostMessage("ready");`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  return new Promise<Worker>((resolve, reject) => {
    worker.onmessage = () => resolve(worker);
    worker.onerror = (event) => reject(new Error(`a thread could not be started: ${event.message}`));
  }).finally(() => URL.revokeObjectURL(url));
}
