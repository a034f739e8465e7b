// Interpreter of a command list, in machine code: copies each entry into the parameter block and calls the routine that
// its opcode selects. The WebAssembly kernels write such lists (wasm/host-commands.ts), since one call out of
// WebAssembly costs more than many entries.
import { Assembler, type Register } from "./assembler.ts";
import type { InstructionSet } from "./instruction-set.ts";
import { BASE_OFFSET, MATMUL_BYTES } from "./matmul.ts";
import { assembleMatmulFor } from "./matmul-for.ts";
import { assembleScoreGradients, assembleSoftmax } from "./softmax.ts";

/** Where the parameter block of `runCommands` has the list's offset in device memory; the number of entries follows. */
export const LIST_OFFSET = MATMUL_BYTES;
export const PARAMETERS_BYTES = MATMUL_BYTES + 8;

/** Bytes between entries. An entry is a routine's 32-bit parameters, and its opcode in the last word before BASE_OFFSET. */
export const ENTRY_BYTES = 64;
const OPCODE_OFFSET = BASE_OFFSET - 4;

/** Routines by opcode. */
const ROUTINES = [assembleMatmulFor, assembleSoftmax, assembleScoreGradients] as const;

const PARAMS: Register = "rdi"; // all routines preserve it and the two registers below
const ENTRY: Register = "rbx";
const LEFT: Register = "r12";

/** Assembles `runCommands(parameters)`; a list must have at least one entry. */
export function assembleRunCommands(set: InstructionSet): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const routines = ROUTINES.map(() => asm.label());
  for (const register of [ENTRY, LEFT]) asm.push(register);
  asm.mov32(ENTRY, { base: PARAMS, offset: LIST_OFFSET });
  asm.add(ENTRY, { base: PARAMS, offset: BASE_OFFSET });
  asm.mov32(LEFT, { base: PARAMS, offset: LIST_OFFSET + 4 });
  const [next, loop] = [asm.label(), asm.here()];
  for (let offset = 0; offset < BASE_OFFSET; offset += 8) {
    asm.mov("rax", { base: ENTRY, offset });
    asm.mov({ base: PARAMS, offset }, "rax");
  }
  asm.mov32("rax", { base: ENTRY, offset: OPCODE_OFFSET });
  for (const [opcode, routine] of routines.entries()) {
    const other = asm.label();
    asm.cmp("rax", opcode);
    asm.jne(other);
    asm.call(routine);
    asm.jmp(next);
    asm.bind(other);
  }
  asm.bind(next);
  asm.add(ENTRY, ENTRY_BYTES);
  asm.sub(LEFT, 1);
  asm.jne(loop);
  for (const register of [LEFT, ENTRY]) asm.pop(register);
  asm.ret();
  for (const [i, assemble] of ROUTINES.entries()) {
    asm.align();
    asm.bind(routines[i]!);
    asm.append(assemble(set));
  }
  return asm.finish();
}
