// GEMM over packed panels. Work is split over outputs, never within a sum.
import { matmul, micro1, micro4 } from "./microkernel";

/** Rows packed at a time: their cache lines stay loaded while all panels are packed. */
const PACK_ROWS: i32 = 48;

/** Rows of A per pass over all panels of B, so that they stay in the L2 cache. */
const ROW_BLOCK: i32 = 96;

/**
 * Packs B[K, N] (element at `src + k·strideK + n·strideN`, bytes) into panels of eight columns, [N/8][K][8], zero-padded.
 */
export function pack(src: usize, dst: usize, k: i32, n: i32, strideK: usize, strideN: usize, part: i32, parts: i32): void {
  const panels = (n + 7) >> 3;
  const from = i32((i64(panels) * part) / parts);
  const to = i32((i64(panels) * (part + 1)) / parts);
  for (let i0 = 0; i0 < k; i0 += PACK_ROWS) {
    const i1 = min(k, i0 + PACK_ROWS);
    for (let p = from; p < to; p++) {
      let out = dst + ((usize(p) * usize(k) + usize(i0)) << 5);
      const columns = min(8, n - p * 8);
      let row = src + usize(p) * 8 * strideN + usize(i0) * strideK;
      if (columns == 8 && strideN == 4) {
        for (let i = i0; i < i1; i++) {
          v128.store(out, v128.load(row));
          v128.store(out, v128.load(row, 16), 16);
          row += strideK;
          out += 32;
        }
      } else {
        for (let i = i0; i < i1; i++) {
          let at = row;
          for (let j = 0; j < 8; j++) {
            store<f32>(out + (usize(j) << 2), j < columns ? load<f32>(at) : 0);
            at += strideN;
          }
          row += strideK;
          out += 32;
        }
      }
    }
  }
}

/**
 * Computes C[M, N] (+)= A[M, K] · B with packed B. A's element (m, k) is at `a + m·aRow + k·aK`; C's rows are `cRow`
 * bytes apart and padded to a multiple of eight columns.
 */
export function gemm(
  a: usize, aRow: usize, aK: usize, b: usize, c: usize, cRow: usize, m: i32, n: i32, k: i32, add: bool, part: i32, parts: i32,
): void {
  const panels = (n + 7) >> 3;
  // With few rows, split the panels; with many, split the rows.
  const byRows = m >= parts * 32;
  const firstRow = byRows ? rowBound(m, part, parts) : 0;
  const lastRow = byRows ? rowBound(m, part + 1, parts) : m;
  const firstPanel = byRows ? 0 : i32((i64(panels) * part) / parts);
  const lastPanel = byRows ? panels : i32((i64(panels) * (part + 1)) / parts);
  const bPanel = usize(k) * 32;
  for (let r0 = firstRow; r0 < lastRow; r0 += ROW_BLOCK) {
    const r1 = min(lastRow, r0 + ROW_BLOCK);
    const from = usize(firstPanel);
    const at = c + usize(r0) * cRow + from * 32;
    matmul(a + usize(r0) * aRow, aRow, aK, b + from * bPanel, bPanel, lastPanel - firstPanel, at, cRow, r1 - r0, k, add);
  }
}

function rowBound(m: i32, part: i32, parts: i32): i32 {
  return part == parts ? m : i32((i64(m) * part) / parts) & ~3;
}

/** Length of k for which rows of A stay in the L1 cache. */
const K_BLOCK: i32 = 256;

/**
 * Packs Aᵀ: element (m, k) at `src + k·strideK + m·4` moves to [M/4][K][4]. Rows of the source must be padded to a
 * multiple of four.
 */
export function packRows(src: usize, dst: usize, m: i32, k: i32, strideK: usize, part: i32, parts: i32): void {
  const tiles = (m + 3) >> 2;
  const from = i32((i64(k) * part) / parts);
  const to = i32((i64(k) * (part + 1)) / parts);
  for (let i0 = from; i0 < to; i0 += PACK_ROWS) {
    const i1 = min(to, i0 + PACK_ROWS);
    for (let t = 0; t < tiles; t++) {
      let out = dst + usize(t) * (usize(k) << 4) + (usize(i0) << 4);
      let row = src + usize(i0) * strideK + (usize(t) << 4);
      for (let i = i0; i < i1; i++) {
        v128.store(out, v128.load(row));
        out += 16;
        row += strideK;
      }
    }
  }
}

/**
 * Computes C[M, N] += A · B with A from `packRows` and B from `pack`: long sums are computed in blocks of k, each
 * continuing the previous.
 */
export function gemmRows(a: usize, b: usize, c: usize, cRow: usize, m: i32, n: i32, k: i32, part: i32, parts: i32): void {
  const panels = (n + 7) >> 3;
  const first = rowBound(m, part, parts);
  const last = rowBound(m, part + 1, parts);
  const tail = first + ((last - first) & ~3);
  const tile = usize(k) << 4;
  for (let k0 = 0; k0 < k; k0 += K_BLOCK) {
    const length = min(K_BLOCK, k - k0);
    for (let p = 0; p < panels; p++) {
      const bp = b + ((usize(p) * usize(k) + usize(k0)) << 5);
      const cp = c + (usize(p) << 5);
      for (let r = first; r < tail; r += 4) {
        micro4(a + usize(r >> 2) * tile + (usize(k0) << 4), 4, 16, bp, cp + usize(r) * cRow, cRow, length, true);
      }
      for (let r = tail; r < last; r++) {
        micro1(a + usize(r >> 2) * tile + (usize(k0) << 4) + (usize(r & 3) << 2), 16, bp, cp + usize(r) * cRow, length, true);
      }
    }
  }
}
