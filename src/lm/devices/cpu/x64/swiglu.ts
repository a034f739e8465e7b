// The machine code of silu(gate) · up and of its gradients, with the bits of assembly/elementwise.ts.
import { Assembler, type Register, type Vector } from "./assembler.ts";
import { constant, exp, TABLE, table } from "./exp.ts";
import { BASE_OFFSET } from "./products.ts";

/** Parameters of both: places of h, of the output (or the output's gradient) and of h's gradient; rows; bytes of half a row of h. */
export const SWIGLU_PARAMETERS = ["h", "a", "dh", "rows", "bytes"] as const;

const PARAMS: Register = "rdi";
const H: Register = "rsi";
const A: Register = "rdx";
const DH: Register = "r8";
const ROWS: Register = "r9";
const BYTES: Register = "r10";
const I: Register = "rcx";

/** The code of `swiGlu(parameters)`. */
export function assembleSwiGlu(): Uint8Array<ArrayBuffer> {
  return assemble((asm, gate, sigmoid) => {
    asm.lanewise("multiply", gate, gate, sigmoid);
    asm.lanewise("multiply", gate, gate, { base: I, index: BYTES });
    asm.save({ base: A }, gate);
  });
}

/** The code of `swiGluBackward(parameters)`; the gradient of h may be h itself. */
export function assembleSwiGluBackward(): Uint8Array<ArrayBuffer> {
  const [silu, d, slope] = [5, 6, 7] as const;
  return assemble((asm, gate, sigmoid) => {
    asm.load(d, { base: A });
    asm.lanewise("multiply", silu, gate, sigmoid);
    asm.lanewise("subtract", slope, gate, silu);
    asm.lanewise("add", slope, slope, constant("one"));
    asm.lanewise("multiply", slope, slope, sigmoid); // σ(1 + g(1 − σ))
    asm.lanewise("multiply", gate, d, { base: I, index: BYTES });
    asm.lanewise("multiply", gate, gate, slope);
    asm.lanewise("multiply", silu, silu, d);
    asm.save({ base: DH }, gate);
    asm.save({ base: DH, index: BYTES }, silu);
    asm.add(DH, 32);
  });
}

/** Loops over all of h, eight at a time: `use` gets the gate and its sigmoid; `up` is at [I + BYTES]. */
function assemble(use: (asm: Assembler, gate: Vector, sigmoid: Vector) => void): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const constants = asm.label();
  const [gate, sigmoid] = [0, 4] as const;
  asm.addressOf(TABLE, constants);
  for (const [i, register] of [H, A, DH].entries()) {
    asm.moveWord(register, { base: PARAMS, offset: 4 * i });
    asm.add(register, { base: PARAMS, offset: BASE_OFFSET });
  }
  asm.moveWord(ROWS, { base: PARAMS, offset: 12 });
  asm.moveWord(BYTES, { base: PARAMS, offset: 16 });
  const row = asm.here();
  asm.move(I, H);
  asm.add(H, BYTES);
  const loop = asm.here();
  asm.load(gate, { base: I });
  asm.lanewise("xor", sigmoid, gate, constant("minus"));
  exp(asm, sigmoid, 5, 6, 7);
  asm.lanewise("add", sigmoid, sigmoid, constant("one"));
  asm.load(5, constant("one"));
  asm.lanewise("divide", sigmoid, 5, sigmoid);
  use(asm, gate, sigmoid);
  asm.add(A, 32);
  asm.add(I, 32);
  asm.compare(I, H);
  asm.jumpIf("less", loop);
  asm.add(H, BYTES);
  asm.add(DH, BYTES);
  asm.subtract(ROWS, 1);
  asm.jumpIf("notEqual", row);
  asm.clearUpper();
  asm.ret();
  table(asm, constants);
  return asm.finish();
}
