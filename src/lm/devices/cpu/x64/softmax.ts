// The part of attention between its matmuls, in machine code: softmax of rows of scores and, in backward, the gradients
// of scores. The bits equal wasm/attention.ts, so sums stay four lanes wide.
import { Assembler, type Label, type Memory, type Register, type Vector } from "./assembler.ts";
import { emitConstants, exp, TABLE } from "./exp.ts";
import { BASE_OFFSET } from "./matmul.ts";

/**
 * Parameters of `softmax`: 32-bit words, then the memory's address, as for a matmul. `scale` holds the bits of a float.
 */
export const SOFTMAX_PARAMETERS = ["s", "sRow", "rows", "seen", "step", "width", "scale"] as const;

/** Parameters of `scoreGradients`; rows of `lse` and `dots` are `dotRow` bytes apart. */
export const GRADIENT_PARAMETERS = [
  "s",
  "sRow",
  "rows",
  "seen",
  "step",
  "width",
  "scale",
  "dp",
  "lse",
  "dots",
  "dotRow",
] as const;

const MINUS_INFINITY = 0xff800000 | 0;

const PARAMS: Register = "rdi";
const ROW: Register = "rsi"; // current row of scores
const OTHER: Register = "rdx"; // the same row of dp
const J: Register = "rcx"; // byte offset within the row
const SEEN: Register = "r8"; // bytes of the row inside the causal mask
const WIDTH: Register = "r9"; // bytes of the row to compute
const ROWS: Register = "r10";
const LSE: Register = "r11";
const DOTS: Register = "rbx";

const word = (names: readonly string[], name: string): Memory => ({ base: PARAMS, offset: 4 * names.indexOf(name) });

/** Loads the parameters that both routines have. */
function loadParameters(asm: Assembler, names: readonly string[], constants: Label): void {
  asm.lea(TABLE, constants);
  asm.mov32(ROW, word(names, "s"));
  asm.add(ROW, { base: PARAMS, offset: BASE_OFFSET });
  asm.mov32(ROWS, word(names, "rows"));
  asm.mov32(SEEN, word(names, "seen"));
  asm.shl(SEEN, 2);
  asm.mov32(WIDTH, word(names, "width"));
  asm.shl(WIDTH, 2);
}

/** Sets scores from SEEN to WIDTH to −∞; with `alsoOther`, also sets that part of OTHER to 0. */
function mask(asm: Assembler, { alsoOther }: { readonly alsoOther: boolean }): void {
  const [loop, done] = [asm.label(), asm.label()];
  asm.mov(J, SEEN);
  asm.bind(loop);
  asm.cmp(J, WIDTH);
  asm.jge(done);
  asm.mov32({ base: ROW, index: J }, MINUS_INFINITY);
  if (alsoOther) asm.mov32({ base: OTHER, index: J }, 0);
  asm.add(J, 4);
  asm.jmp(loop);
  asm.bind(done);
}

/** Adds `step` keys to SEEN, for the next row. */
function nextSeen(asm: Assembler, names: readonly string[]): void {
  asm.mov32(J, word(names, "step"));
  asm.shl(J, 2);
  asm.add(SEEN, J);
}

/**
 * Assembles `softmax(parameters)`: turns each row of scores into exp(scale · (score − max)), with 0 for masked scores
 * up to `width`, a multiple of eight. The last two floats of a row (`sRow` bytes long) get max · scale and the row's
 * sum.
 */
export function assembleSoftmax(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const constants = asm.label();
  const [top, sum, scale, shift, bad] = [0, 1, 2, 3, 8] as const;
  const names = SOFTMAX_PARAMETERS;
  loadParameters(asm, names, constants);
  asm.vbroadcastss(scale, word(names, "scale"));
  const row = asm.here();
  mask(asm, { alsoOther: false });
  // The row's maximum. NaN must win, as in WebAssembly; vmaxps alone may drop it.
  asm.vmovups(top, { base: ROW });
  asm.vcmpunordps(bad, top, top);
  asm.mov(J, 32);
  const loopMax = asm.here();
  const haveMax = asm.label();
  asm.cmp(J, WIDTH);
  asm.jge(haveMax);
  asm.vmovups(4, { base: ROW, index: J });
  asm.vcmpunordps(5, 4, 4);
  asm.vorps(bad, bad, 5);
  asm.vmaxps(top, top, 4);
  asm.add(J, 32);
  asm.jmp(loopMax);
  asm.bind(haveMax);
  asm.vorps(top, top, bad); // all ones is a NaN
  // Horizontal max; NaN must win (vmaxps returns its second operand if either is NaN).
  asm.vextractf128(4, top, 1);
  reduceMax(asm, top, 4, bad);
  asm.vpermilps(4, top, 0b01_00_11_10);
  reduceMax(asm, top, 4, bad);
  asm.vpermilps(4, top, 0b10_11_00_01);
  reduceMax(asm, top, 4, bad);
  asm.vmulps(shift, top, scale, 128);
  asm.vbroadcastss(shift, shift);
  asm.vxorps(sum, sum, sum);
  asm.mov(J, 0);
  const loop = asm.here();
  asm.vmulps(4, scale, { base: ROW, index: J });
  asm.vsubps(4, 4, shift);
  exp(asm, 4, 5, 6, 7);
  asm.vmovups({ base: ROW, index: J }, 4);
  asm.vaddps(sum, sum, 4, 128);
  asm.vextractf128(4, 4, 1);
  asm.vaddps(sum, sum, 4, 128);
  asm.add(J, 32);
  asm.cmp(J, WIDTH);
  asm.jl(loop);
  // Adds the four lanes as (0 + 1) + (2 + 3).
  asm.vpermilps(4, sum, 0b10_11_00_01);
  asm.vaddps(sum, sum, 4, 128);
  asm.vpermilps(4, sum, 0b01_00_11_10);
  asm.vaddps(sum, sum, 4, 128);
  nextSeen(asm, names);
  asm.mov32(J, word(names, "sRow"));
  asm.add(ROW, J);
  asm.vmovss({ base: ROW, offset: -8 }, shift);
  asm.vmovss({ base: ROW, offset: -4 }, sum);
  asm.sub(ROWS, 1);
  asm.jne(row);
  asm.vzeroupper();
  asm.ret();
  emitConstants(asm, constants);
  return asm.finish();
}

/** Computes top = max(top, other) over four lanes, with NaN if either is NaN. */
function reduceMax(asm: Assembler, top: Vector, other: Vector, bad: Vector): void {
  asm.vcmpunordps(bad, top, other);
  asm.vmaxps(top, top, other, 128);
  asm.vorps(top, top, bad, 128);
}

/**
 * Assembles `scoreGradients(parameters)`: writes p = exp(scale · score − lse) to `s` and p · (dp − dot) · scale to
 * `dp`; both are 0 for masked scores.
 */
export function assembleScoreGradients(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const constants = asm.label();
  const [lse, dot, scale] = [0, 1, 2] as const;
  const names = GRADIENT_PARAMETERS;
  asm.push(DOTS);
  loadParameters(asm, names, constants);
  for (const [register, name] of [
    [OTHER, "dp"],
    [LSE, "lse"],
    [DOTS, "dots"],
  ] as const) {
    asm.mov32(register, word(names, name));
    asm.add(register, { base: PARAMS, offset: BASE_OFFSET });
  }
  asm.vbroadcastss(scale, word(names, "scale"));
  const row = asm.here();
  mask(asm, { alsoOther: true });
  asm.vbroadcastss(lse, { base: LSE });
  asm.vbroadcastss(dot, { base: DOTS });
  asm.mov(J, 0);
  const loop = asm.here();
  asm.vmulps(4, scale, { base: ROW, index: J });
  asm.vsubps(4, 4, lse);
  exp(asm, 4, 5, 6, 7);
  asm.vmovups({ base: ROW, index: J }, 4);
  asm.vmovups(5, { base: OTHER, index: J });
  asm.vsubps(5, 5, dot);
  asm.vmulps(4, 4, 5);
  asm.vmulps(4, 4, scale);
  asm.vmovups({ base: OTHER, index: J }, 4);
  asm.add(J, 32);
  asm.cmp(J, WIDTH);
  asm.jl(loop);
  nextSeen(asm, names);
  asm.mov32(J, word(names, "sRow"));
  asm.add(ROW, J);
  asm.add(OTHER, J);
  asm.mov32(J, word(names, "dotRow"));
  asm.add(LSE, J);
  asm.add(DOTS, J);
  asm.sub(ROWS, 1);
  asm.jne(row);
  asm.vzeroupper();
  asm.pop(DOTS);
  asm.ret();
  emitConstants(asm, constants);
  return asm.finish();
}
