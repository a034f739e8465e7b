// The matmul of each instruction set.
import type { InstructionSet } from "./instruction-set.ts";
import { assembleMatmul } from "./matmul.ts";
import { assembleMatmul512 } from "./matmul512.ts";

export function assembleMatmulFor(set: InstructionSet): Uint8Array<ArrayBuffer> {
  return set === "avx512" ? assembleMatmul512() : assembleMatmul();
}
