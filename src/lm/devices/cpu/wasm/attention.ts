// Causal grouped-query attention over trees of spans (lm/devices/layout.ts). A token sees its ancestors' keys and, in
// its own span, the keys up to itself. Keys are processed by absolute position, so a cached token, a packed sequence
// and a shared prompt give the same bits.
//
// A KV block has, for each kv head, 2·cap·d floats (cap a multiple of 8):
//   K in panels of eight tokens  [cap/8][d][8]   (scores: a row of q against eight keys at once)
//   V in panels of eight dims    [d/8][cap][8]   (outputs: a row of probabilities against eight dims at once)
//
// spans: i32 × 4 each: first row of q, rows, absolute position of the first row, first range
// (a final entry ends the table, so that range counts are differences)
// ranges:   i32 × 3 each: address of the KV block (in floats, for kv head 0), cap, tokens
import { enqueueMatmul, beginList, finishList, hasHost, hostSoftmax, LIST_BYTES } from "./host-commands";
import { exp4, max4, sum4 } from "./math";

const SPAN: usize = 16;
const RANGE: usize = 12;

/**
 * In place: turns rows of scores into exp(scale · (score − highest)). The first row sees `seen` keys, each further one
 * `more` more; masked scores up to `padded` become 0. The last two floats of each row get highest · scale and the sum.
 */
function softmaxRows(s: usize, sRow: usize, rows: i32, seen: i32, more: i32, padded: i32, scale: f32): void {
  for (let i = 0; i < rows; i++, s += sRow) softmaxRow(s, sRow, seen + more * i, padded, scale);
}

function softmaxRow(s: usize, sRow: usize, n: i32, padded: i32, scale: f32): void {
  const whole = n & ~3;
  let top = f32x4.splat(-Infinity);
  for (let j = 0; j < whole; j += 4) top = f32x4.max(top, v128.load(s + (usize(j) << 2)));
  let highest = max4(top);
  for (let j = whole; j < n; j++) highest = max(highest, load<f32>(s + (usize(j) << 2)));
  for (let j = n; j < padded; j++) store<f32>(s + (usize(j) << 2), -Infinity);
  const scale4 = f32x4.splat(scale);
  const shift4 = f32x4.splat(highest * scale);
  let sum = f32x4.splat(0);
  const end = (n + 3) & ~3; // lanes from n on are exp(−∞) = 0
  for (let j = 0; j < end; j += 4) {
    const e = exp4(f32x4.sub(f32x4.mul(v128.load(s + (usize(j) << 2)), scale4), shift4));
    v128.store(s + (usize(j) << 2), e);
    sum = f32x4.add(sum, e);
  }
  for (let j = end; j < padded; j++) store<f32>(s + (usize(j) << 2), 0);
  store<f32>(s + sRow - 8, highest * scale);
  store<f32>(s + sRow - 4, sum4(sum));
}

/** Maximum rows per task; sets the size of the scratch. */
const BLOCK: i32 = 16;

/** Minimum shared tokens for which reading them once for several one-row spans pays. */
const COMMON_LEAST: i32 = 16;

/** Ranges shared by the spans that `companions` last found; `commonTokens` counts their tokens. */
let common: i32 = 0;
let commonTokens: i32 = 0;

/**
 * Counts spans from g on, up to `most`, that have one row each (consecutive rows of q) and begin with the same ranges.
 * A span that would reduce the shared tokens below three quarters ends the group.
 */
function companions(spans: usize, ranges: usize, g: i32, count: i32, most: i32): i32 {
  const span = spans + usize(g) * SPAN;
  const first = load<i32>(span, 12);
  let depth = load<i32>(span, 12 + SPAN) - first - 1; // all ranges but its own
  let tokens = 0;
  let n = 1;
  for (; n < most && g + n < count; n++) {
    const other = span + usize(n) * SPAN;
    if (load<i32>(other) != load<i32>(span) + n || load<i32>(other, 4) != 1) break;
    const its = load<i32>(other, 12);
    const end = min(depth, load<i32>(other, 12 + SPAN) - its - 1);
    let same = 0;
    let sum = 0;
    for (; same < end; same++) {
      const a = ranges + usize(first + same) * RANGE;
      const b = ranges + usize(its + same) * RANGE;
      if (load<i32>(a) != load<i32>(b) || load<i32>(a, 8) != load<i32>(b, 8)) break;
      sum += load<i32>(a, 8);
    }
    if (sum < COMMON_LEAST || 4 * sum < 3 * tokens) break;
    depth = same;
    tokens = sum;
    common = same;
  }
  commonTokens = tokens;
  return n;
}

/**
 * Whether it pays to compute those spans together, head by head, rather than one by one with all heads of a kv head
 * sharing each key. With several heads per kv head it pays only if there are more rows than heads and most tokens are
 * shared.
 */
function paysTogether(span: usize, n: i32, group: i32): bool {
  if (n == 1 || group == 1) return n > 1;
  let longest = 0;
  for (let i = 0; i < n; i++) longest = max(longest, load<i32>(span + usize(i) * SPAN, 8) + 1 - commonTokens);
  return n >= group && commonTokens >= longest;
}

/** Computes scores of n rows of q against the keys of ranges, written from key j on; returns the key after the last. */
function scoreRanges(
  q: usize, step: usize, kvCache: usize, ranges: usize, from: i32, to: i32, kv: usize, d: i32, s: usize, sRow: usize, n: i32,
  j: i32, last: i32,
): i32 {
  for (let r = from; r < to && j < last; r++) {
    const range = ranges + usize(r) * RANGE;
    const block = kvCache + ((usize(load<i32>(range)) + kv * 2 * usize(load<i32>(range, 4)) * usize(d)) << 2);
    const keys = min(load<i32>(range, 8), last - j);
    enqueueMatmul(q, step, 4, block, usize(d) << 5, (keys + 7) >> 3, s + (usize(j) << 2), sRow, n, d, false);
    j += keys;
  }
  return j;
}

/** Computes out (+)= probabilities · values of ranges, from key j on; returns the key after the last. */
function sumRanges(
  s: usize, sRow: usize, kvCache: usize, ranges: usize, from: i32, to: i32, kv: usize, d: i32, out: usize, step: usize, n: i32,
  j: i32, last: i32,
): i32 {
  for (let r = from; r < to && j < last; r++) {
    const range = ranges + usize(r) * RANGE;
    const cap = usize(load<i32>(range, 4));
    const block = kvCache + ((usize(load<i32>(range)) + (kv * 2 + 1) * cap * usize(d)) << 2);
    const keys = min(load<i32>(range, 8), last - j);
    enqueueMatmul(s + (usize(j) << 2), sRow, 4, block, cap << 5, d >> 3, out, step, n, keys, j > 0);
    j += keys;
  }
  return j;
}

/** Computes softmax numerators of n rows: each row sees `more` keys more than the one before; the last sees `last`. */
function softmax(s: usize, sRow: usize, n: i32, last: i32, more: i32, scale: f32): void {
  if (hasHost) hostSoftmax(s, sRow, n, last - more * (n - 1), more, (last + 7) & ~7, scale);
  else softmaxRows(s, sRow, n, last - more * (n - 1), more, (last + 3) & ~3, scale);
}

function storeLse(s: usize, sRow: usize, lse: usize): void {
  const end = s + sRow;
  store<f32>(lse, load<f32>(end - 8) + f32(Math.log(load<f32>(end - 4))));
}

/** Divides a row of sums by its softmax denominator. */
function divide(out: usize, d: i32, s: usize, sRow: usize): void {
  const r4 = f32x4.splat(1 / load<f32>(s + sRow - 4));
  for (let x: usize = 0; x < usize(d) << 2; x += 16) v128.store(out + x, f32x4.mul(v128.load(out + x), r4));
}

/**
 * Attends n one-row spans that share `common` ranges, for the heads of a kv head: shared keys and values are read once.
 */
function attendTogether(
  q: usize, kvCache: usize, out: usize, lse: usize, span: usize, ranges: usize, n: i32, heads: i32, kv: usize, group: i32,
  d: i32, scale: f32, s: usize, sRow: usize,
): void {
  const rowBytes = usize(heads * d) << 2;
  const row0 = usize(load<i32>(span));
  const range0 = load<i32>(span, 12);
  for (let head = usize(group) * kv; head < usize(group) * (kv + 1); head++) {
    const at = row0 * rowBytes + ((head * usize(d)) << 2);
    const shared = scoreRanges(q + at, rowBytes, kvCache, ranges, range0, range0 + common, kv, d, s, sRow, n, 0, i32.MAX_VALUE);
    for (let i = 0; i < n; i++) {
      const one = span + usize(i) * SPAN;
      const mine = s + usize(i) * sRow;
      const last = load<i32>(one, 8) + 1;
      const from = load<i32>(one, 12) + common;
      const to = load<i32>(one, 12 + SPAN);
      scoreRanges(q + at + usize(i) * rowBytes, rowBytes, kvCache, ranges, from, to, kv, d, mine, sRow, 1, shared, last);
      softmax(mine, sRow, 1, last, 0, scale);
    }
    sumRanges(s, sRow, kvCache, ranges, range0, range0 + common, kv, d, out + at, rowBytes, n, 0, i32.MAX_VALUE);
    for (let i = 0; i < n; i++) {
      const one = span + usize(i) * SPAN;
      const mine = s + usize(i) * sRow;
      const o = out + at + usize(i) * rowBytes;
      const from = load<i32>(one, 12) + common;
      const to = load<i32>(one, 12 + SPAN);
      sumRanges(mine, sRow, kvCache, ranges, from, to, kv, d, o, rowBytes, 1, shared, load<i32>(one, 8) + 1);
    }
    finishList();
    for (let i = 0; i < n; i++) {
      const mine = s + usize(i) * sRow;
      storeLse(mine, sRow, lse + (((row0 + usize(i)) * usize(heads) + head) << 2));
      divide(out + at + usize(i) * rowBytes, d, mine, sRow);
    }
  }
}

/**
 * Computes out = softmax(q · kᵀ · scale) · v for every row, and the log-sum-exp of each row and head. A task is a span,
 * a kv head and a block of `size` rows; tasks are assigned round-robin. One-row spans with a common prefix are one
 * task. Scratch per thread: 16 · `scratchRow` floats (the last two of a row are the highest score times scale and the
 * sum), then a command list. All threads must get the same `size`: the rows of a tile in WebAssembly, more with machine
 * code.
 */
export function attention(
  q: usize, kvCache: usize, out: usize, lse: usize, spans: usize, ranges: usize, count: i32, heads: i32, kvHeads: i32,
  d: i32, scale: f32, scratch: usize, scratchRow: i32, size: i32, part: i32, parts: i32,
): void {
  const group = heads / kvHeads;
  const sRow = usize(scratchRow) << 2;
  const s = scratch + usize(part) * usize(BLOCK) * sRow;
  beginList(scratch + usize(parts) * usize(BLOCK) * sRow + usize(part) * LIST_BYTES);
  const rowBytes = usize(heads * d) << 2;
  const most = max(1, min(size, (count * kvHeads) / (2 * parts))); // leaves enough tasks for all threads
  let task = 0;
  for (let g = 0, together = 1; g < count; g += together) {
    const span = spans + usize(g) * SPAN;
    const row0 = load<i32>(span);
    const rows = load<i32>(span, 4);
    const position = load<i32>(span, 8);
    const range0 = load<i32>(span, 12);
    const range1 = load<i32>(span, 12 + SPAN);
    const decode = rows == 1; // one token: the tile consists of the heads of a group
    together = decode ? companions(spans, ranges, g, count, most) : 1;
    if (!paysTogether(span, together, group)) together = 1;
    if (together > 1) {
      for (let kv = 0; kv < kvHeads; kv++, task++) {
        if (task % parts != part) continue;
        attendTogether(q, kvCache, out, lse, span, ranges, together, heads, kv, group, d, scale, s, sRow);
      }
      continue;
    }
    for (let b = 0; b < rows; b += size) {
      for (let kv = 0; kv < kvHeads; kv++, task++) {
        if (task % parts != part) continue;
        const tiles = decode ? (group + size - 1) / size : group;
        for (let tile = 0; tile < tiles; tile++) {
          const head = kv * group + (decode ? tile * size : tile);
          const n = min(size, decode ? group - tile * size : rows - b);
          const first = row0 + b;
          const at = usize(first) * rowBytes + ((usize(head) * usize(d)) << 2);
          const step = decode ? usize(d) << 2 : rowBytes;
          const last = position + b + (decode ? 1 : n); // number of keys that the tile's last row sees
          scoreRanges(q + at, step, kvCache, ranges, range0, range1, kv, d, s, sRow, n, 0, last);
          softmax(s, sRow, n, last, decode ? 0 : 1, scale);
          sumRanges(s, sRow, kvCache, ranges, range0, range1, kv, d, out + at, step, n, 0, last);
          finishList();
          for (let i = 0; i < n; i++) {
            const token = decode ? first : first + i;
            const where = lse + ((usize(token) * usize(heads) + usize(decode ? head + i : head)) << 2);
            storeLse(s + usize(i) * sRow, sRow, where);
            divide(out + at + usize(i) * step, d, s + usize(i) * sRow, sRow);
          }
        }
      }
    }
  }
}
