// Matmul in machine code: C[m, 8·panels] (+)= A[m, k] · B, with B packed in panels of eight columns, one vector wide.
// As in wasm/microkernel.ts, each output is one sum over ascending k in one accumulator by fused multiply-add, so its
// bits equal the WebAssembly kernels' for every tile size.
import { Assembler, type Label, type Memory, type Register, type Vector } from "./assembler.ts";

/**
 * Parameters of one matmul, in order, as unsigned 32-bit words. `a`, `b` and `c` are offsets into the device's memory;
 * strides are in bytes: `aTile` between tiles of four rows of A, `aRow` between rows of a tile, `aK` along k. `ahead`
 * is how many bytes of the next panels to prefetch per k of a four-row tile, so that they are in the cache when all
 * tiles are done; 0 if panels are not contiguous. In the parameter block, the address of the device's memory and the
 * spill slots follow, eight bytes each.
 */
export const PARAMETERS = [
  "a",
  "aTile",
  "aRow",
  "aK",
  "b",
  "bPanel",
  "panels",
  "c",
  "cRow",
  "m",
  "k",
  "add",
  "ahead",
] as const;
export type Parameter = (typeof PARAMETERS)[number];

/** Bytes before the address of the device's memory in a parameter block: the 32-bit words, rounded up to eight bytes. */
export const BASE_OFFSET = 8 * Math.ceil(PARAMETERS.length / 2);
/** Where the spill slots begin, after that address. */
export const SPILL_OFFSET = BASE_OFFSET + 8;
/** Bytes of a parameter block, with the spill slots of either instruction set. */
export const MATMUL_BYTES = 160;

/** Offsets of the spill slots: values that do not fit into registers. */
const SPILL = { panels: 64, bGroup: 72, cGroup: 80, tiles: 88, aTile: 96, k: 104, aPart: 112, cPart: 120 } as const;

/**
 * Panels per tile by the tile's rows, widest first: twelve accumulators hide the latency of an FMA; eight barely do.
 */
const WIDTHS: Readonly<Record<number, readonly number[]>> = {
  4: [3, 2, 1],
  3: [4, 2, 1],
  2: [6, 4, 2, 1],
  1: [8, 4, 2, 1],
};

const SHORT_PANEL = 64; // length of k

/** Register allocation. */
const PARAMS: Register = "rdi";
const A: Register = "rsi";
const B: Register = "rdx";
const K_LEFT: Register = "rcx";
const A_ROW: Register = "r8"; // r9 holds three times this
const A_ROW3: Register = "r9";
const A_K: Register = "rax";
const B_PANEL: Register = "r10"; // 3, 5 and 7 times this are in further registers
const B_PANEL3: Register = "r11";
const B_PANEL5: Register = "rbx";
const B_PANEL7: Register = "rbp";
const AHEAD: Register = "rbx"; // next address to prefetch and its step; four-row tiles need no multiples of B_PANEL
const AHEAD_STEP: Register = "rbp";
const A_TILE: Register = "r12"; // start of A for this tile
const C: Register = "r13";
const C_ROW: Register = "r14"; // r15 holds three times this
const C_ROW3: Register = "r15";
const SAVED: readonly Register[] = ["rbx", "rbp", "r12", "r13", "r14", "r15"];

/** Memory operand of a parameter; the address of the parameters is in rdi. */
export const matmulWord = (name: Parameter): Memory => ({ base: PARAMS, offset: 4 * PARAMETERS.indexOf(name) });
const word = matmulWord;
const spill = (name: keyof typeof SPILL): Memory => ({ base: PARAMS, offset: SPILL[name] });
const memoryAddress: Memory = { base: PARAMS, offset: BASE_OFFSET };

/** Assembles `matmul(parameters)` with the System V calling convention. */
export function assembleMatmul(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  for (const register of SAVED) asm.push(register);
  asm.mov32(A_K, word("aK"));
  asm.mov32(A_ROW, word("aRow"));
  asm.lea(A_ROW3, { base: A_ROW, index: A_ROW, scale: 2 });
  asm.mov32(B_PANEL, word("bPanel"));
  asm.lea(B_PANEL3, { base: B_PANEL, index: B_PANEL, scale: 2 });
  asm.mov32(C_ROW, word("cRow"));
  asm.lea(C_ROW3, { base: C_ROW, index: C_ROW, scale: 2 });
  asm.mov32("rcx", word("k"));
  asm.mov(spill("k"), "rcx");
  asm.mov32("rcx", word("aTile"));
  asm.mov(spill("aTile"), "rcx");
  asm.mov32("rcx", word("a"));
  asm.add("rcx", memoryAddress);
  asm.mov(spill("aPart"), "rcx");
  asm.mov32("rcx", word("c"));
  asm.add("rcx", memoryAddress);
  asm.mov(spill("cPart"), "rcx");

  const end = asm.label();
  const rest = asm.label();
  // Whole tiles of four rows first, then the remaining rows.
  asm.mov32("rcx", word("m"));
  asm.shr("rcx", 2);
  asm.cmp("rcx", 0);
  asm.je(rest);
  rows(asm, 4);
  asm.bind(rest);
  asm.lea(B_PANEL5, { base: B_PANEL, index: B_PANEL, scale: 4 });
  asm.lea(B_PANEL7, { base: B_PANEL5, index: B_PANEL, scale: 2 });
  for (const left of [3, 2, 1]) {
    const next = asm.label();
    asm.mov32("rcx", word("m"));
    asm.and("rcx", 3);
    asm.cmp("rcx", left);
    asm.jne(next);
    asm.mov("rcx", 1);
    rows(asm, left);
    asm.jmp(end);
    asm.bind(next);
  }
  asm.bind(end);
  asm.vzeroupper();
  for (const register of SAVED.toReversed()) asm.pop(register);
  asm.ret();
  return asm.finish();
}

/** Processes all panels for rcx tiles of `height` rows; leaves `aPart` and `cPart` after the last tile. */
function rows(asm: Assembler, height: number): void {
  asm.mov(spill("tiles"), "rcx");
  asm.mov32("rcx", word("panels"));
  asm.mov(spill("panels"), "rcx");
  asm.mov32("rcx", word("b"));
  asm.add("rcx", memoryAddress);
  asm.mov(spill("bGroup"), "rcx");
  asm.mov("rcx", spill("cPart"));
  asm.mov(spill("cGroup"), "rcx");
  const alone = asm.label();
  if (height === 1) jumpIfShort(asm, alone);
  for (const width of WIDTHS[height]!) {
    const next = asm.label();
    if (width === 1) asm.bind(alone);
    const group = asm.here();
    asm.mov("rcx", spill("panels"));
    asm.cmp("rcx", width);
    asm.jl(next);
    if (width === 3) {
      asm.cmp("rcx", 4); // two pairs: a single panel would wait for its own accumulators
      asm.je(next);
    }
    asm.sub("rcx", width);
    asm.mov(spill("panels"), "rcx");
    asm.mov(A_TILE, spill("aPart"));
    asm.mov(C, spill("cGroup"));
    asm.lea("rcx", { base: C, offset: 32 * width });
    asm.mov(spill("cGroup"), "rcx");
    if (height === 4) {
      asm.mov(AHEAD, spill("bGroup"));
      asm.lea(AHEAD, panelAt(AHEAD, width));
      asm.mov32(AHEAD_STEP, word("ahead"));
    }
    asm.mov("rcx", spill("tiles"));
    const loop = asm.here();
    asm.push("rcx");
    tile(asm, height, width);
    asm.pop("rcx");
    asm.add(A_TILE, spill("aTile"));
    asm.lea(C, { base: C, index: C_ROW, scale: 4 });
    asm.sub("rcx", 1);
    asm.jne(loop);
    asm.mov("rcx", spill("bGroup"));
    asm.lea("rcx", panelAt("rcx", width));
    asm.mov(spill("bGroup"), "rcx");
    asm.jmp(group);
    asm.bind(next);
  }
  if (height < 4) return;
  asm.mov("rcx", spill("tiles"));
  asm.mov("rdx", "rcx");
  asm.imul("rcx", C_ROW);
  asm.shl("rcx", 2);
  asm.add("rcx", spill("cPart"));
  asm.mov(spill("cPart"), "rcx");
  asm.mov("rcx", spill("aTile"));
  asm.imul("rcx", "rdx");
  asm.add("rcx", spill("aPart"));
  asm.mov(spill("aPart"), "rcx");
}

/**
 * Jumps to the loop over single panels if these are contiguous and short, like the keys of a context that one row
 * reads. Processing several at once would read several streams, each too short for the hardware prefetcher, and this
 * case is memory-bound. The sums of short panels overlap anyway.
 */
function jumpIfShort(asm: Assembler, single: Label): void {
  const several = asm.label();
  asm.mov32("rcx", word("ahead"));
  asm.cmp("rcx", 0);
  asm.je(several);
  asm.mov32("rcx", word("k"));
  asm.cmp("rcx", SHORT_PANEL + 1);
  asm.jl(single);
  asm.bind(several);
}

/** Computes one tile: `height` rows from A_TILE by `width` panels, into C. */
function tile(asm: Assembler, height: number, width: number): void {
  const sums = Array.from({ length: height * width }, (_, i) => {
    const [row, panel] = [Math.floor(i / width), i % width];
    return { vector: i, row, panel, memory: { ...rowAt(C, C_ROW, C_ROW3, row), offset: 32 * panel } };
  });
  const [add, multiply, finish] = [asm.label(), asm.label(), asm.label()];
  asm.mov(A, A_TILE);
  asm.mov(B, spill("bGroup"));
  asm.mov32("rcx", word("add"));
  asm.cmp("rcx", 0);
  asm.jne(add);
  for (const { vector } of sums) asm.vxorps(vector, vector, vector);
  asm.jmp(multiply);
  asm.bind(add);
  for (const { vector, memory } of sums) asm.vmovups(vector, memory);
  asm.bind(multiply);
  asm.mov(K_LEFT, spill("k"));
  asm.cmp(K_LEFT, 0);
  asm.je(finish);
  const loop = asm.here();
  if (height === 4) {
    asm.prefetcht0({ base: AHEAD });
    asm.add(AHEAD, AHEAD_STEP);
  }
  const factor = (row: number) => rowAt(A, A_ROW, A_ROW3, row);
  const sum = (row: number, panel: number): Vector => row * width + panel;
  // There are sixteen registers: for the tile's accumulators, the operands of its shorter side, and one operand of the
  // longer side at a time.
  const held = height * width;
  if (height >= width) {
    for (let panel = 0; panel < width; panel++) asm.vmovups(held + panel, panelAt(B, panel));
    for (let row = 0; row < height; row++) {
      asm.vbroadcastss(held + width, factor(row));
      for (let panel = 0; panel < width; panel++) asm.vfmadd231ps(sum(row, panel), held + width, held + panel);
    }
  } else {
    for (let row = 0; row < height; row++) asm.vbroadcastss(held + row, factor(row));
    for (let panel = 0; panel < width; panel++) {
      if (height > 1) asm.vmovups(held + height, panelAt(B, panel));
      for (let row = 0; row < height; row++) {
        asm.vfmadd231ps(sum(row, panel), held + row, height > 1 ? held + height : panelAt(B, panel));
      }
    }
  }
  asm.add(A, A_K);
  asm.add(B, 32);
  asm.sub(K_LEFT, 1);
  asm.jne(loop);
  asm.bind(finish);
  for (const { vector, memory } of sums) asm.vmovups(memory, vector);
}

/** Memory operand of row `n` in a tile, 0 to 3. */
function rowAt(base: Register, stride: Register, stride3: Register, n: number): Memory {
  if (n === 0) return { base };
  return n === 3 ? { base, index: stride3 } : { base, index: stride, scale: n as 1 | 2 };
}

/** Memory operand of panel `n` in a group, 0 to 8. */
function panelAt(base: Register, n: number): Memory {
  const multiples: Readonly<Record<number, readonly [Register, 1 | 2 | 4 | 8]>> = {
    1: [B_PANEL, 1],
    2: [B_PANEL, 2],
    3: [B_PANEL3, 1],
    4: [B_PANEL, 4],
    5: [B_PANEL5, 1],
    6: [B_PANEL3, 2],
    7: [B_PANEL7, 1],
    8: [B_PANEL, 8],
  };
  const [index, scale] = multiples[n] ?? [undefined, 1];
  return index ? { base, index, scale } : { base };
}
