// Opens a WebGPU device in a page's worker. The page must be cross-origin isolated, because reads use shared memory.
import { UsageError } from "../../../errors.ts";
import type { WebGpuDevice, WebGpuOptions } from "./device.ts";
import { adapterOf, newServerData, START_MS } from "./open.ts";
import { type GpuWorker, Queue } from "./queue.ts";
import { SERVER } from "./server.ts";
import { WebGpu } from "./webgpu.ts";

/** The worker that owns the GPU; its first message brings the `ServerData` that it starts with. */
const SOURCE = `${SERVER}
onmessage = ({ data }) => {
  const listen = (hear) => {
    onmessage = ({ data }) => hear(data);
  };
  serveGpu(navigator.gpu, data, listen, () => {}).then(() => postMessage("opened"));
};`;

/** Opens a WebGPU device. Call it in a worker: a page's main thread may not wait. */
export async function createWebGpuInBrowser(options: WebGpuOptions = {}): Promise<WebGpuDevice> {
  if ("document" in globalThis || !globalThis.crossOriginIsolated)
    throw new UsageError({
      what: "WebGPU needs a worker of a cross-origin isolated page",
      remedy: "send the headers Cross-Origin-Opener-Policy and Cross-Origin-Embedder-Policy",
    });
  const data = newServerData();
  const url = URL.createObjectURL(new Blob([SOURCE], { type: "text/javascript" }));
  const worker = new Worker(url);
  try {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, START_MS);
      worker.onmessage = worker.onerror = () => {
        clearTimeout(timer);
        resolve();
      };
      worker.postMessage(data);
    });
    const adapter = adapterOf(data, "use the CPU");
    const post: GpuWorker["post"] = (message, transfer) => worker.postMessage(message, transfer);
    return new WebGpu(new Queue({ post, end: () => worker.terminate() }, data), adapter, options);
  } catch (error) {
    worker.terminate();
    throw error;
  } finally {
    URL.revokeObjectURL(url);
  }
}
