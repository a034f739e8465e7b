// The machine code of what attention does between its products: rows of scores to weights, and on the way back to the
// scores' gradients. Bits as in assembly/attention.ts; sums stay four wide.
import { Assembler, type Label, type Place, type Register, type Vector } from "./assembler.ts";
import { exp, TABLE, table } from "./exp.ts";
import { BASE_OFFSET } from "./products.ts";

/** Parameters of `softmax`, as for a product: words, then where the memory lies. `scale` is a float's bits. */
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
const ROW: Register = "rsi"; // the row of scores
const OTHER: Register = "rdx"; // the row beside it
const J: Register = "rcx"; // bytes along the row
const SEEN: Register = "r8"; // bytes of the row that are seen
const WIDTH: Register = "r9"; // bytes worked on
const ROWS: Register = "r10";
const LSE: Register = "r11";
const DOTS: Register = "rbx";

const word = (names: readonly string[], name: string): Place => ({ base: PARAMS, offset: 4 * names.indexOf(name) });

/** Reads the parameters that both have. */
function begin(asm: Assembler, names: readonly string[], constants: Label): void {
  asm.addressOf(TABLE, constants);
  asm.moveWord(ROW, word(names, "s"));
  asm.add(ROW, { base: PARAMS, offset: BASE_OFFSET });
  asm.moveWord(ROWS, word(names, "rows"));
  asm.moveWord(SEEN, word(names, "seen"));
  asm.shiftLeft(SEEN, 2);
  asm.moveWord(WIDTH, word(names, "width"));
  asm.shiftLeft(WIDTH, 2);
}

/** Scores from SEEN to WIDTH become −∞, those beside them 0. */
function hide(asm: Assembler, other: boolean): void {
  const [loop, done] = [asm.label(), asm.label()];
  asm.move(J, SEEN);
  asm.place(loop);
  asm.compare(J, WIDTH);
  asm.jumpIf("atLeast", done);
  asm.storeWord({ base: ROW, index: J }, MINUS_INFINITY);
  if (other) asm.storeWord({ base: OTHER, index: J }, 0);
  asm.add(J, 4);
  asm.jump(loop);
  asm.place(done);
}

/** SEEN grows by `step` keys. */
function nextSeen(asm: Assembler, names: readonly string[]): void {
  asm.moveWord(J, word(names, "step"));
  asm.shiftLeft(J, 2);
  asm.add(SEEN, J);
}

/**
 * The code of `softmax(parameters)`: each row of scores to exp(scale · (score − highest)), 0 where not seen, up to `width`,
 * a multiple of eight; highest · scale and the sum of the row go into its last two places, as of `sRow`.
 */
export function assembleSoftmax(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const constants = asm.label();
  const [top, sum, scale, shift, bad] = [0, 1, 2, 3, 8] as const;
  const names = SOFTMAX_PARAMETERS;
  begin(asm, names, constants);
  asm.broadcast(scale, word(names, "scale"));
  const row = asm.here();
  hide(asm, false);
  // The highest; what is not a number makes it so, as in WebAssembly, where the processor's max would drop it.
  asm.load(top, { base: ROW });
  asm.compareLanes("unordered", bad, top, top);
  asm.set(J, 32);
  const highest = asm.here();
  const found = asm.label();
  asm.compare(J, WIDTH);
  asm.jumpIf("atLeast", found);
  asm.load(4, { base: ROW, index: J });
  asm.compareLanes("unordered", 5, 4, 4);
  asm.lanewise("or", bad, bad, 5);
  asm.lanewise("max", top, top, 4);
  asm.add(J, 32);
  asm.jump(highest);
  asm.place(found);
  asm.lanewise("or", top, top, bad); // all ones is not a number either
  // Lanes together: not a number wins as well, since the second operand is given back where one is.
  asm.upper(4, top);
  reduceMax(asm, top, 4, bad);
  asm.permute(4, top, 0b01_00_11_10);
  reduceMax(asm, top, 4, bad);
  asm.permute(4, top, 0b10_11_00_01);
  reduceMax(asm, top, 4, bad);
  asm.lanewise("multiply", shift, top, scale, 4);
  asm.broadcast(shift, shift);
  asm.zero(sum);
  asm.set(J, 0);
  const loop = asm.here();
  asm.lanewise("multiply", 4, scale, { base: ROW, index: J });
  asm.lanewise("subtract", 4, 4, shift);
  exp(asm, 4, 5, 6, 7);
  asm.save({ base: ROW, index: J }, 4);
  asm.lanewise("add", sum, sum, 4, 4);
  asm.upper(4, 4);
  asm.lanewise("add", sum, sum, 4, 4);
  asm.add(J, 32);
  asm.compare(J, WIDTH);
  asm.jumpIf("less", loop);
  // ((0+1)+(2+3))
  asm.permute(4, sum, 0b10_11_00_01);
  asm.lanewise("add", sum, sum, 4, 4);
  asm.permute(4, sum, 0b01_00_11_10);
  asm.lanewise("add", sum, sum, 4, 4);
  nextSeen(asm, names);
  asm.moveWord(J, word(names, "sRow"));
  asm.add(ROW, J);
  asm.saveOne({ base: ROW, offset: -8 }, shift);
  asm.saveOne({ base: ROW, offset: -4 }, sum);
  asm.subtract(ROWS, 1);
  asm.jumpIf("notEqual", row);
  asm.clearUpper();
  asm.ret();
  table(asm, constants);
  return asm.finish();
}

/** top = max(top, other), not a number where either is; four lanes. */
function reduceMax(asm: Assembler, top: Vector, other: Vector, bad: Vector): void {
  asm.compareLanes("unordered", bad, top, other);
  asm.lanewise("max", top, top, other, 4);
  asm.lanewise("or", top, top, bad, 4);
}

/**
 * The code of `scoreGradients(parameters)`: p = exp(scale · score − lse) into `s` and p · (dp − dot) · scale into `dp`, both
 * 0 where not seen.
 */
export function assembleScoreGradients(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const constants = asm.label();
  const [lse, dot, scale] = [0, 1, 2] as const;
  const names = GRADIENT_PARAMETERS;
  asm.push(DOTS);
  begin(asm, names, constants);
  for (const [register, name] of [
    [OTHER, "dp"],
    [LSE, "lse"],
    [DOTS, "dots"],
  ] as const) {
    asm.moveWord(register, word(names, name));
    asm.add(register, { base: PARAMS, offset: BASE_OFFSET });
  }
  asm.broadcast(scale, word(names, "scale"));
  const row = asm.here();
  hide(asm, true);
  asm.broadcast(lse, { base: LSE });
  asm.broadcast(dot, { base: DOTS });
  asm.set(J, 0);
  const loop = asm.here();
  asm.lanewise("multiply", 4, scale, { base: ROW, index: J });
  asm.lanewise("subtract", 4, 4, lse);
  exp(asm, 4, 5, 6, 7);
  asm.save({ base: ROW, index: J }, 4);
  asm.load(5, { base: OTHER, index: J });
  asm.lanewise("subtract", 5, 5, dot);
  asm.lanewise("multiply", 4, 4, 5);
  asm.lanewise("multiply", 4, 4, scale);
  asm.save({ base: OTHER, index: J }, 4);
  asm.add(J, 32);
  asm.compare(J, WIDTH);
  asm.jumpIf("less", loop);
  nextSeen(asm, names);
  asm.moveWord(J, word(names, "sRow"));
  asm.add(ROW, J);
  asm.add(OTHER, J);
  asm.moveWord(J, word(names, "dotRow"));
  asm.add(LSE, J);
  asm.add(DOTS, J);
  asm.subtract(ROWS, 1);
  asm.jumpIf("notEqual", row);
  asm.clearUpper();
  asm.pop(DOTS);
  asm.ret();
  table(asm, constants);
  return asm.finish();
}
