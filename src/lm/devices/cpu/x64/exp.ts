// exp in machine code: the operations of wasm/math.ts on eight lanes instead of four, hence with the same bits.
import type { Assembler, Label, Memory, Register, Vector } from "./assembler.ts";

/** The constants of exp and of the routines that use it. */
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
  shifter: 12583039, // 1.5 · 2^23 + 127: adding k leaves k + 127 in the lowest bits
} as const;
const NAMES = Object.keys(EXP) as (keyof typeof EXP)[];

/** Register with the address of the constants. */
export const TABLE: Register = "rax";

/** Memory operand of a constant; TABLE must hold the table's address. */
export const constant = (name: keyof typeof EXP): Memory => ({ base: TABLE, offset: 32 * NAMES.indexOf(name) });

/** Computes x = exp(x); clobbers p, mask and k. */
export function exp(asm: Assembler, x: Vector, p: Vector, mask: Vector, k: Vector): void {
  asm.vcmpgeps(mask, x, constant("least"));
  asm.vmaxps(x, x, constant("least"));
  asm.vminps(x, x, constant("most"));
  asm.vmulps(k, x, constant("log2e"));
  asm.vroundps(k, k, 8);
  asm.vfmadd231ps(x, k, constant("ln2High"));
  asm.vfmadd231ps(x, k, constant("ln2Low"));
  asm.vmovups(p, constant("p0"));
  for (const name of ["p1", "p2", "p3", "p4", "p5"] as const) asm.vfmadd213ps(p, x, constant(name));
  asm.vaddps(k, k, constant("shifter"));
  asm.vpslld(k, k, 23);
  asm.vandps(k, k, mask); // replaces 2^k by 0 below the range, so that the result is 0
  asm.vmulps(mask, x, x);
  asm.vfmadd213ps(p, mask, x);
  asm.vaddps(p, p, constant("one"));
  asm.vmulps(x, p, k);
}

/** Emits the constants at the current position. */
export function emitConstants(asm: Assembler, label: Label): void {
  asm.align();
  asm.bind(label);
  for (const name of NAMES) asm.floats(EXP[name]);
}
