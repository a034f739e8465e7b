// Parts of kernels that the host may have faster code for, with the same bits. Calling it takes longer than a small product, so
// work is written down as a list and done by one call.
import { product } from "./micro";

/** Does a list of work, in order. */
// @ts-ignore: decorator
@external("env", "runCommands")
declare function hostRun(list: usize, count: i32): void;

/** Bytes of an entry: thirteen words that the code of its kind is told, then which kind. */
const ENTRY: usize = 64;
const KIND: usize = 52;
const PRODUCT: i32 = 0;
const SOFTMAX: i32 = 1;
const SCORE_GRADIENTS: i32 = 2;

/** Entries a list has room for, and bytes. */
const ROOM: i32 = 64;
export const LIST_BYTES: usize = 4096;

/** Whether the host has such code and it is to be used; each thread has an instance, so a global of its own. */
export let hasHost = false;

let list: usize = 0;
let count: i32 = 0;

/** Says whether to use the host's code. */
export function useHost(on: bool): void {
  hasHost = on;
}

/** Begins a list in these bytes. */
export function beginList(at: usize): void {
  list = at;
  count = 0;
}

/** Has everything done that is on the list. */
export function finishList(): void {
  if (count == 0) return;
  const n = count;
  count = 0; // first: should it fail, nobody does the rest
  hostRun(list, n);
}

/** Room for one more. */
function entry(kind: i32): usize {
  if (count == ROOM) finishList();
  const at = list + usize(count++) * ENTRY;
  store<i32>(at, kind, KIND);
  return at;
}

/** The host's code does not trap: what would reach beyond the memory is refused here. */
function checkInside(end: u64): void {
  if (end > u64(memory.size()) << 16) unreachable();
}

/** `product`: the host's, when the list is done, or at once. */
export function anyProduct(
  a: usize, aRow: usize, aK: usize, b: usize, bPanel: usize, panels: i32, c: usize, cRow: usize, m: i32, k: i32, add: bool,
): void {
  if (!hasHost) {
    product(a, aRow, aK, b, bPanel, panels, c, cRow, m, k, add);
    return;
  }
  if (m <= 0 || panels <= 0) return;
  if (k > 0) {
    checkInside(u64(a) + u64(m - 1) * u64(aRow) + u64(k - 1) * u64(aK) + 4);
    checkInside(u64(b) + u64(panels - 1) * u64(bPanel) + (u64(k) << 5));
  }
  checkInside(u64(c) + u64(m - 1) * u64(cRow) + (u64(panels) << 5));
  const at = entry(PRODUCT);
  store<usize>(at, a);
  store<usize>(at, aRow << 2, 4);
  store<usize>(at, aRow, 8);
  store<usize>(at, aK, 12);
  store<usize>(at, b, 16);
  store<usize>(at, bPanel, 20);
  store<i32>(at, panels, 24);
  store<usize>(at, c, 28);
  store<usize>(at, cRow, 32);
  store<i32>(at, m, 36);
  store<i32>(at, k, 40);
  store<i32>(at, i32(add), 44);
  // Three panels are 96 bytes for each of k, which the tiles share; only where panels follow upon each other.
  store<i32>(at, bPanel == usize(k) << 5 ? (96 + ((m - 1) >> 2)) / ((m + 3) >> 2) : 0, 48);
}

/**
 * Rows of scores to weights, of which the first row sees `seen` and each further one `step` more; 0 behind, up to `width`, a
 * multiple of eight. The highest score times `scale` and the sum of the weights go into the last two floats of each row.
 */
export function hostSoftmax(s: usize, sRow: usize, rows: i32, seen: i32, step: i32, width: i32, scale: f32): void {
  if (rows <= 0) return;
  scores(entry(SOFTMAX), s, sRow, rows, seen, step, width, scale);
}

/** Scores to weights p and, in `dp`, p · (dp − dot) · scale; of `lse` and `dots` each row has one, `dotRow` bytes apart. */
export function hostScoreGradients(
  s: usize, dp: usize, sRow: usize, rows: i32, seen: i32, width: i32, scale: f32, lse: usize, dots: usize, dotRow: usize,
): void {
  if (rows <= 0) return;
  const at = entry(SCORE_GRADIENTS);
  scores(at, s, sRow, rows, seen, 1, width, scale);
  store<usize>(at, dp, 28);
  store<usize>(at, lse, 32);
  store<usize>(at, dots, 36);
  store<usize>(at, dotRow, 40);
  checkInside(u64(dp) + u64(rows) * u64(sRow));
  checkInside(u64(max(lse, dots)) + u64(rows - 1) * u64(dotRow) + 4);
}

function scores(at: usize, s: usize, sRow: usize, rows: i32, seen: i32, step: i32, width: i32, scale: f32): void {
  if ((width & 7) != 0 || width < 8 || u64(width) << 2 > u64(sRow)) unreachable();
  checkInside(u64(s) + u64(rows) * u64(sRow));
  store<usize>(at, s);
  store<usize>(at, sRow, 4);
  store<i32>(at, rows, 8);
  store<i32>(at, seen, 12);
  store<i32>(at, step, 16);
  store<i32>(at, width, 20);
  store<f32>(at, scale, 24);
}
