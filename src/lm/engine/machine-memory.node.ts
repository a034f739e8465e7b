// How much memory this process may use: the machine's, or its container's.
import { totalmem } from "node:os";
import { CPU_MEMORY_LIMIT } from "./memory.ts";

/** Total bytes, free or not. */
function machineMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0; // 0 or undefined without a limit, beyond all memory on some systems
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Bytes that an engine on the CPU may use. */
export function cpuMemory(): number {
  return Math.min(machineMemory(), CPU_MEMORY_LIMIT);
}
