// The machine code of a list of work: entry after entry its parameters are put where the code of its kind looks for them, and that
// is called. The kernels of assembly/ write such lists (host.ts there), since a call from outside takes longer than many an entry.
import { Assembler, type Register } from "./assembler.ts";
import { assembleProduct, BASE_OFFSET, PRODUCT_BYTES } from "./products.ts";
import { assembleScoreGradients, assembleSoftmax } from "./softmax.ts";

/** Where, in the parameters, a list's place in the device's memory stands, and behind it the number of its entries. */
export const LIST_OFFSET = PRODUCT_BYTES;
export const PARAMETERS_BYTES = PRODUCT_BYTES + 8;

export const ENTRY_BYTES = 64; // parameters as far as the memory's address; the last word of them is the kind
const KIND_OFFSET = BASE_OFFSET - 4;

/** What does an entry, by its kind. */
const KINDS = [assembleProduct, assembleSoftmax, assembleScoreGradients] as const;

const PARAMS: Register = "rdi"; // which all kinds leave as it is, like the two below
const ENTRY: Register = "rbx";
const LEFT: Register = "r12";

/** The code of `run(parameters)`; a list has one entry at least. */
export function assembleRun(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const kinds = KINDS.map(() => asm.label());
  for (const register of [ENTRY, LEFT]) asm.push(register);
  asm.moveWord(ENTRY, { base: PARAMS, offset: LIST_OFFSET });
  asm.add(ENTRY, { base: PARAMS, offset: BASE_OFFSET });
  asm.moveWord(LEFT, { base: PARAMS, offset: LIST_OFFSET + 4 });
  const [next, loop] = [asm.label(), asm.here()];
  for (let offset = 0; offset < BASE_OFFSET; offset += 8) {
    asm.move("rax", { base: ENTRY, offset });
    asm.store({ base: PARAMS, offset }, "rax");
  }
  asm.moveWord("rax", { base: ENTRY, offset: KIND_OFFSET });
  for (const [kind, code] of kinds.entries()) {
    const other = asm.label();
    asm.compare("rax", kind);
    asm.jumpIf("notEqual", other);
    asm.call(code);
    asm.jump(next);
    asm.place(other);
  }
  asm.place(next);
  asm.add(ENTRY, ENTRY_BYTES);
  asm.subtract(LEFT, 1);
  asm.jumpIf("notEqual", loop);
  for (const register of [LEFT, ENTRY]) asm.pop(register);
  asm.ret();
  for (const [i, assemble] of KINDS.entries()) {
    asm.align();
    asm.place(kinds[i]!);
    asm.append(assemble());
  }
  return asm.finish();
}
