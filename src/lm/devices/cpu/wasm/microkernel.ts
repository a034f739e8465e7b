// The innermost loop: C[rows, 8] (+)= A[rows, K] · B[K, 8] for one to four rows, with B packed eight columns wide.
// Each output is one sum over ascending k in one accumulator, so its bits depend only on its own row and column:
// not on its tile, the number of threads, or other rows of the batch.
// Four rows by two vectors use eight accumulators: more of them, or an unrolled k, makes V8 spill registers and halves
// the speed.
// Strides are in bytes: `aRow` between rows of A, `aK` along k, `cRow` between rows of C.

// @ts-ignore: decorator
@inline
export function madd(a: v128, b: v128, c: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return v128.relaxed_madd<f32>(a, b, c);
  return f32x4.add(f32x4.mul(a, b), c);
}

export function micro4(a: usize, aRow: usize, aK: usize, b: usize, c: usize, cRow: usize, k: i32, add: bool): void {
  let a1 = a + aRow;
  let a2 = a1 + aRow;
  let a3 = a2 + aRow;
  const c1 = c + cRow;
  const c2 = c1 + cRow;
  const c3 = c2 + cRow;
  let x0 = f32x4.splat(0);
  let y0 = x0, x1 = x0, y1 = x0, x2 = x0, y2 = x0, x3 = x0, y3 = x0;
  if (add) {
    x0 = v128.load(c);
    y0 = v128.load(c, 16);
    x1 = v128.load(c1);
    y1 = v128.load(c1, 16);
    x2 = v128.load(c2);
    y2 = v128.load(c2, 16);
    x3 = v128.load(c3);
    y3 = v128.load(c3, 16);
  }
  for (let i = 0; i < k; i++) {
    const bx = v128.load(b);
    const by = v128.load(b, 16);
    const s0 = v128.load32_splat(a);
    x0 = madd(s0, bx, x0);
    y0 = madd(s0, by, y0);
    const s1 = v128.load32_splat(a1);
    x1 = madd(s1, bx, x1);
    y1 = madd(s1, by, y1);
    const s2 = v128.load32_splat(a2);
    x2 = madd(s2, bx, x2);
    y2 = madd(s2, by, y2);
    const s3 = v128.load32_splat(a3);
    x3 = madd(s3, bx, x3);
    y3 = madd(s3, by, y3);
    a += aK;
    a1 += aK;
    a2 += aK;
    a3 += aK;
    b += 32;
  }
  v128.store(c, x0);
  v128.store(c, y0, 16);
  v128.store(c1, x1);
  v128.store(c1, y1, 16);
  v128.store(c2, x2);
  v128.store(c2, y2, 16);
  v128.store(c3, x3);
  v128.store(c3, y3, 16);
}

export function micro1(a: usize, aK: usize, b: usize, c: usize, k: i32, add: bool): void {
  let x = f32x4.splat(0);
  let y = x;
  if (add) {
    x = v128.load(c);
    y = v128.load(c, 16);
  }
  for (let i = 0; i < k; i++) {
    const s = v128.load32_splat(a);
    x = madd(s, v128.load(b), x);
    y = madd(s, v128.load(b, 16), y);
    a += aK;
    b += 32;
  }
  v128.store(c, x);
  v128.store(c, y, 16);
}

/** One row by four panels, `bPanel` bytes apart: enough independent sums to hide latency if there is only one row. */
export function micro1x4(a: usize, aK: usize, b: usize, bPanel: usize, c: usize, k: i32, add: bool): void {
  let b1 = b + bPanel;
  let b2 = b1 + bPanel;
  let b3 = b2 + bPanel;
  let x0 = f32x4.splat(0);
  let y0 = x0, x1 = x0, y1 = x0, x2 = x0, y2 = x0, x3 = x0, y3 = x0;
  if (add) {
    x0 = v128.load(c);
    y0 = v128.load(c, 16);
    x1 = v128.load(c, 32);
    y1 = v128.load(c, 48);
    x2 = v128.load(c, 64);
    y2 = v128.load(c, 80);
    x3 = v128.load(c, 96);
    y3 = v128.load(c, 112);
  }
  for (let i = 0; i < k; i++) {
    const s = v128.load32_splat(a);
    x0 = madd(s, v128.load(b), x0);
    y0 = madd(s, v128.load(b, 16), y0);
    x1 = madd(s, v128.load(b1), x1);
    y1 = madd(s, v128.load(b1, 16), y1);
    x2 = madd(s, v128.load(b2), x2);
    y2 = madd(s, v128.load(b2, 16), y2);
    x3 = madd(s, v128.load(b3), x3);
    y3 = madd(s, v128.load(b3, 16), y3);
    a += aK;
    b += 32;
    b1 += 32;
    b2 += 32;
    b3 += 32;
  }
  v128.store(c, x0);
  v128.store(c, y0, 16);
  v128.store(c, x1, 32);
  v128.store(c, y1, 48);
  v128.store(c, x2, 64);
  v128.store(c, y2, 80);
  v128.store(c, x3, 96);
  v128.store(c, y3, 112);
}

/** Two rows by two panels. */
export function micro2x2(
  a: usize, aRow: usize, aK: usize, b: usize, bPanel: usize, c: usize, cRow: usize, k: i32, add: bool,
): void {
  let a1 = a + aRow;
  let b1 = b + bPanel;
  const c1 = c + cRow;
  let x0 = f32x4.splat(0);
  let y0 = x0, x1 = x0, y1 = x0, x2 = x0, y2 = x0, x3 = x0, y3 = x0;
  if (add) {
    x0 = v128.load(c);
    y0 = v128.load(c, 16);
    x1 = v128.load(c, 32);
    y1 = v128.load(c, 48);
    x2 = v128.load(c1);
    y2 = v128.load(c1, 16);
    x3 = v128.load(c1, 32);
    y3 = v128.load(c1, 48);
  }
  for (let i = 0; i < k; i++) {
    const s0 = v128.load32_splat(a);
    const s1 = v128.load32_splat(a1);
    let v = v128.load(b);
    x0 = madd(s0, v, x0);
    x2 = madd(s1, v, x2);
    v = v128.load(b, 16);
    y0 = madd(s0, v, y0);
    y2 = madd(s1, v, y2);
    v = v128.load(b1);
    x1 = madd(s0, v, x1);
    x3 = madd(s1, v, x3);
    v = v128.load(b1, 16);
    y1 = madd(s0, v, y1);
    y3 = madd(s1, v, y3);
    a += aK;
    a1 += aK;
    b += 32;
    b1 += 32;
  }
  v128.store(c, x0);
  v128.store(c, y0, 16);
  v128.store(c, x1, 32);
  v128.store(c, y1, 48);
  v128.store(c1, x2);
  v128.store(c1, y2, 16);
  v128.store(c1, x3, 32);
  v128.store(c1, y3, 48);
}

/**
 * Computes C[m, 8·panels] (+)= A[m, k] · B with panels of B `bPanel` bytes apart, using the best tile for each part.
 */
export function matmul(
  a: usize, aRow: usize, aK: usize, b: usize, bPanel: usize, panels: i32, c: usize, cRow: usize, m: i32, k: i32, add: bool,
): void {
  const tail = m & ~3;
  if (tail > 0) {
    for (let p = 0; p < panels; p++) {
      const bp = b + usize(p) * bPanel;
      const cp = c + (usize(p) << 5);
      for (let r = 0; r < tail; r += 4) micro4(a + usize(r) * aRow, aRow, aK, bp, cp + usize(r) * cRow, cRow, k, add);
    }
  }
  let r = tail;
  if (m - r >= 2) {
    const ar = a + usize(r) * aRow;
    const cr = c + usize(r) * cRow;
    let p = 0;
    for (; p + 2 <= panels; p += 2) micro2x2(ar, aRow, aK, b + usize(p) * bPanel, bPanel, cr + (usize(p) << 5), cRow, k, add);
    for (; p < panels; p++) {
      micro1(ar, aK, b + usize(p) * bPanel, cr + (usize(p) << 5), k, add);
      micro1(ar + aRow, aK, b + usize(p) * bPanel, cr + cRow + (usize(p) << 5), k, add);
    }
    r += 2;
  }
  if (r < m) {
    const ar = a + usize(r) * aRow;
    const cr = c + usize(r) * cRow;
    let p = 0;
    for (; p + 4 <= panels; p += 4) micro1x4(ar, aK, b + usize(p) * bPanel, bPanel, cr + (usize(p) << 5), k, add);
    for (; p < panels; p++) micro1(ar, aK, b + usize(p) * bPanel, cr + (usize(p) << 5), k, add);
  }
}
