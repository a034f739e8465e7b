// Matmul in AVX-512 machine code: the interface, packing and bits of matmul.ts, sixteen columns (two panels) per vector.
import { Assembler, type Memory, type Register } from "./assembler.ts";
import { assembleMatmul, BASE_OFFSET, SPILL_OFFSET, matmulWord as word } from "./matmul.ts";

/** Spill slots after the parameters and the memory's address, eight bytes each. */
const SLOTS = [
  "k",
  "panels",
  "bGroup",
  "cGroup",
  "aTile",
  "aNext",
  "aheadStep",
  "left",
  "tiles12",
  "tiles8",
  "tiles4",
] as const;
type Slot = (typeof SLOTS)[number];
const slot = (name: Slot): Memory => ({ base: PARAMS, offset: SPILL_OFFSET + 8 * SLOTS.indexOf(name) });

/** Bytes of the parameter block that are used. */
export const MATMUL512_BYTES = SPILL_OFFSET + 8 * SLOTS.length;

/** Register allocation. A tile has up to three groups of four rows, each with a pointer. */
const PARAMS: Register = "rdi";
const A: readonly Register[] = ["rsi", "r8", "r9"];
const B: Register = "rdx";
const COUNT: Register = "rcx";
const A_ROW: Register = "r10";
const A_ROW3: Register = "r11";
const A_K: Register = "rax";
const B_PANEL: Register = "rbx";
const B_PANEL3: Register = "rbp";
const B_PANEL5: Register = "r15";
const AHEAD: Register = "r12"; // next address to prefetch
const C: Register = "r13";
const C_ROW: Register = "r14";
const SAVED: readonly Register[] = ["rbx", "rbp", "r12", "r13", "r14", "r15"];

const memoryAddress: Memory = { base: PARAMS, offset: BASE_OFFSET };

/** Vectors of columns per group of panels; "half" is a last panel of eight columns. */
type Width = 3 | 2 | 1 | "half";
const panelsOf = (width: Width): number => (width === "half" ? 1 : 2 * width);

type Height = 12 | 8 | 4;
const TILES: Readonly<Record<Height, Slot>> = { 12: "tiles12", 8: "tiles8", 4: "tiles4" };

/** Assembles `matmul(parameters)` for AVX-512 with the System V calling convention. */
export function assembleMatmul512(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const narrow = asm.label();
  asm.mov32(COUNT, word("m"));
  asm.cmp(COUNT, 4);
  asm.jl(narrow); // fewer than four rows are bound by memory
  for (const register of SAVED) asm.push(register);
  asm.mov32(A_K, word("aK"));
  asm.mov32(A_ROW, word("aRow"));
  asm.lea(A_ROW3, { base: A_ROW, index: A_ROW, scale: 2 });
  asm.mov32(B_PANEL, word("bPanel"));
  asm.lea(B_PANEL3, { base: B_PANEL, index: B_PANEL, scale: 2 });
  asm.lea(B_PANEL5, { base: B_PANEL, index: B_PANEL, scale: 4 });
  asm.mov32(C_ROW, word("cRow"));
  for (const [to, from] of [
    ["k", "k"],
    ["panels", "panels"],
    ["aTile", "aTile"],
  ] as const) {
    asm.mov32(COUNT, word(from));
    asm.mov(slot(to), COUNT);
  }
  asm.mov32(COUNT, word("ahead")); // bytes per four rows and three panels; a tile here has twelve rows and four panels
  asm.shl(COUNT, 2);
  asm.mov(slot("aheadStep"), COUNT);
  asm.mov32(B, word("b"));
  asm.add(B, memoryAddress);
  asm.mov(slot("bGroup"), B);
  asm.mov32(C, word("c"));
  asm.add(C, memoryAddress);
  asm.mov(slot("cGroup"), C);
  countTiles(asm);

  const [many, eight, end] = [asm.label(), asm.label(), asm.label()];
  asm.mov32(COUNT, word("m"));
  asm.shr(COUNT, 2);
  asm.cmp(COUNT, 3);
  asm.jge(many);
  prefetchForOneTile(asm);
  asm.cmp(COUNT, 2);
  asm.je(eight);
  groups(asm, [3, 2, 1, "half"], [4]);
  asm.jmp(end);
  asm.bind(eight);
  groups(asm, [3, 2, 1, "half"], [8]);
  asm.jmp(end);
  asm.bind(many);
  groups(asm, [2, 1, "half"], [12, 8, 4]);
  asm.bind(end);

  // The last one to three rows: the parameters of the remaining rows, for the code for AVX2.
  const done = asm.label();
  asm.vzeroupper();
  asm.mov32(COUNT, word("m"));
  asm.mov("rdx", COUNT);
  asm.and("rdx", 3);
  asm.je(done);
  asm.shr(COUNT, 2);
  asm.mov("rax", slot("aTile"));
  asm.imul("rax", COUNT);
  asm.mov32("rsi", word("a"));
  asm.add("rax", "rsi");
  asm.mov32(word("a"), "rax");
  asm.mov("rax", C_ROW);
  asm.imul("rax", COUNT);
  asm.shl("rax", 2);
  asm.mov32("rsi", word("c"));
  asm.add("rax", "rsi");
  asm.mov32(word("c"), "rax");
  asm.mov32(word("m"), "rdx");
  for (const register of SAVED.toReversed()) asm.pop(register);
  asm.jmp(narrow);
  asm.bind(done);
  for (const register of SAVED.toReversed()) asm.pop(register);
  asm.ret();
  asm.align();
  asm.bind(narrow);
  asm.append(assembleMatmul());
  return asm.finish();
}

/** Sets the prefetch step for one tile of three vectors per group of panels, unless panels are not contiguous. */
function prefetchForOneTile(asm: Assembler): void {
  const apart = asm.label();
  asm.mov("rsi", slot("aheadStep"));
  asm.cmp("rsi", 0);
  asm.je(apart);
  asm.mov("rsi", 32 * panelsOf(3));
  asm.mov(slot("aheadStep"), "rsi");
  asm.bind(apart);
}

/** Writes how many tiles of twelve, eight and four rows the rows are divided into: 8 + 8 rather than 12 + 4. */
function countTiles(asm: Assembler): void {
  const [one, two, done] = [asm.label(), asm.label(), asm.label()];
  asm.mov32("rsi", word("m"));
  asm.shr("rsi", 2); // groups of four rows
  const [twelves, eights, fours] = ["r8", "r9", "rdx"] as const;
  asm.mov(eights, 0);
  asm.mov(fours, 0);
  asm.mov(twelves, 715_827_883); // division by three: this is (2^31 + 1) / 3
  asm.imul(twelves, "rsi");
  asm.shr(twelves, 31);
  asm.lea("rcx", { base: twelves, index: twelves, scale: 2 });
  asm.sub("rsi", "rcx");
  asm.cmp("rsi", 1);
  asm.je(one);
  asm.cmp("rsi", 2);
  asm.je(two);
  asm.jmp(done);
  asm.bind(two);
  asm.mov(eights, 1);
  asm.jmp(done);
  asm.bind(one);
  asm.mov(fours, 1);
  asm.cmp(twelves, 1);
  asm.jl(done);
  asm.sub(twelves, 1);
  asm.mov(eights, 2);
  asm.mov(fours, 0);
  asm.bind(done);
  asm.mov(slot("tiles12"), twelves);
  asm.mov(slot("tiles8"), eights);
  asm.mov(slot("tiles4"), fours);
}

/** Processes all panels, in groups of these widths, for the rows in tiles of these heights. */
function groups(asm: Assembler, widths: readonly Width[], heights: readonly Height[]): void {
  for (const width of widths) {
    const next = asm.label();
    const group = asm.here();
    asm.mov(COUNT, slot("panels"));
    asm.cmp(COUNT, panelsOf(width));
    asm.jl(next);
    asm.sub(COUNT, panelsOf(width));
    asm.mov(slot("panels"), COUNT);
    asm.mov32(A[0]!, word("a"));
    asm.add(A[0]!, memoryAddress);
    asm.mov(slot("aNext"), A[0]!);
    asm.mov(C, slot("cGroup"));
    asm.lea(COUNT, { base: C, offset: 32 * panelsOf(width) });
    asm.mov(slot("cGroup"), COUNT);
    asm.mov(AHEAD, slot("bGroup"));
    asm.lea(AHEAD, panelAt(AHEAD, panelsOf(width)));
    for (const height of heights) {
      const skip = asm.label();
      asm.mov(COUNT, slot(TILES[height]));
      asm.cmp(COUNT, 0);
      asm.je(skip);
      const loop = asm.here();
      asm.mov(slot("left"), COUNT);
      tile(asm, height, width);
      asm.mov(COUNT, slot("left"));
      asm.sub(COUNT, 1);
      asm.jne(loop);
      asm.bind(skip);
    }
    asm.mov(B, slot("bGroup"));
    asm.lea(B, panelAt(B, panelsOf(width)));
    asm.mov(slot("bGroup"), B);
    asm.jmp(group);
    asm.bind(next);
  }
}

/** Computes one tile: `height` rows from `aNext` by `width` vectors, into C; advances both to the next tile. */
function tile(asm: Assembler, height: Height, width: Width): void {
  const bits = width === "half" ? 256 : 512;
  const vectors = width === "half" ? 1 : width;
  const sums = Array.from({ length: height * vectors }, (_, i) => i);
  const [add, multiply, finish] = [asm.label(), asm.label(), asm.label()];
  const parts = A.slice(0, height / 4);
  asm.mov(A[0]!, slot("aNext"));
  for (const [i, part] of parts.slice(1).entries()) {
    asm.mov(part, slot("aTile"));
    asm.add(part, A[i]!);
  }
  asm.mov(COUNT, slot("aTile"));
  asm.add(COUNT, parts.at(-1)!);
  asm.mov(slot("aNext"), COUNT);
  asm.mov32(COUNT, word("add"));
  asm.cmp(COUNT, 0);
  asm.jne(add);
  for (const sum of sums) asm.vpxord(sum, sum, sum);
  asm.jmp(multiply);
  asm.bind(add);
  overC(asm, height, vectors, (vector, memory) => asm.vmovups(vector, memory, bits));
  asm.bind(multiply);
  asm.mov(B, slot("bGroup"));
  asm.mov(COUNT, slot("k"));
  asm.cmp(COUNT, 0);
  asm.je(finish);
  const loop = asm.here();
  const lines = height === 12 ? 1 : Math.ceil(panelsOf(width) / 2); // one tile alone must prefetch all of the next panels
  for (let line = 0; line < lines; line++) asm.prefetcht0({ base: AHEAD, offset: 64 * line });
  asm.add(AHEAD, slot("aheadStep"));
  const columns = Array.from({ length: vectors }, (_, i) => sums.length + i);
  const factor = sums.length + vectors;
  for (const [i, column] of columns.entries()) {
    asm.vmovups(column, panelAt(B, 2 * i), 256);
    if (width !== "half") asm.vinsertf32x8(column, column, panelAt(B, 2 * i + 1), 1);
  }
  for (let row = 0; row < height; row++) {
    const memory = rowAt(parts[row >> 2]!, A_ROW, A_ROW3, row & 3);
    if (vectors === 1 && width !== "half") {
      asm.vfmadd231ps(row, columns[0]!, { ...memory, broadcast: true }, bits);
      continue;
    }
    asm.vbroadcastss(factor, memory, bits);
    for (const [i, column] of columns.entries()) asm.vfmadd231ps(row * vectors + i, factor, column, bits);
  }
  for (const part of parts) asm.add(part, A_K);
  asm.add(B, 32);
  asm.sub(COUNT, 1);
  asm.jne(loop);
  asm.bind(finish);
  overC(asm, height, vectors, (vector, memory) => asm.vmovups(memory, vector, bits));
  for (let part = 0; part < height / 4; part++) asm.lea(C, { base: C, index: C_ROW, scale: 4 });
}

/** Calls `use` with each accumulator and its place in C; clobbers COUNT and B. */
function overC(asm: Assembler, height: number, vectors: number, use: (vector: number, memory: Memory) => void): void {
  asm.mov(COUNT, C);
  asm.lea(B, { base: C_ROW, index: C_ROW, scale: 2 });
  for (let row = 0; row < height; row++) {
    if (row > 0 && row % 4 === 0) asm.lea(COUNT, { base: COUNT, index: C_ROW, scale: 4 });
    const memory = rowAt(COUNT, C_ROW, B, row & 3);
    for (let i = 0; i < vectors; i++) use(row * vectors + i, { ...memory, offset: 64 * i });
  }
}

/** Memory operand of row `n` of four, 0 to 3; `stride3` is three times the stride. */
function rowAt(base: Register, stride: Register, stride3: Register, n: number): Memory {
  if (n === 0) return { base };
  return n === 3 ? { base, index: stride3 } : { base, index: stride, scale: n as 1 | 2 };
}

/** Memory operand of panel `n` of a group, 0 to 6. */
function panelAt(base: Register, n: number): Memory {
  const multiples: Readonly<Record<number, readonly [Register, 1 | 2 | 4]>> = {
    1: [B_PANEL, 1],
    2: [B_PANEL, 2],
    3: [B_PANEL3, 1],
    4: [B_PANEL, 4],
    5: [B_PANEL5, 1],
    6: [B_PANEL3, 2],
  };
  const [index, scale] = multiples[n] ?? [undefined, 1];
  return index ? { base, index, scale } : { base };
}
