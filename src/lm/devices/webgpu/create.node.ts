// Opens a WebGPU device under Node, through the package `webgpu`, or throws an error that says what is missing.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { SqlEnvError } from "../../../errors.ts";
import type { Adapter, WebGpuDevice, WebGpuOptions } from "./device.ts";
import { type GpuWorker, Queue, textOf } from "./queue.ts";
import { SERVER, type ServerData, STATE, TEXT_BYTES } from "./server.ts";
import { WebGpu } from "./webgpu.ts";

const START_MS = 120_000; // generous enough for a busy machine

/** Opens a WebGPU device; an error says what is missing. */
export function createWebGpu(options: WebGpuOptions = {}): WebGpuDevice {
  const data: ServerData = {
    control: new Int32Array(new SharedArrayBuffer(16)),
    facts: new Uint8Array(new SharedArrayBuffer(TEXT_BYTES)),
    errors: new Uint8Array(new SharedArrayBuffer(TEXT_BYTES)),
  };
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
  const adapter = waitForAdapter(data); // a worker that failed ends by itself
  const close = () => device.close();
  const post: GpuWorker["post"] = (message, transfer) => worker.postMessage(message, transfer);
  const device = new WebGpu(new Queue({ post, end: () => process.off("exit", close) }, data), adapter, options);
  process.on("exit", close); // at process.exit the worker must be idle
  return device;
}

/** The address of the package `webgpu`, an optional dependency that may be missing. */
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

/** Waits until the worker has opened the GPU. */
function waitForAdapter({ control, facts }: ServerData): Adapter {
  Atomics.wait(control, 0, STATE.pending, START_MS);
  const state = Atomics.load(control, 0);
  if (state === STATE.pending) {
    throw new SqlEnvError("no_webgpu", { what: "the GPU's thread did not start", remedy: "use --device cpu" });
  }
  const found = textOf(facts, control[2]!) as Adapter & { readonly missing?: string; readonly message?: string };
  if (state === STATE.done) return found;
  throw new SqlEnvError("no_webgpu", {
    what: found.missing === "adapter" ? "WebGPU found no GPU" : "the GPU could not be opened",
    value: found.message,
    remedy: "install the GPU's driver (on Linux its Vulkan driver), or use --device cpu",
  });
}
