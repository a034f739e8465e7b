// Starts the CPU device under Node: with worker threads, and with relaxed SIMD enabled in Node 20.
import { setFlagsFromString } from "node:v8";
import { usableCpus } from "../../../io/cpus.node.ts";
import { type CpuDevice, type CpuOptions, createCpuDevice } from "./device.ts";
import { startThread } from "./thread.node.ts";
import { bindFromText, bindingText, nativeCode } from "./x64/native.node.ts";

export interface CpuNodeOptions extends Omit<CpuOptions, "startWorker" | "native"> {
  /** Number of threads. @default the cores this process may use, at most 8 */
  readonly threads?: number;
  /**
   * Use machine code if the processor and system allow it; the bits are the same. @default true, unless SQLENV_NATIVE=0
   */
  readonly native?: boolean;
}

/** Makes the CPU device with threads. */
export function createCpu({
  threads = Math.min(8, usableCpus()),
  native: wantsNative = process.env.SQLENV_NATIVE !== "0",
  ...options
}: CpuNodeOptions = {}): CpuDevice {
  // Node 20 needs a flag for relaxed SIMD; later versions always have it and warn about the flag.
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--experimental-wasm-relaxed-simd");
  const native = wantsNative ? nativeCode() : null;
  return createCpuDevice({
    ...options,
    threads,
    native: native && ((memory) => bindFromText(native, memory)),
    startWorker: (source, data) => startThread(source, data, native ? bindingText(native) : undefined),
  });
}
