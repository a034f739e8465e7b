// Starts the CPU device under Node: with worker threads, and with relaxed SIMD enabled in Node 20.
import { setFlagsFromString } from "node:v8";
import { usableCpus } from "../../../io/cpus.node.ts";
import { type CpuDevice, type CpuOptions, createCpuDevice } from "./device.ts";
import { startThread } from "./thread.node.ts";
import { INSTRUCTION_SETS, type InstructionSet } from "./x64/instruction-set.ts";
import { adviseHugePages, bindFromText, bindingText, nativeCode } from "./x64/native.node.ts";

export interface CpuNodeOptions extends Omit<CpuOptions, "startWorker" | "native"> {
  /** Number of threads. @default the cores this process may use, at most 8 */
  readonly threads?: number;
  /**
   * Use machine code if the processor and system allow it, for the instruction set that is fastest here or for a given
   * one if it has it; the bits are the same. @default SQLENV_NATIVE: 0, avx2 or avx512; true without it
   */
  readonly native?: boolean | InstructionSet;
}

/** Makes the CPU device with threads. */
export function createCpu({
  threads = Math.min(8, usableCpus()),
  native: wanted = nativeOf(process.env.SQLENV_NATIVE),
  ...options
}: CpuNodeOptions = {}): CpuDevice {
  // Node 20 needs a flag for relaxed SIMD; later versions always have it and warn about the flag.
  if (process.versions.node.startsWith("20.")) setFlagsFromString("--experimental-wasm-relaxed-simd");
  const native = wanted === false ? null : (wanted !== true && nativeCode(wanted)) || nativeCode();
  return createCpuDevice({
    ...options,
    threads,
    native:
      native &&
      ((memory) => {
        adviseHugePages(native, memory);
        return bindFromText(native, memory);
      }),
    startWorker: (source, data) => startThread(source, data, native ? bindingText(native) : undefined),
  });
}

/** The value of SQLENV_NATIVE; anything but 0 and the name of an instruction set leaves the choice to us. */
function nativeOf(value: string | undefined): boolean | InstructionSet {
  return INSTRUCTION_SETS.find((set) => set === value) ?? value !== "0";
}
