// The CPU device in a browser: with threads where the page is cross-origin isolated, else alone in memory of its own.
import { type CpuDevice, createCpuDevice } from "./device.ts";
import { WORKER } from "./thread-pool.ts";

export interface CpuWebOptions {
  /** Used only where the page is cross-origin isolated. @default as many as the machine has cores, at most 8 */
  readonly threads?: number | undefined;
  /** @default relaxed where there is, else plain */
  readonly simd?: "plain" | "relaxed" | undefined;
}

/** Makes the device. With threads it must be called in a worker: a page's own thread may not wait for others. */
export async function createWebCpu({
  threads = Math.min(8, globalThis.navigator?.hardwareConcurrency || 1),
  simd,
}: CpuWebOptions = {}): Promise<CpuDevice> {
  const options = simd === undefined ? {} : { simd };
  const isPage = "document" in globalThis;
  if (threads === 1 || isPage || !globalThis.crossOriginIsolated) return createCpuDevice(options);
  // A worker begins only when the thread that made it is idle, which a kernel's caller never is: all are up before the first.
  const waiting = await Promise.all(Array.from({ length: threads - 1 }, readyWorker));
  return createCpuDevice({
    ...{ ...options, threads },
    startWorker: (_, data) => {
      const worker = waiting.pop()!;
      worker.postMessage(data);
      return { end: () => worker.terminate() };
    },
  });
}

/** A worker that has said it is there, and waits to be told its part. */
function readyWorker(): Promise<Worker> {
  const source = `${WORKER}\nonmessage = ({ data }) => serve(data);\npostMessage("ready");`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  return new Promise<Worker>((resolve, reject) => {
    worker.onmessage = () => resolve(worker);
    worker.onerror = (event) => reject(new Error(`a thread could not be started: ${event.message}`));
  }).finally(() => URL.revokeObjectURL(url));
}
