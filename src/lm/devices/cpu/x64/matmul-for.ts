// The matmul of each instruction set.
import type { InstructionSet } from "./instruction-set.ts";
import { assembleMatmul } from "./matmul.ts";
import { assembleMatmul512 } from "./matmul512.ts";

/** Length of k for which a tile's panels stay in the L1 cache: three panels with AVX2, four with AVX-512. */
export const K_BLOCK: Readonly<Record<InstructionSet, number>> = { avx2: 256, avx512: 256 };

export function assembleMatmulFor(set: InstructionSet): Uint8Array<ArrayBuffer> {
  return set === "avx512" ? assembleMatmul512() : assembleMatmul();
}
