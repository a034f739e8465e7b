// Tests bf16 on the host: rounds to nearest, ties to even, and keeps NaN.
import { expect, test } from "vitest";
import { bf16ToFloats, floatsToBf16 } from "./bf16.ts";

test("rounding is to the nearest, ties to even", () => {
  const round = (x: number) => bf16ToFloats(floatsToBf16(Float32Array.of(x)))[0]!;
  const step = 2 ** -7; // distance of neighbouring bf16 numbers near 1
  expect(round(1 + step / 2)).toBe(1);
  expect(round(1 + (3 * step) / 2)).toBe(1 + 2 * step);
  expect(round(1 + step * 0.51)).toBe(1 + step);
  expect(round(-3)).toBe(-3);
  expect(round(0)).toBe(0);
  expect(Object.is(round(-0), -0)).toBe(true);
  expect(round(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
  expect(round(3.4e38)).toBe(Number.POSITIVE_INFINITY);
  expect(round(Number.NaN)).toBeNaN();
});
