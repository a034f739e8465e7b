// The step between the qkv matmul and attention, and its backward: norms and rotary embedding of heads; keys and values
// are written to the KV cache (laid out as in attention.ts).
import { bound, sum4 } from "./math";
import { madd } from "./microkernel";

/**
 * Writes q (normed, rotated); writes k (normed, rotated) and v to the KV cache. One row of qkv is [q heads | k heads |
 * v heads]; `bias`, if given, is added first (then there are no norms).
 */
export function rotate(
  qkv: usize, q: usize, kvCache: usize, blocks: usize, caps: usize, indices: usize, positions: usize, cosSin: usize,
  qWeight: usize, kWeight: usize, rstd: usize, rows: i32, heads: i32, kvHeads: i32, d: i32, eps: f32, bias: usize,
  part: i32, parts: i32,
): void {
  const from = bound(rows, part, parts);
  const to = bound(rows, part + 1, parts);
  const width = usize((heads + 2 * kvHeads) * d) << 2;
  const half = usize(d) << 1; // bytes of half a head
  const head = usize(d) << 2;
  for (let t = from; t < to; t++) {
    const row = qkv + usize(t) * width;
    const at = usize(t) << 2;
    const table = cosSin + usize(load<i32>(positions + at)) * head; // [cos d/2 | sin d/2]
    const cap = usize(load<i32>(caps + at));
    const index = usize(load<i32>(indices + at));
    const block = kvCache + (usize(load<i32>(blocks + at)) << 2);
    const scales = rstd + ((usize(t) * usize(heads + kvHeads)) << 2);
    for (let h = 0; h < heads; h++) {
      const x = row + usize(h) * head;
      const out = q + (usize(t) * usize(heads) + usize(h)) * head;
      const r = qWeight ? headScale(x, d, eps) : 1;
      store<f32>(scales + (usize(h) << 2), r);
      rotateHead(x, bias ? bias + usize(h) * head : 0, qWeight, r, table, out, half, 4);
    }
    for (let h = 0; h < kvHeads; h++) {
      const x = row + usize(heads + h) * head;
      const kBlock = block + ((usize(h) * 2 * cap * usize(d)) << 2);
      const r = kWeight ? headScale(x, d, eps) : 1;
      store<f32>(scales + (usize(heads + h) << 2), r);
      const panel = kBlock + (((index >> 3) * usize(d) * 8 + (index & 7)) << 2);
      rotateHead(x, bias ? bias + usize(heads + h) * head : 0, kWeight, r, table, panel, half, 32);
      const v = row + usize(heads + kvHeads + h) * head;
      const vBias = bias + usize(heads + kvHeads + h) * head;
      const vBlock = kBlock + ((cap * usize(d)) << 2);
      for (let p: usize = 0; p < usize(d); p += 8) {
        const out = vBlock + ((p * cap + index * 8) << 2);
        let a = v128.load(v + (p << 2));
        let b = v128.load(v + (p << 2), 16);
        if (bias) {
          a = f32x4.add(a, v128.load(vBias + (p << 2)));
          b = f32x4.add(b, v128.load(vBias + (p << 2), 16));
        }
        v128.store(out, a);
        v128.store(out, b, 16);
      }
    }
  }
}

/** Copies the first tokens of a KV block to another block. */
export function moveBlock(
  kvCache: usize, from: i32, fromCap: i32, to: i32, toCap: i32, tokens: i32, kvHeads: i32, d: i32, part: i32, parts: i32,
): void {
  const width = usize(d) << 2;
  for (let kv = part; kv < kvHeads; kv += parts) {
    let source = kvCache + (usize(from) << 2) + usize(kv) * 2 * usize(fromCap) * width;
    let target = kvCache + (usize(to) << 2) + usize(kv) * 2 * usize(toCap) * width;
    memory.copy(target, source, usize((tokens + 7) & ~7) * width);
    source += usize(fromCap) * width;
    target += usize(toCap) * width;
    for (let panel = 0; panel < d >> 3; panel++, source += usize(fromCap) << 5, target += usize(toCap) << 5) {
      memory.copy(target, source, usize(tokens) << 5);
    }
  }
}

function headScale(x: usize, d: i32, eps: f32): f32 {
  let sum = f32x4.splat(0);
  for (let i: usize = 0; i < usize(d) << 2; i += 16) {
    const v = v128.load(x + i);
    sum = madd(v, v, sum);
  }
  return 1 / sqrt(sum4(sum) / f32(d) + eps);
}

/**
 * Norms and rotates one head: (a, b) becomes (a cos − b sin, b cos + a sin), where a and b are its halves; outputs are
 * `apart` bytes apart.
 */
function rotateHead(x: usize, bias: usize, w: usize, r: f32, table: usize, out: usize, half: usize, apart: usize): void {
  const r4 = f32x4.splat(r);
  for (let i: usize = 0; i < half; i += 16) {
    const c = v128.load(table + i);
    const s = v128.load(table + half + i);
    let a = v128.load(x + i);
    let b = v128.load(x + half + i);
    if (bias) {
      a = f32x4.add(a, v128.load(bias + i));
      b = f32x4.add(b, v128.load(bias + half + i));
    }
    a = f32x4.mul(a, r4);
    b = f32x4.mul(b, r4);
    if (w) {
      a = f32x4.mul(a, v128.load(w + i));
      b = f32x4.mul(b, v128.load(w + half + i));
    }
    put(out + (i >> 2) * apart, f32x4.sub(f32x4.mul(a, c), f32x4.mul(b, s)), apart);
    put(out + ((half + i) >> 2) * apart, f32x4.add(f32x4.mul(b, c), f32x4.mul(a, s)), apart);
  }
}

// @ts-ignore: decorator
@inline
function put(at: usize, four: v128, apart: usize): void {
  if (apart == 4) {
    v128.store(at, four);
    return;
  }
  store<f32>(at, f32x4.extract_lane(four, 0));
  store<f32>(at + apart, f32x4.extract_lane(four, 1));
  store<f32>(at + 2 * apart, f32x4.extract_lane(four, 2));
  store<f32>(at + 3 * apart, f32x4.extract_lane(four, 3));
}

/** In place: rotates the gradients of q and k heads back to gradients of the normed rows. v is unchanged. */
export function unrotate(
  dqkv: usize, positions: usize, cosSin: usize, rows: i32, heads: i32, kvHeads: i32, d: i32, part: i32, parts: i32,
): void {
  const width = usize((heads + 2 * kvHeads) * d) << 2;
  const half = usize(d) << 1;
  const head = usize(d) << 2;
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const table = cosSin + usize(load<i32>(positions + (usize(t) << 2))) * head;
    for (let h = 0; h < heads + kvHeads; h++) {
      const g = dqkv + usize(t) * width + usize(h) * head;
      for (let i: usize = 0; i < half; i += 16) {
        const c = v128.load(table + i);
        const s = v128.load(table + half + i);
        const a = v128.load(g + i);
        const b = v128.load(g + half + i);
        v128.store(g + i, f32x4.add(f32x4.mul(a, c), f32x4.mul(b, s)));
        v128.store(g + half + i, f32x4.sub(f32x4.mul(b, c), f32x4.mul(a, s)));
      }
    }
  }
}

/**
 * Computes dw += Σ over tokens and heads of dy · x · rstd, for the heads from `first` on. Call it before
 * headNormBackward overwrites dy.
 */
export function headNormWeightBackward(
  dqkv: usize, qkv: usize, rstd: usize, dw: usize, rows: i32, first: i32, count: i32, heads: i32, kvHeads: i32, d: i32,
  part: i32, parts: i32,
): void {
  const width = usize((heads + 2 * kvHeads) * d) << 2;
  const from = usize(bound(d >> 2, part, parts)) << 4;
  const to = usize(bound(d >> 2, part + 1, parts)) << 4;
  for (let t = 0; t < rows; t++) {
    for (let h = first; h < first + count; h++) {
      const at = usize(t) * width + ((usize(h) * usize(d)) << 2);
      const r = v128.load32_splat(rstd + ((usize(t) * usize(heads + kvHeads) + usize(h)) << 2));
      for (let i = from; i < to; i += 16) {
        const g = f32x4.mul(v128.load(dqkv + at + i), f32x4.mul(v128.load(qkv + at + i), r));
        v128.store(dw + i, f32x4.add(v128.load(dw + i), g));
      }
    }
  }
}

/** In place: turns gradients of normed q and k heads into gradients of the rows of qkv. */
export function headNormBackward(
  dqkv: usize, qkv: usize, rstd: usize, qWeight: usize, kWeight: usize, rows: i32, heads: i32, kvHeads: i32, d: i32,
  part: i32, parts: i32,
): void {
  const width = usize((heads + 2 * kvHeads) * d) << 2;
  const head = usize(d) << 2;
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    for (let h = 0; h < heads + kvHeads; h++) {
      const g = dqkv + usize(t) * width + usize(h) * head;
      const x = qkv + usize(t) * width + usize(h) * head;
      const w = h < heads ? qWeight : kWeight;
      const r = load<f32>(rstd + ((usize(t) * usize(heads + kvHeads) + usize(h)) << 2));
      let dot = f32x4.splat(0);
      for (let i: usize = 0; i < head; i += 16) {
        dot = madd(f32x4.mul(v128.load(g + i), v128.load(w + i)), v128.load(x + i), dot);
      }
      const r4 = f32x4.splat(r);
      const b4 = f32x4.splat((-sum4(dot) * r * r * r) / f32(d));
      for (let i: usize = 0; i < head; i += 16) {
        const dy = f32x4.mul(v128.load(g + i), v128.load(w + i));
        v128.store(g + i, madd(v128.load(x + i), b4, f32x4.mul(dy, r4)));
      }
    }
  }
}
