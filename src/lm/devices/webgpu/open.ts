// Shared by both ways to open a WebGPU device, in Node and in browsers: the memory in which its worker replies, and the
// reply about the adapter.
import { SqlEnvError } from "../../../errors.ts";
import type { Adapter } from "./device.ts";
import { textOf } from "./queue.ts";
import { type ServerData, STATE, TEXT_BYTES } from "./server.ts";

/** Milliseconds in which a worker must have opened the GPU: generous enough for a busy machine. */
export const START_MS = 120_000;

/** Shared memory for a new worker. */
export function newServerData(): ServerData {
  return {
    control: new Int32Array(new SharedArrayBuffer(16)),
    facts: new Uint8Array(new SharedArrayBuffer(TEXT_BYTES)),
    errors: new Uint8Array(new SharedArrayBuffer(TEXT_BYTES)),
  };
}

/** The adapter that a worker has opened; throws the worker's error if it could not. */
export function adapterOf({ control, facts }: ServerData, remedy: string): Adapter {
  const state = Atomics.load(control, 0);
  if (state === STATE.pending) {
    throw new SqlEnvError("no_webgpu", { what: "the GPU's thread did not start", remedy: "use the CPU" });
  }
  const found = textOf(facts, control[2]!) as Adapter & { readonly missing?: string; readonly message?: string };
  if (state === STATE.done) return found;
  throw new SqlEnvError("no_webgpu", {
    what: found.missing === "adapter" ? "WebGPU found no GPU" : "the GPU could not be opened",
    value: found.message,
    remedy,
  });
}
