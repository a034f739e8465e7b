// Determines how much memory this process may use: the machine's, or its container's.
import { totalmem } from "node:os";
import { CPU_MEMORY_LIMIT } from "./estimate-memory.ts";

/** Total memory in bytes, free or not. */
function machineMemory(): number {
  // 0 or undefined means no limit; some systems report more than all memory.
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Bytes that an engine on the CPU may use. */
export function cpuMemory(): number {
  return Math.min(machineMemory(), CPU_MEMORY_LIMIT);
}
