// silu(gate) · up and its gradients in machine code, with the same bits as wasm/elementwise.ts.
import { Assembler, type Register, type Vector } from "./assembler.ts";
import { constant, emitConstants, exp, TABLE } from "./exp.ts";
import { BASE_OFFSET } from "./matmul.ts";

// Parameters of both routines, in order: offsets of h, of the output (or its gradient) and of h's gradient; rows; bytes
// of half a row of h.
const PARAMS: Register = "rdi";
const H: Register = "rsi";
const A: Register = "rdx";
const DH: Register = "r8";
const ROWS: Register = "r9";
const BYTES: Register = "r10";
const I: Register = "rcx";

/** Assembles `swiGlu(parameters)`. */
export function assembleSwiGlu(): Uint8Array<ArrayBuffer> {
  return assemble((asm, gate, sigmoid) => {
    asm.vmulps(gate, gate, sigmoid);
    asm.vmulps(gate, gate, { base: I, index: BYTES });
    asm.vmovups({ base: A }, gate);
  });
}

/** Assembles `swiGluBackward(parameters)`; the gradient of h may be h itself. */
export function assembleSwiGluBackward(): Uint8Array<ArrayBuffer> {
  const [silu, d, slope] = [5, 6, 7] as const;
  return assemble((asm, gate, sigmoid) => {
    asm.vmovups(d, { base: A });
    asm.vmulps(silu, gate, sigmoid);
    asm.vsubps(slope, gate, silu);
    asm.vaddps(slope, slope, constant("one"));
    asm.vmulps(slope, slope, sigmoid); // σ(1 + g(1 − σ))
    asm.vmulps(gate, d, { base: I, index: BYTES });
    asm.vmulps(gate, gate, slope);
    asm.vmulps(silu, silu, d);
    asm.vmovups({ base: DH }, gate);
    asm.vmovups({ base: DH, index: BYTES }, silu);
    asm.add(DH, 32);
  });
}

/** Assembles a loop over h, eight floats at a time: `use` gets the gate and its sigmoid; `up` is at [I + BYTES]. */
function assemble(use: (asm: Assembler, gate: Vector, sigmoid: Vector) => void): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const constants = asm.label();
  const [gate, sigmoid] = [0, 4] as const;
  asm.lea(TABLE, constants);
  for (const [i, register] of [H, A, DH].entries()) {
    asm.mov32(register, { base: PARAMS, offset: 4 * i });
    asm.add(register, { base: PARAMS, offset: BASE_OFFSET });
  }
  asm.mov32(ROWS, { base: PARAMS, offset: 12 });
  asm.mov32(BYTES, { base: PARAMS, offset: 16 });
  const row = asm.here();
  asm.mov(I, H);
  asm.add(H, BYTES);
  const loop = asm.here();
  asm.vmovups(gate, { base: I });
  asm.vxorps(sigmoid, gate, constant("minus"));
  exp(asm, sigmoid, 5, 6, 7);
  asm.vaddps(sigmoid, sigmoid, constant("one"));
  asm.vmovups(5, constant("one"));
  asm.vdivps(sigmoid, 5, sigmoid);
  use(asm, gate, sigmoid);
  asm.add(A, 32);
  asm.add(I, 32);
  asm.cmp(I, H);
  asm.jl(loop);
  asm.add(H, BYTES);
  asm.add(DH, BYTES);
  asm.sub(ROWS, 1);
  asm.jne(row);
  asm.vzeroupper();
  asm.ret();
  emitConstants(asm, constants);
  return asm.finish();
}
