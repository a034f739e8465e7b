// Queues parts of kernels that may run as machine code, with the same bits. A call out of WebAssembly costs more than a
// small matmul, so work is collected in a command list and run by one call (x64/command-list.ts).
import { matmul } from "./microkernel";

/** Runs a command list, in order. */
// @ts-ignore: decorator
@external("env", "runCommands")
declare function hostRun(list: usize, count: i32): void;

/** Bytes of an entry, and of its thirteen parameter words, which the opcode follows. */
const ENTRY: usize = 64;
const OPCODE: usize = 52;
const MATMUL: i32 = 0;
const SOFTMAX: i32 = 1;
const SCORE_GRADIENTS: i32 = 2;

/** Capacity of a list in entries and in bytes. */
const ROOM: i32 = 64;
export const LIST_BYTES: usize = 4096;

/** Whether machine code is used. Each thread has its own instance and so its own globals. */
export let hasHost = false;

let list: usize = 0;
let count: i32 = 0;

/** Switches machine code on or off. */
export function useHost(on: bool): void {
  hasHost = on;
}

/** Starts a list at this address. */
export function beginList(at: usize): void {
  list = at;
  count = 0;
}

/** Runs all entries of the list. */
export function finishList(): void {
  if (count == 0) return;
  const n = count;
  count = 0; // cleared first: if the call throws, these entries must not run later
  hostRun(list, n);
}

/** Allocates an entry; runs the list first if it is full. */
function entry(opcode: i32): usize {
  if (count == ROOM) finishList();
  const at = list + usize(count++) * ENTRY;
  store<i32>(at, opcode, OPCODE);
  return at;
}

/** Traps if `end` is outside the memory, since machine code would not trap. */
function checkInside(end: u64): void {
  if (end > u64(memory.size()) << 16) unreachable();
}

/** Queues a `matmul` on the list for machine code, or computes it at once. */
export function enqueueMatmul(
  a: usize, aRow: usize, aK: usize, b: usize, bPanel: usize, panels: i32, c: usize, cRow: usize, m: i32, k: i32, add: bool,
): void {
  if (!hasHost) {
    matmul(a, aRow, aK, b, bPanel, panels, c, cRow, m, k, add);
    return;
  }
  if (m <= 0 || panels <= 0) return;
  if (k > 0) {
    checkInside(u64(a) + u64(m - 1) * u64(aRow) + u64(k - 1) * u64(aK) + 4);
    checkInside(u64(b) + u64(panels - 1) * u64(bPanel) + (u64(k) << 5));
  }
  checkInside(u64(c) + u64(m - 1) * u64(cRow) + (u64(panels) << 5));
  const at = entry(MATMUL);
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
  // Three panels take 96 bytes per k, divided among the tiles; only if panels are contiguous.
  store<i32>(at, bPanel == usize(k) << 5 ? (96 + ((m - 1) >> 2)) / ((m + 3) >> 2) : 0, 48);
}

/**
 * Queues the softmax numerators of rows of scores. The first row sees `seen` keys, each further one `step` more; masked
 * scores up to `width`, a multiple of eight, become 0. The last two floats of each row get the highest score times
 * `scale` and the sum.
 */
export function hostSoftmax(s: usize, sRow: usize, rows: i32, seen: i32, step: i32, width: i32, scale: f32): void {
  if (rows <= 0) return;
  scores(entry(SOFTMAX), s, sRow, rows, seen, step, width, scale);
}

/**
 * Queues turning scores into probabilities p and `dp` into p · (dp − dot) · scale; `lse` and `dots` have one float per
 * row, `dotRow` bytes apart.
 */
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
