// Kernels that call machine code instead of WebAssembly. Blocking and the split over threads are here, the inner loops
// in machine code.
import type { KernelExports } from "../thread-pool.ts";
import type { InstructionSet } from "./instruction-set.ts";

/** The part of koffi that we use. */
export interface Foreign {
  load(path: string | null): { func(prototype: string): (...args: never[]) => unknown };
  proto(prototype: string): unknown;
  decode(address: bigint, type: unknown): (parameters: number) => void;
  address(value: ArrayBufferView): bigint;
  view(address: bigint, length: number): ArrayBuffer;
}

export type NativeFunction = "matmul" | "runCommands" | "swiGlu" | "swiGluBackward";

/** Addresses of the routines and the layout of their parameters: all that a thread needs to bind them. */
export interface NativeCode {
  readonly instructionSet: InstructionSet;
  readonly functions: Readonly<Record<NativeFunction, number>>;
  readonly baseOffset: number;
  readonly listOffset: number;
  readonly entryBytes: number;
  readonly parametersBytes: number;
}

/** Mapped machine code, and the koffi instance that calls it. */
export interface Native {
  readonly koffi: Foreign;
  readonly code: NativeCode;
}

/** Kernels that replace a module's kernels of the same names, and the functions that its other kernels import. */
export interface Bound {
  readonly instructionSet: InstructionSet;
  readonly kernels: KernelExports;
  readonly imports: KernelExports;
}

/**
 * Makes kernels over `memory` that call the machine code. Worker threads get this function as text, so it may use
 * nothing but its arguments.
 */
export function bindNative(koffi: Foreign, memory: WebAssembly.Memory, code: NativeCode): Bound {
  const ROW_BLOCK = 96; // rows of A per pass over all panels: they stay in the L2 cache
  const K_BLOCK = 256; // a tile's panels of B this long (three with AVX2, four with AVX-512) stay in the L1 cache
  koffi.load(null); // a thread's first call sets up koffi
  const type = koffi.proto("void (uintptr_t parameters)");
  const bindFunction = (name: NativeFunction) => koffi.decode(BigInt(code.functions[name]), type);
  const callMatmul = bindFunction("matmul");
  const callRunCommands = bindFunction("runCommands");
  const callSwiGlu = bindFunction("swiGlu");
  const callSwiGluBackward = bindFunction("swiGluBackward");
  const parameters = new ArrayBuffer(code.parametersBytes); // a typed array without one could be moved by the garbage collector
  const words = new Uint32Array(parameters);
  const address = Number(koffi.address(words));
  const base = new BigUint64Array(parameters, code.baseOffset, 1);
  let view = new Uint8Array(0);

  /**
   * Throws if `end` is outside the memory, since machine code does not trap. Memory that grew (and, unless shared, moved)
   * makes the view too short or detached: it is renewed here.
   */
  const checkInside = (end: number) => {
    if (end <= view.length) return;
    view = new Uint8Array(memory.buffer);
    base[0] = koffi.address(view);
    if (!(end <= view.length)) throw new RangeError("memory access out of bounds in machine code");
  };

  const matmul = (
    a: number,
    aTile: number,
    aRow: number,
    aK: number,
    b: number,
    bPanel: number,
    panels: number,
    c: number,
    cRow: number,
    m: number,
    k: number,
    add: number,
  ) => {
    words[0] = a;
    words[1] = aTile;
    words[2] = aRow;
    words[3] = aK;
    words[4] = b;
    words[5] = bPanel;
    words[6] = panels;
    words[7] = c;
    words[8] = cRow;
    words[9] = m;
    words[10] = k;
    words[11] = add;
    // Three panels are 96 bytes per k, shared among the tiles; only if panels are contiguous.
    words[12] = bPanel === 32 * k ? Math.ceil(96 / Math.ceil(m / 4)) : 0;
    if (m <= 0 || panels <= 0) return;
    // The last row of A may be at a lower address than one of the tile before.
    const tile = (m - 1) >> 2;
    const lastRow = tile * words[1]! + ((m - 1) & 3) * words[2]!;
    const rowBefore = tile > 0 ? (tile - 1) * words[1]! + 3 * words[2]! : 0;
    if (k > 0) checkInside(words[0]! + Math.max(lastRow, rowBefore) + (k - 1) * words[3]! + 4);
    if (k > 0) checkInside(words[4]! + (panels - 1) * words[5]! + k * 32);
    checkInside(words[7]! + (m - 1) * words[8]! + panels * 32);
    callMatmul(address);
  };

  const rowBound = (m: number, part: number, parts: number) =>
    part === parts ? m : Math.floor((m * part) / parts) & ~3;

  const gemm = (
    a: number,
    aRow: number,
    aK: number,
    b: number,
    c: number,
    cRow: number,
    m: number,
    n: number,
    k: number,
    add: number,
    part: number,
    parts: number,
  ) => {
    const panels = (n + 7) >> 3;
    const byRows = m >= parts * 32;
    const firstRow = byRows ? rowBound(m, part, parts) : 0;
    const lastRow = byRows ? rowBound(m, part + 1, parts) : m;
    const firstPanel = byRows ? 0 : Math.floor((panels * part) / parts);
    const lastPanel = byRows ? panels : Math.floor((panels * (part + 1)) / parts);
    const kBlock = m > 64 ? K_BLOCK : k; // with few rows blocking gains nothing, and panels stay contiguous without it
    for (let r = firstRow; r < lastRow; r += ROW_BLOCK) {
      for (let k0 = 0; k0 === 0 || k0 < k; k0 += Math.max(1, kBlock)) {
        const aFrom = a + r * aRow + k0 * aK;
        const bFrom = b + (firstPanel * k + k0) * 32;
        const cFrom = c + r * cRow + firstPanel * 32;
        const rows = Math.min(lastRow - r, ROW_BLOCK);
        const length = Math.min(kBlock, k - k0);
        const adds = k0 > 0 ? 1 : add;
        matmul(aFrom, 4 * aRow, aRow, aK, bFrom, k * 32, lastPanel - firstPanel, cFrom, cRow, rows, length, adds);
      }
    }
  };

  const gemmRows = (
    a: number,
    b: number,
    c: number,
    cRow: number,
    m: number,
    n: number,
    k: number,
    part: number,
    parts: number,
  ) => {
    const panels = (n + 7) >> 3;
    const first = rowBound(m, part, parts);
    const last = rowBound(m, part + 1, parts);
    for (let k0 = 0; k0 < k; k0 += K_BLOCK) {
      const aFrom = a + (first >> 2) * k * 16 + k0 * 16;
      const length = Math.min(K_BLOCK, k - k0);
      matmul(aFrom, k * 16, 4, 16, b + k0 * 32, k * 32, panels, c + first * cRow, cRow, last - first, length, 1);
    }
  };

  /** Runs a command list; the kernel that wrote it has checked that every entry stays inside the memory. */
  const runCommands = (list: number, count: number) => {
    const at = list >>> 0;
    checkInside(at + code.entryBytes * count);
    words[code.listOffset / 4] = at;
    words[code.listOffset / 4 + 1] = count;
    callRunCommands(address);
  };

  /** Writes the parameters for a thread's share of the rows of h; false if it is empty. */
  const writeRows = (h: number, a: number, dh: number, rows: number, width: number, part: number, parts: number) => {
    if (width % 8 !== 0) throw new RangeError(`a width of ${width} is not a multiple of eight`);
    const from = Math.floor((rows * part) / parts);
    const count = Math.floor((rows * (part + 1)) / parts) - from;
    words[0] = h + from * 8 * width;
    words[1] = a + from * 4 * width;
    words[2] = dh + from * 8 * width;
    words[3] = count;
    words[4] = 4 * width;
    checkInside(words[0] + count * 8 * width);
    checkInside(words[1] + count * 4 * width);
    checkInside(words[2] + count * 8 * width);
    return count > 0 && width > 0;
  };

  const swiGlu = (h: number, a: number, rows: number, width: number, part: number, parts: number) => {
    if (writeRows(h, a, h, rows, width, part, parts)) callSwiGlu(address);
  };

  const swiGluBackward = (
    da: number,
    h: number,
    dh: number,
    rows: number,
    width: number,
    part: number,
    parts: number,
  ) => {
    if (writeRows(h, da, dh, rows, width, part, parts)) callSwiGluBackward(address);
  };

  return {
    instructionSet: code.instructionSet,
    kernels: { gemm, gemmRows, swiGlu, swiGluBackward },
    imports: { runCommands },
  };
}
