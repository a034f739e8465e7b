// Parts of kernels that the host may have faster code for; it must give the same bits.
import { product } from "./micro";

// @ts-ignore: decorator
@external("env", "product")
declare function hostProduct(
  a: usize, aTile: usize, aRow: usize, aK: usize, b: usize, bPanel: usize, panels: i32, c: usize, cRow: usize, m: i32, k: i32, add: bool,
): void;

/**
 * Rows of scores to weights, of which the first row sees `seen` and each further one `step` more; 0 behind, up to `width`, a
 * multiple of eight. The highest score times `scale` and the sum of the weights go into the last two floats of each row.
 */
// @ts-ignore: decorator
@external("env", "softmax")
export declare function hostSoftmax(s: usize, sRow: usize, rows: i32, seen: i32, step: i32, width: i32, scale: f32): void;

/** Scores to weights p and, in `dp`, p · (dp − dot) · scale; of `lse` and `dots` each row has one, `dotRow` bytes apart. */
// @ts-ignore: decorator
@external("env", "scoreGradients")
export declare function hostScoreGradients(
  s: usize, dp: usize, sRow: usize, rows: i32, seen: i32, width: i32, scale: f32, lse: usize, dots: usize, dotRow: usize,
): void;

/** Whether the host has such code and it is to be used; each thread has an instance, so a global of its own. */
export let hasHost = false;

/** Says whether to use the host's code. */
export function useHost(on: bool): void {
  hasHost = on;
}

/** `product`, the host's where it has one. */
export function anyProduct(
  a: usize, aRow: usize, aK: usize, b: usize, bPanel: usize, panels: i32, c: usize, cRow: usize, m: i32, k: i32, add: bool,
): void {
  if (hasHost) hostProduct(a, aRow << 2, aRow, aK, b, bPanel, panels, c, cRow, m, k, add);
  else product(a, aRow, aK, b, bPanel, panels, c, cRow, m, k, add);
}
