// Attention backward. One task is a tree of spans for one kv head. Only this task writes the gradients of that head's
// keys and values, adding up queries in a fixed order, so threads never share a sum.
import { enqueueMatmul, beginList, finishList, hasHost, hostScoreGradients, LIST_BYTES } from "./host-commands";
import { bound, exp4, sum4 } from "./math";

const SPAN: usize = 16;
const RANGE: usize = 12;
const BLOCK: i32 = 32; // queries per block: long enough sums for dK and dV, while scores stay in the cache

/** Computes D = Σ out · dOut for every row and head. */
export function rowDots(out: usize, dOut: usize, dots: usize, rows: i32, heads: i32, d: i32, part: i32, parts: i32): void {
  for (let t = bound(rows * heads, part, parts); t < bound(rows * heads, part + 1, parts); t++) {
    const at = (usize(t) * usize(d)) << 2;
    let sum = f32x4.splat(0);
    for (let i: usize = 0; i < usize(d) << 2; i += 16) {
      sum = f32x4.add(sum, f32x4.mul(v128.load(out + at + i), v128.load(dOut + at + i)));
    }
    store<f32>(dots + (usize(t) << 2), sum4(sum));
  }
}

/**
 * Makes the transposed layouts that backward needs: K in panels of eight dims, V in panels of eight tokens; blocks as
 * in the KV cache.
 */
export function repack(
  kvCache: usize, other: usize, kvBlocks: usize, count: i32, kvHeads: i32, d: i32, part: i32, parts: i32,
): void {
  for (let task = part; task < count * kvHeads; task += parts) {
    const block = kvBlocks + usize(task / kvHeads) * RANGE;
    const cap = usize(load<i32>(block, 4));
    const tokens = usize(load<i32>(block, 8));
    const k = (usize(load<i32>(block)) + usize(task % kvHeads) * 2 * cap * usize(d)) << 2;
    const v = k + ((cap * usize(d)) << 2);
    for (let i: usize = 0; i < usize(d); i++) {
      const fromK = kvCache + k + (i << 5); // + panel·d·32 + lane·4
      const toK = other + k + (((i >> 3) * cap * 8 + (i & 7)) << 2); // + token·32
      const fromV = kvCache + v + (((i >> 3) * cap * 8 + (i & 7)) << 2);
      const toV = other + v + (i << 5);
      for (let t: usize = 0; t < tokens; t++) {
        const inPanels = (t >> 3) * (usize(d) << 5) + ((t & 7) << 2);
        store<f32>(toK + (t << 5), load<f32>(fromK + inPanels));
        store<f32>(toV + inPanels, load<f32>(fromV + (t << 5)));
      }
    }
  }
}

/**
 * Writes dq to the q part of dqkv; adds dk and dv to its k and v parts. `trees` has one more entry than there are
 * trees: the spans of tree i are trees[i] … trees[i+1]. `rangeRows` is the first row of each range's block. Scratch:
 * (2·BLOCK·scratchRow + 2·BLOCK·d) floats per thread, then a command list per thread.
 */
export function attentionBackward(
  q: usize, kvCache: usize, other: usize, dOut: usize, lse: usize, dots: usize, dqkv: usize, spans: usize, ranges: usize,
  rangeRows: usize, trees: usize, treeCount: i32, heads: i32, kvHeads: i32, d: i32, scale: f32, scratch: usize,
  scratchRow: i32, part: i32, parts: i32,
): void {
  const group = heads / kvHeads;
  const sRow = usize(scratchRow) << 2;
  const share = usize(BLOCK) * (2 * sRow + (usize(d) << 3));
  const s = scratch + usize(part) * share;
  beginList(scratch + usize(parts) * share + usize(part) * LIST_BYTES);
  const dp = s + usize(BLOCK) * sRow;
  const qPack = dp + usize(BLOCK) * sRow;
  const oPack = qPack + ((usize(BLOCK) * usize(d)) << 2);
  const rowBytes = usize(heads * d) << 2;
  const gradBytes = usize((heads + 2 * kvHeads) * d) << 2;
  const width = usize(d) << 2;
  for (let task = part; task < treeCount * kvHeads; task += parts) {
    const tree = task / kvHeads;
    const kv = task % kvHeads;
    const kColumn = usize(heads + kv) * width;
    const vColumn = usize(heads + kvHeads + kv) * width;
    for (let g = load<i32>(trees + (usize(tree) << 2)); g < load<i32>(trees + (usize(tree) << 2), 4); g++) {
      const span = spans + usize(g) * SPAN;
      const row0 = load<i32>(span);
      const rows = load<i32>(span, 4);
      const position = load<i32>(span, 8);
      const range0 = load<i32>(span, 12);
      const range1 = load<i32>(span, 12 + SPAN);
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        for (let b = 0; b < rows; b += BLOCK) {
          const n = min(BLOCK, rows - b);
          const first = row0 + b;
          const last = position + b + n; // number of keys that the last row sees
          const at = usize(first) * rowBytes + usize(head) * width;
          packRows(q + at, rowBytes, qPack, n, d);
          packRows(dOut + at, rowBytes, oPack, n, d);
          // Scores and dOut · vᵀ over all keys.
          let j = 0;
          for (let r = range0; r < range1 && j < last; r++) {
            const range = ranges + usize(r) * RANGE;
            const cap = usize(load<i32>(range, 4));
            const block = (usize(load<i32>(range)) + usize(kv) * 2 * cap * usize(d)) << 2;
            const keys = min(load<i32>(range, 8), last - j);
            enqueueMatmul(q + at, rowBytes, 4, kvCache + block, width << 3, (keys + 7) >> 3, s + (usize(j) << 2), sRow, n, d, false);
            enqueueMatmul(dOut + at, rowBytes, 4, other + block + ((cap * usize(d)) << 2), width << 3, (keys + 7) >> 3, dp + (usize(j) << 2), sRow, n, d, false);
            j += keys;
          }
          // Weights p and ds = p (dp − D) scale; 0 for keys that are not seen.
          const padded = (last + 3) & ~3;
          const dot0 = (usize(first) * usize(heads) + usize(head)) << 2;
          if (hasHost) {
            const seen0 = position + b + 1;
            hostScoreGradients(s, dp, sRow, n, seen0, (last + 7) & ~7, scale, lse + dot0, dots + dot0, usize(heads) << 2);
          } else for (let i = 0; i < n; i++) {
            const si = s + usize(i) * sRow;
            const di = dp + usize(i) * sRow;
            const where = dot0 + usize(i) * (usize(heads) << 2);
            const l4 = v128.load32_splat(lse + where);
            const dot4 = v128.load32_splat(dots + where);
            const scale4 = f32x4.splat(scale);
            const seen = position + b + i + 1;
            for (let x = seen; x < padded; x++) {
              store<f32>(si + (usize(x) << 2), -Infinity);
              store<f32>(di + (usize(x) << 2), 0);
            }
            for (let x = 0; x < padded; x += 4) {
              const p = exp4(f32x4.sub(f32x4.mul(v128.load(si + (usize(x) << 2)), scale4), l4));
              v128.store(si + (usize(x) << 2), p);
              const ds = f32x4.mul(f32x4.mul(p, f32x4.sub(v128.load(di + (usize(x) << 2)), dot4)), scale4);
              v128.store(di + (usize(x) << 2), ds);
            }
          }
          // dq = ds · k; dk += dsᵀ · q; dv += pᵀ · dOut.
          const dq = dqkv + usize(first) * gradBytes + usize(head) * width;
          j = 0;
          for (let r = range0; r < range1 && j < last; r++) {
            const range = ranges + usize(r) * RANGE;
            const cap = usize(load<i32>(range, 4));
            const block = (usize(load<i32>(range)) + usize(kv) * 2 * cap * usize(d)) << 2;
            const keys = min(load<i32>(range, 8), last - j);
            enqueueMatmul(dp + (usize(j) << 2), sRow, 4, other + block, cap << 5, d >> 3, dq, gradBytes, n, keys, j > 0);
            const to = dqkv + usize(load<i32>(rangeRows + (usize(r) << 2))) * gradBytes;
            enqueueMatmul(dp + (usize(j) << 2), 4, sRow, qPack, usize(BLOCK) << 5, d >> 3, to + kColumn, gradBytes, keys, n, true);
            enqueueMatmul(s + (usize(j) << 2), 4, sRow, oPack, usize(BLOCK) << 5, d >> 3, to + vColumn, gradBytes, keys, n, true);
            j += keys;
          }
          finishList();
        }
      }
    }
  }
}

/** Packs rows of one head into panels of eight dims, each BLOCK rows long. */
function packRows(src: usize, rowBytes: usize, dst: usize, n: i32, d: i32): void {
  for (let t = 0; t < n; t++) {
    const from = src + usize(t) * rowBytes;
    const to = dst + (usize(t) << 5);
    for (let p = 0; p < d >> 3; p++) {
      const panel = to + ((usize(p) * usize(BLOCK)) << 5);
      v128.store(panel, v128.load(from + (usize(p) << 5)));
      v128.store(panel, v128.load(from + (usize(p) << 5), 16), 16);
    }
  }
}
