// The machine code of our matrix products: C[m, 8·panels] (+)= A[m, k] · B, B packed in panels of eight columns, one vector
// wide. As in assembly/micro.ts every output is one sum over ascending k in one accumulator by fused multiply-add, so its
// bits are those of the WebAssembly kernels, whatever the tile.
import { Assembler, type Label, type Place, type Register, type Vector } from "./assembler.ts";

/**
 * Parameters of one product, in order: unsigned 32-bit words, of which `a`, `b` and `c` are places in the device's memory
 * and strides are bytes. `aTile` lies between tiles of four rows of A, `aRow` between rows of a tile, `aK` along k.
 * `ahead` is how many bytes of the next panels are asked for with each step of a tile of four rows, so that they are in the
 * cache when all tiles are through; 0 where panels do not follow upon each other.
 * Behind them, eight bytes each, stand the memory's own address and room for what the code has no register for.
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

/** Bytes from the start of the parameters to the memory's address, and to behind what a product needs. */
export const BASE_OFFSET = 8 * Math.ceil(PARAMETERS.length / 2);
export const PRODUCT_BYTES = 128;

const SPILL = { panels: 64, bGroup: 72, cGroup: 80, tiles: 88, aTile: 96, k: 104, aPart: 112, cPart: 120 } as const;

/** Panels taken together with so many rows, most first: twelve sums at once hide the latency of an fma, eight just do. */
const WIDTHS: Readonly<Record<number, readonly number[]>> = {
  4: [3, 2, 1],
  3: [4, 2, 1],
  2: [6, 4, 2, 1],
  1: [8, 4, 2, 1],
};

const SHORT_PANEL = 64; // of k

/** Registers, all through. */
const PARAMS: Register = "rdi";
const A: Register = "rsi";
const B: Register = "rdx";
const K_LEFT: Register = "rcx";
const A_ROW: Register = "r8"; // and three times that in r9
const A_ROW3: Register = "r9";
const A_K: Register = "rax";
const B_PANEL: Register = "r10"; // and 3, 5 and 7 times that
const B_PANEL3: Register = "r11";
const B_PANEL5: Register = "rbx";
const B_PANEL7: Register = "rbp";
const AHEAD: Register = "rbx"; // with four rows, which need no such multiples: what will be needed next, and how far it goes on
const AHEAD_STEP: Register = "rbp";
const A_TILE: Register = "r12"; // where the tile's A begins
const C: Register = "r13";
const C_ROW: Register = "r14"; // and three times that
const C_ROW3: Register = "r15";
const SAVED: readonly Register[] = ["rbx", "rbp", "r12", "r13", "r14", "r15"];

const word = (name: Parameter): Place => ({ base: PARAMS, offset: 4 * PARAMETERS.indexOf(name) });
const spill = (name: keyof typeof SPILL): Place => ({ base: PARAMS, offset: SPILL[name] });
const memory: Place = { base: PARAMS, offset: BASE_OFFSET };

/** The code of `product(parameters)`, by the System V calling convention. */
export function assembleProduct(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  for (const register of SAVED) asm.push(register);
  asm.moveWord(A_K, word("aK"));
  asm.moveWord(A_ROW, word("aRow"));
  asm.address(A_ROW3, { base: A_ROW, index: A_ROW, scale: 2 });
  asm.moveWord(B_PANEL, word("bPanel"));
  asm.address(B_PANEL3, { base: B_PANEL, index: B_PANEL, scale: 2 });
  asm.moveWord(C_ROW, word("cRow"));
  asm.address(C_ROW3, { base: C_ROW, index: C_ROW, scale: 2 });
  asm.moveWord("rcx", word("k"));
  asm.store(spill("k"), "rcx");
  asm.moveWord("rcx", word("aTile"));
  asm.store(spill("aTile"), "rcx");
  asm.moveWord("rcx", word("a"));
  asm.add("rcx", memory);
  asm.store(spill("aPart"), "rcx");
  asm.moveWord("rcx", word("c"));
  asm.add("rcx", memory);
  asm.store(spill("cPart"), "rcx");

  const end = asm.label();
  const rest = asm.label();
  // Whole tiles of four rows, then what is left.
  asm.moveWord("rcx", word("m"));
  asm.shiftRight("rcx", 2);
  asm.compare("rcx", 0);
  asm.jumpIf("equal", rest);
  rows(asm, 4);
  asm.place(rest);
  asm.address(B_PANEL5, { base: B_PANEL, index: B_PANEL, scale: 4 });
  asm.address(B_PANEL7, { base: B_PANEL5, index: B_PANEL, scale: 2 });
  for (const left of [3, 2, 1]) {
    const next = asm.label();
    asm.moveWord("rcx", word("m"));
    asm.and("rcx", 3);
    asm.compare("rcx", left);
    asm.jumpIf("notEqual", next);
    asm.set("rcx", 1);
    rows(asm, left);
    asm.jump(end);
    asm.place(next);
  }
  asm.place(end);
  asm.clearUpper();
  for (const register of SAVED.toReversed()) asm.pop(register);
  asm.ret();
  return asm.finish();
}

/** All panels for rcx tiles of `height` rows; leaves `aPart` and `cPart` behind the last tile. */
function rows(asm: Assembler, height: number): void {
  asm.store(spill("tiles"), "rcx");
  asm.moveWord("rcx", word("panels"));
  asm.store(spill("panels"), "rcx");
  asm.moveWord("rcx", word("b"));
  asm.add("rcx", memory);
  asm.store(spill("bGroup"), "rcx");
  asm.move("rcx", spill("cPart"));
  asm.store(spill("cGroup"), "rcx");
  const alone = asm.label();
  if (height === 1) oneByOne(asm, alone);
  for (const width of WIDTHS[height]!) {
    const next = asm.label();
    if (width === 1) asm.place(alone);
    const group = asm.here();
    asm.move("rcx", spill("panels"));
    asm.compare("rcx", width);
    asm.jumpIf("less", next);
    if (width === 3) {
      asm.compare("rcx", 4); // two pairs, since one panel alone would wait for its own sums
      asm.jumpIf("equal", next);
    }
    asm.subtract("rcx", width);
    asm.store(spill("panels"), "rcx");
    asm.move(A_TILE, spill("aPart"));
    asm.move(C, spill("cGroup"));
    asm.address("rcx", { base: C, offset: 32 * width });
    asm.store(spill("cGroup"), "rcx");
    if (height === 4) {
      asm.move(AHEAD, spill("bGroup"));
      asm.address(AHEAD, panelAt(AHEAD, width));
      asm.moveWord(AHEAD_STEP, word("ahead"));
    }
    asm.move("rcx", spill("tiles"));
    const loop = asm.here();
    asm.push("rcx");
    tile(asm, height, width);
    asm.pop("rcx");
    asm.add(A_TILE, spill("aTile"));
    asm.address(C, { base: C, index: C_ROW, scale: 4 });
    asm.subtract("rcx", 1);
    asm.jumpIf("notEqual", loop);
    asm.move("rcx", spill("bGroup"));
    asm.address("rcx", panelAt("rcx", width));
    asm.store(spill("bGroup"), "rcx");
    asm.jump(group);
    asm.place(next);
  }
  if (height < 4) return;
  asm.move("rcx", spill("tiles"));
  asm.move("rdx", "rcx");
  asm.multiply("rcx", C_ROW);
  asm.shiftLeft("rcx", 2);
  asm.add("rcx", spill("cPart"));
  asm.store(spill("cPart"), "rcx");
  asm.move("rcx", spill("aTile"));
  asm.multiply("rcx", "rdx");
  asm.add("rcx", spill("aPart"));
  asm.store(spill("aPart"), "rcx");
}

/**
 * Goes to where panels are taken one by one if they follow upon each other and are short, as keys of a context do that a single row
 * reads: several together would be a stream each, too short for the processor to see it coming, where the memory is all it waits
 * for. The sums of short panels overlap anyway.
 */
function oneByOne(asm: Assembler, there: Label): void {
  const several = asm.label();
  asm.moveWord("rcx", word("ahead"));
  asm.compare("rcx", 0);
  asm.jumpIf("equal", several);
  asm.moveWord("rcx", word("k"));
  asm.compare("rcx", SHORT_PANEL + 1);
  asm.jumpIf("less", there);
  asm.place(several);
}

/** One tile: `height` rows from A_TILE by `width` panels, into C. */
function tile(asm: Assembler, height: number, width: number): void {
  const sums = Array.from({ length: height * width }, (_, i) => {
    const [row, panel] = [Math.floor(i / width), i % width];
    return { vector: i, row, panel, place: { ...rowAt(C, C_ROW, C_ROW3, row), offset: 32 * panel } };
  });
  const [add, multiply, finish] = [asm.label(), asm.label(), asm.label()];
  asm.move(A, A_TILE);
  asm.move(B, spill("bGroup"));
  asm.moveWord("rcx", word("add"));
  asm.compare("rcx", 0);
  asm.jumpIf("notEqual", add);
  for (const { vector } of sums) asm.zero(vector);
  asm.jump(multiply);
  asm.place(add);
  for (const { vector, place } of sums) asm.load(vector, place);
  asm.place(multiply);
  asm.move(K_LEFT, spill("k"));
  asm.compare(K_LEFT, 0);
  asm.jumpIf("equal", finish);
  const loop = asm.here();
  if (height === 4) {
    asm.prefetch({ base: AHEAD });
    asm.add(AHEAD, AHEAD_STEP);
  }
  const factor = (row: number) => rowAt(A, A_ROW, A_ROW3, row);
  const sum = (row: number, panel: number): Vector => row * width + panel;
  // Sixteen registers: the sums, all of the shorter side, and one at a time of the longer.
  const held = height * width;
  if (height >= width) {
    for (let panel = 0; panel < width; panel++) asm.load(held + panel, panelAt(B, panel));
    for (let row = 0; row < height; row++) {
      asm.broadcast(held + width, factor(row));
      for (let panel = 0; panel < width; panel++) asm.fma(sum(row, panel), held + width, held + panel);
    }
  } else {
    for (let row = 0; row < height; row++) asm.broadcast(held + row, factor(row));
    for (let panel = 0; panel < width; panel++) {
      if (height > 1) asm.load(held + height, panelAt(B, panel));
      for (let row = 0; row < height; row++) {
        asm.fma(sum(row, panel), held + row, height > 1 ? held + height : panelAt(B, panel));
      }
    }
  }
  asm.add(A, A_K);
  asm.add(B, 32);
  asm.subtract(K_LEFT, 1);
  asm.jumpIf("notEqual", loop);
  asm.place(finish);
  for (const { vector, place } of sums) asm.save(place, vector);
}

/** Where row number `n` lies, of at most four. */
function rowAt(base: Register, stride: Register, stride3: Register, n: number): Place {
  if (n === 0) return { base };
  return n === 3 ? { base, index: stride3 } : { base, index: stride, scale: n as 1 | 2 };
}

/** Where panel number `n` of a group lies. */
function panelAt(base: Register, n: number): Place {
  const multiples: Readonly<Record<number, readonly [Register, 1 | 2 | 4 | 8]>> = {
    ...{ 1: [B_PANEL, 1], 2: [B_PANEL, 2], 3: [B_PANEL3, 1], 4: [B_PANEL, 4] },
    ...{ 5: [B_PANEL5, 1], 6: [B_PANEL3, 2], 7: [B_PANEL7, 1], 8: [B_PANEL, 8] },
  };
  const [index, scale] = multiples[n] ?? [undefined, 1];
  return index ? { base, index, scale } : { base };
}
