// Whether two sets of kernels give the same bits: asked once, before the second may stand in for the first.
import type { KernelExports } from "../team.ts";

const [ROWS, COLUMNS, LENGTH] = [23, 85, 37]; // odd sizes: every kind of tile has its turn
const STRIDE = (COLUMNS + 7) & ~7;

/** Runs a few products both ways in one page of `memory`, from `start`, which is left zero. */
export function sameBits(memory: WebAssembly.Memory, one: KernelExports, other: KernelExports, start: number): boolean {
  const page = new Float32Array(memory.buffer, start, 16_384);
  const [a, b, c] = [start, start + 4_096 * 4, start + 8_192 * 4];
  const bitsOf = ({ gemm, gemmRows }: KernelExports): string => {
    for (let i = 0; i < 8_192; i++) page[i] = ((i * 7_919) % 1_009) / 1_009 - 0.4;
    page.fill(0, 8_192);
    for (const n of [COLUMNS, 5]) {
      for (let m = 1; m <= 8; m++) gemm!(a, 4 * LENGTH, 4, b, c, 4 * STRIDE, m, n, LENGTH, 1, 0, 1);
    }
    gemm!(a, 4 * LENGTH, 4, b, c + 4 * 8 * STRIDE, 4 * STRIDE, ROWS, COLUMNS, LENGTH, 0, 0, 1);
    gemmRows!(a, b, c + 4 * 64 * STRIDE, 4 * STRIDE, ROWS, COLUMNS, LENGTH, 0, 1);
    return new Uint32Array(memory.buffer, start, 16_384).join();
  };
  const isSame = bitsOf(one) === bitsOf(other);
  page.fill(0);
  return isSame;
}
