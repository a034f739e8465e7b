// How much memory this process may use: the machine's, or its container's.
import { totalmem } from "node:os";

/** Bytes there are in all, whoever uses them now. */
export function machineMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0; // 0 or undefined without a limit, beyond all memory on some systems
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
