// Opens a WebGPU device under Node, through the package `webgpu`, or throws an error that says what is missing.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { SqlEnvError } from "../../../errors.ts";
import type { Adapter, WebGpuDevice, WebGpuOptions } from "./device.ts";
import { adapterOf, newServerData, START_MS } from "./open.ts";
import { type GpuWorker, Queue } from "./queue.ts";
import { SERVER, STATE } from "./server.ts";
import { WebGpu } from "./webgpu.ts";

const REMEDY = "install the GPU's driver (on Linux its Vulkan driver), or use --device cpu";

/** Opens a WebGPU device; an error says what is missing. */
export function createWebGpu(options: WebGpuOptions = {}): WebGpuDevice {
  const data = newServerData();
  const source = `${SERVER}
const { parentPort, workerData } = require("node:worker_threads");
import(workerData.module).then(
  ({ create }) => serveGpu(create([]), workerData.data, (hear) => parentPort.on("message", hear), () => parentPort.close()),
  (error) => {
    const text = new TextEncoder().encode(JSON.stringify({ missing: "library", message: String(error.message) }));
    workerData.data.facts.set(text);
    Atomics.store(workerData.data.control, 2, text.length);
    Atomics.store(workerData.data.control, 0, ${STATE.failed});
    Atomics.notify(workerData.data.control, 0);
  },
);`;
  const worker = new Worker(source, { eval: true, workerData: { module: moduleUrl(), data }, execArgv: [] });
  worker.unref(); // an idle worker must not keep the process alive
  worker.on("error", () => {}); // a caller that waits notices it
  Atomics.wait(data.control, 0, STATE.pending, START_MS);
  const adapter = adapterOf(data, REMEDY); // a worker that failed ends by itself
  const close = () => device.close();
  const post: GpuWorker["post"] = (message, transfer) => worker.postMessage(message, transfer);
  const device = new WebGpu(new Queue({ post, end: () => process.off("exit", close) }, data), adapter, options);
  process.on("exit", close); // at process.exit the worker must be idle
  return device;
}

/** Device files of GPUs on Linux: of the kernel's drivers, NVIDIA's, and the Windows Subsystem for Linux. */
const GPU_NODES = ["/dev/dri", "/dev/nvidiactl", "/dev/dxg"];

/** Opens the GPU that WebGPU reaches; null without one, without the package `webgpu`, or if it is only emulated. */
export function openWebGpu(options: WebGpuOptions = {}): WebGpuDevice | null {
  if (process.platform === "linux" && !GPU_NODES.some((path) => existsSync(path))) return null; // loading Dawn takes a while
  try {
    const device = createWebGpu(options);
    if (!device.adapter.software) return device;
    device.close();
  } catch (error) {
    if (!(error instanceof SqlEnvError)) throw error;
  }
  return null;
}

let found: Adapter | null | undefined;

/** The adapter that `openWebGpu` would open, looked up once in a thread; null if there is none. */
export function findWebGpu(): Adapter | null {
  if (found === undefined) {
    const device = openWebGpu();
    device?.close();
    found = device?.adapter ?? null;
  }
  return found;
}

/** The address of the package `webgpu`, an optional peer dependency. */
function moduleUrl(): string {
  try {
    return pathToFileURL(createRequire(import.meta.url).resolve("webgpu")).href;
  } catch (cause) {
    throw new SqlEnvError("no_webgpu", {
      what: "the package webgpu, through which Node reaches the GPU, is not installed",
      remedy: "npm install webgpu, or use --device cpu",
      cause,
    });
  }
}
