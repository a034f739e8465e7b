// Vector exp, and sums over lanes in a fixed order.
import { madd } from "./microkernel";

/** exp of four floats, within 2 ulp between −87 and 88; 0 below. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  // Computes 2^k · e^r with r in ±ln2/2; ln2 is split in two parts so that r stays exact.
  const inRange = f32x4.ge(x, f32x4.splat(-87.33654));
  // One instruction each; NaN becomes 0.
  const clamped = f32x4.pmin(f32x4.splat(88.72283), f32x4.pmax(f32x4.splat(-87.33654), x));
  const k = f32x4.nearest(f32x4.mul(clamped, f32x4.splat(1.44269504)));
  let r = madd(k, f32x4.splat(-0.693359375), clamped);
  r = madd(k, f32x4.splat(2.12194440e-4), r);
  let p = f32x4.splat(1.9875691500e-4);
  p = madd(p, r, f32x4.splat(1.3981999507e-3));
  p = madd(p, r, f32x4.splat(8.3334519073e-3));
  p = madd(p, r, f32x4.splat(4.1665795894e-2));
  p = madd(p, r, f32x4.splat(1.6666665459e-1));
  p = madd(p, r, f32x4.splat(5.0000001201e-1));
  p = f32x4.add(madd(f32x4.mul(r, r), p, r), f32x4.splat(1));
  // 1.5 · 2^23 + 127 + k has k + 127 in its lowest bits, so shifting its bits gives 2^k without a conversion that
  // checks for overflow.
  const scale = i32x4.shl(f32x4.add(k, f32x4.splat(12583039)), 23);
  return v128.and(f32x4.mul(p, scale), inRange);
}

/** Adds four lanes as (0 + 1) + (2 + 3). */
// @ts-ignore: decorator
@inline
export function sum4(x: v128): f32 {
  return (
    f32x4.extract_lane(x, 0) + f32x4.extract_lane(x, 1) + (f32x4.extract_lane(x, 2) + f32x4.extract_lane(x, 3))
  );
}

// @ts-ignore: decorator
@inline
export function max4(x: v128): f32 {
  return max(
    max(f32x4.extract_lane(x, 0), f32x4.extract_lane(x, 1)),
    max(f32x4.extract_lane(x, 2), f32x4.extract_lane(x, 3)),
  );
}

/** First index of a part's share of `n` items. */
// @ts-ignore: decorator
@inline
export function bound(n: i32, part: i32, parts: i32): i32 {
  return i32((i64(n) * part) / parts);
}
