// Self-check: verifies that machine code gives the same bits as the WebAssembly kernels, once, before it may replace
// them.
import type { KernelExports } from "../thread-pool.ts";

const [ROWS, COLUMNS, LENGTH] = [23, 85, 37]; // odd sizes, so that every kind of tile is used
const STRIDE = (COLUMNS + 7) & ~7;
const [WIDE, LONG] = [120, 65]; // wide enough that one row is computed in several panels at once

const [KEYS, HEAD] = [19, 8]; // attention with one head

/**
 * Runs a few matmuls, an attention and a SwiGLU with both sets of kernels in one page of `memory`, from `start`, which
 * is zeroed afterwards. `useHost` tells the module's attention whether to call machine code; it is left
 * set to the result.
 */
export function sameBits(
  memory: WebAssembly.Memory,
  wasm: KernelExports,
  faster: KernelExports,
  useHost: (on: number) => void,
  start: number,
): boolean {
  const page = new Float32Array(memory.buffer, start, 16_384);
  const [a, b, c] = [start, start + 4_096 * 4, start + 8_192 * 4];
  const words = (from: number, length: number) => new Uint32Array(memory.buffer, from, length).join();
  const bitsOf = ({ gemm, gemmRows, swiGlu, attention }: KernelExports, isHost: boolean): string => {
    for (let i = 0; i < 8_192; i++) page[i] = ((i * 7_919) % 1_009) / 1_009 - 0.4;
    page.fill(0, 8_192);
    gemm!(a, 4 * LONG, 4, a, c, 4 * WIDE, 1, WIDE, LONG, 0, 0, 1);
    for (const n of [COLUMNS, 5]) {
      for (let m = 1; m <= 8; m++) gemm!(a, 4 * LENGTH, 4, b, c, 4 * STRIDE, m, n, LENGTH, 1, 0, 1);
    }
    gemm!(a, 4 * LENGTH, 4, b, c + 4 * 8 * STRIDE, 4 * STRIDE, ROWS, COLUMNS, LENGTH, 0, 0, 1);
    gemmRows!(a, b, c + 4 * 64 * STRIDE, 4 * STRIDE, ROWS, COLUMNS, LENGTH, 0, 1);
    const bits = [words(c, 8_192)];
    // One span over all keys, in one KV block, then the final entry that ends the table.
    const [spans, ranges, scratch, out, lse] = [c, c + 64, c + 128, c + 16_384, c + 20_480];
    new Int32Array(memory.buffer, spans, 8).set([0, KEYS, 0, 0, 0, 0, 0, 1]);
    new Int32Array(memory.buffer, ranges, 3).set([0, (KEYS + 7) & ~7, KEYS]);
    useHost(isHost ? 1 : 0);
    attention!(a, b, out, lse, spans, ranges, 1, 1, 1, HEAD, 7.3, scratch, (KEYS + 23) & ~7, isHost ? 16 : 4, 0, 1);
    bits.push(words(out, KEYS * HEAD), words(lse, KEYS));
    swiGlu!(a, out, 3, HEAD, 0, 1);
    return [...bits, words(out, 3 * HEAD)].join();
  };
  const isSame = bitsOf(wasm, false) === bitsOf({ ...wasm, ...faster }, true);
  useHost(isSame ? 1 : 0);
  page.fill(0);
  return isSame;
}
