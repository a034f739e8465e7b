// exp in machine code: the chain of operations of assembly/math.ts, eight lanes instead of four, and so its bits.
import type { Assembler, Label, Place, Register, Vector } from "./assembler.ts";

/** The constants of exp, and of what is made with it. */
const EXP = {
  least: -87.33654,
  most: 88.72283,
  log2e: Math.LOG2E,
  ln2High: -0.693359375,
  ln2Low: 2.1219444e-4,
  p0: 1.98756915e-4,
  p1: 1.3981999507e-3,
  p2: 8.3334519073e-3,
  p3: 4.1665795894e-2,
  p4: 1.6666665459e-1,
  p5: 5.0000001201e-1,
  one: 1,
  minus: -0,
  shifter: 12583039, // 1.5 · 2^23 + 127: its sum with k has k + 127 in the lowest bits
} as const;
const NAMES = Object.keys(EXP) as (keyof typeof EXP)[];

/** Holds the address of the constants. */
export const TABLE: Register = "rax";

/** Where a constant stands, with the table's address in TABLE. */
export const constant = (name: keyof typeof EXP): Place => ({ base: TABLE, offset: 32 * NAMES.indexOf(name) });

/** x = exp(x) by the operations of assembly/math.ts; uses three more registers. */
export function exp(asm: Assembler, x: Vector, p: Vector, mask: Vector, k: Vector): void {
  asm.compareLanes("atLeast", mask, x, constant("least"));
  asm.lanewise("max", x, x, constant("least"));
  asm.lanewise("min", x, x, constant("most"));
  asm.lanewise("multiply", k, x, constant("log2e"));
  asm.round(k, k);
  asm.fma(x, k, constant("ln2High"));
  asm.fma(x, k, constant("ln2Low"));
  asm.load(p, constant("p0"));
  for (const name of ["p1", "p2", "p3", "p4", "p5"] as const) asm.fmaOnto(p, x, constant(name));
  asm.lanewise("add", k, k, constant("shifter"));
  asm.shiftLanesLeft(k, k, 23);
  asm.lanewise("and", k, k, mask); // 0 instead of 2^k: the product is 0 too
  asm.lanewise("multiply", mask, x, x);
  asm.fmaOnto(p, mask, x);
  asm.lanewise("add", p, p, constant("one"));
  asm.lanewise("multiply", x, p, k);
}

/** Writes the constants here. */
export function table(asm: Assembler, label: Label): void {
  asm.align();
  asm.place(label);
  for (const name of NAMES) asm.floats(EXP[name]);
}
