// A small x86-64 assembler: the few instructions our kernels are made of, written one after another into bytes.
// Operands stand in Intel's order, what is written first: `fma(y, a, b)` is vfmadd231ps y, a, b, that is y += a · b.

/** A general register, 64 bits, by its number in the encoding. */
export const REGISTER = {
  ...{ rax: 0, rcx: 1, rdx: 2, rbx: 3, rsp: 4, rbp: 5, rsi: 6, rdi: 7 },
  ...{ r8: 8, r9: 9, r10: 10, r11: 11, r12: 12, r13: 13, r14: 14, r15: 15 },
} as const;
export type Register = keyof typeof REGISTER;

/** A vector register, ymm0 to ymm15 (xmm where an instruction is 128 bits wide). */
export type Vector = number;

/** A place in memory: [base + index · scale + offset]. */
export interface Place {
  readonly base: Register;
  readonly index?: Register;
  readonly scale?: 1 | 2 | 4 | 8;
  readonly offset?: number;
}

export type Condition = "equal" | "notEqual" | "less" | "atLeast";
const CONDITIONS: Record<Condition, number> = { equal: 0x4, notEqual: 0x5, less: 0xc, atLeast: 0xd };

export type Lanewise = "add" | "subtract" | "multiply" | "divide" | "min" | "max" | "and" | "or" | "xor";
const LANEWISE: Record<Lanewise, number> = {
  ...{ add: 0x58, subtract: 0x5c, multiply: 0x59, divide: 0x5e, min: 0x5d, max: 0x5f },
  ...{ and: 0x54, or: 0x56, xor: 0x57 },
};

/** A spot in the code that jumps go to. */
export interface Label {
  at: number | undefined;
  readonly jumps: number[];
}

/** Opcode maps and prefixes as VEX writes them. */
const MAP = { "0f": 1, "0f38": 2, "0f3a": 3 } as const;
const PREFIX = { none: 0, "66": 1, f3: 2, f2: 3 } as const;

interface VexForm {
  readonly map: keyof typeof MAP;
  readonly prefix: keyof typeof PREFIX;
  readonly opcode: number;
  /** 256 bits rather than 128. @default true */
  readonly wide?: boolean;
}

/** Writes instructions; `finish` gives the bytes. */
export class Assembler {
  readonly #bytes: number[] = [];
  readonly #labels: Label[] = [];

  /** Bytes so far: where the next instruction will stand. */
  get position(): number {
    return this.#bytes.length;
  }

  label(): Label {
    const label: Label = { at: undefined, jumps: [] };
    this.#labels.push(label);
    return label;
  }

  /** Puts a label here. */
  place(label: Label): void {
    if (label.at !== undefined) throw new Error("a label stands in one place only");
    label.at = this.position;
  }

  /** A new label, here. */
  here(): Label {
    const label = this.label();
    this.place(label);
    return label;
  }

  /** Fills up with bytes that are not reached, so that what follows begins a line of the cache. */
  align(to = 64): void {
    while (this.position % to !== 0) this.#bytes.push(0xcc);
  }

  /** The code, with every jump pointed at its label. */
  finish(): Uint8Array<ArrayBuffer> {
    const code = Uint8Array.from(this.#bytes);
    const view = new DataView(code.buffer);
    for (const { at, jumps } of this.#labels) {
      if (at === undefined && jumps.length > 0) throw new Error("a jump to a label that was never placed");
      for (const jump of jumps) view.setInt32(jump, at! - (jump + 4), true);
    }
    return code;
  }

  push(register: Register): void {
    const n = REGISTER[register];
    this.#emit(...(n > 7 ? [0x41] : []), 0x50 + (n & 7));
  }

  pop(register: Register): void {
    const n = REGISTER[register];
    this.#emit(...(n > 7 ? [0x41] : []), 0x58 + (n & 7));
  }

  ret(): void {
    this.#emit(0xc3);
  }

  call(label: Label): void {
    this.#emit(0xe8);
    this.#target(label);
  }

  jump(label: Label): void {
    this.#emit(0xe9);
    this.#target(label);
  }

  jumpIf(condition: Condition, label: Label): void {
    this.#emit(0x0f, 0x80 + CONDITIONS[condition]);
    this.#target(label);
  }

  /** A register or eight bytes of memory into a register. */
  move(to: Register, from: Register | Place): void {
    if (typeof from === "string") this.#general(0x89, REGISTER[from], to);
    else this.#general(0x8b, REGISTER[to], from);
  }

  /** Four bytes of memory, without a sign, into a register. */
  moveWord(to: Register, from: Place): void {
    this.#general(0x8b, REGISTER[to], from, false);
  }

  /** A small number, with its sign. */
  set(to: Register, value: number): void {
    this.#general(0xc7, 0, to);
    this.#word(value);
  }

  store(to: Place, from: Register): void {
    this.#general(0x89, REGISTER[from], to);
  }

  /** The address of a place. */
  address(to: Register, place: Place): void {
    this.#general(0x8d, REGISTER[to], place);
  }

  add(to: Register, value: Register | Place | number): void {
    this.#arithmetic(0, to, value);
  }

  subtract(to: Register, value: Register | Place | number): void {
    this.#arithmetic(5, to, value);
  }

  and(to: Register, value: Register | Place | number): void {
    this.#arithmetic(4, to, value);
  }

  compare(a: Register, b: Register | Place | number): void {
    this.#arithmetic(7, a, b);
  }

  multiply(to: Register, by: Register): void {
    this.#emit(
      rex(true, REGISTER[to], 0, REGISTER[by]),
      0x0f,
      0xaf,
      0xc0 | ((REGISTER[to] & 7) << 3) | (REGISTER[by] & 7),
    );
  }

  shiftLeft(register: Register, bits: number): void {
    this.#general(0xc1, 4, register);
    this.#emit(bits);
  }

  shiftRight(register: Register, bits: number): void {
    this.#general(0xc1, 5, register);
    this.#emit(bits);
  }

  /** What the processor can do: asks for leaf eax, sub-leaf ecx, answers in eax, ebx, ecx, edx. */
  cpuid(): void {
    this.#emit(0x0f, 0xa2);
  }

  /** Which registers the system keeps: state component ecx, into edx:eax. */
  xgetbv(): void {
    this.#emit(0x0f, 0x01, 0xd0);
  }

  /** Asks for a line of the cache ahead of its use; any address will do, also one that is not there. */
  prefetch(from: Place): void {
    const [x, b] = extensions(from);
    const prefix = rex(false, 0, x, b);
    this.#emit(...(prefix === 0x40 ? [] : [prefix]), 0x0f, 0x18);
    this.#operand(1, from);
  }

  /** One float, in memory or the lowest of a register, into all eight lanes. */
  broadcast(to: Vector, from: Vector | Place): void {
    this.#vex({ map: "0f38", prefix: "66", opcode: 0x18 }, to, 0, from);
  }

  load(to: Vector, from: Place): void {
    this.#vex({ map: "0f", prefix: "none", opcode: 0x10 }, to, 0, from);
  }

  save(to: Place, from: Vector): void {
    this.#vex({ map: "0f", prefix: "none", opcode: 0x11 }, from, 0, to);
  }

  /** The lowest lane alone. */
  saveOne(to: Place, from: Vector): void {
    this.#vex({ map: "0f", prefix: "f3", opcode: 0x11, wide: false }, from, 0, to);
  }

  /** to += a · b, rounded once. */
  fma(to: Vector, a: Vector, b: Vector | Place): void {
    this.#vex({ map: "0f38", prefix: "66", opcode: 0xb8 }, to, a, b);
  }

  /** to = to · a + b, rounded once. */
  fmaOnto(to: Vector, a: Vector, b: Vector | Place): void {
    this.#vex({ map: "0f38", prefix: "66", opcode: 0xa8 }, to, a, b);
  }

  /** to = a ∘ b, lane by lane; `lanes` 4 or 8. */
  lanewise(operation: Lanewise, to: Vector, a: Vector, b: Vector | Place, lanes: 4 | 8 = 8): void {
    this.#vex({ map: "0f", prefix: "none", opcode: LANEWISE[operation], wide: lanes === 8 }, to, a, b);
  }

  /** All ones where it holds; "unordered" is where either is not a number. */
  compareLanes(test: "atLeast" | "unordered", to: Vector, a: Vector, b: Vector | Place): void {
    this.#vex({ map: "0f", prefix: "none", opcode: 0xc2 }, to, a, b);
    this.#emit(test === "atLeast" ? 0x0d : 0x03);
  }

  /** To the nearest whole number, the even one of two. */
  round(to: Vector, from: Vector): void {
    this.#vex({ map: "0f3a", prefix: "66", opcode: 0x08 }, to, 0, from);
    this.#emit(0x08);
  }

  shiftLanesLeft(to: Vector, from: Vector, bits: number): void {
    this.#vex({ map: "0f", prefix: "66", opcode: 0x72 }, 6, to, from);
    this.#emit(bits);
  }

  /** The upper four lanes into the lower ones of another register. */
  upper(to: Vector, from: Vector): void {
    this.#vex({ map: "0f3a", prefix: "66", opcode: 0x19 }, from, 0, to);
    this.#emit(1);
  }

  /** Four lanes in another order, by two bits each. */
  permute(to: Vector, from: Vector, order: number): void {
    this.#vex({ map: "0f3a", prefix: "66", opcode: 0x04, wide: false }, to, 0, from);
    this.#emit(order);
  }

  zero(to: Vector): void {
    this.lanewise("xor", to, to, to);
  }

  /** The address of a label. */
  addressOf(to: Register, label: Label): void {
    this.#emit(rex(true, REGISTER[to], 0, 0), 0x8d, 0x05 | ((REGISTER[to] & 7) << 3));
    this.#target(label);
  }

  /** Four bytes of memory set to a number's bits. */
  storeWord(to: Place, bits: number): void {
    this.#general(0xc7, 0, to, false);
    this.#word(bits);
  }

  /** A float as data, eight times over. */
  floats(value: number): void {
    const bits = new Int32Array(Float32Array.of(value).buffer)[0]!;
    for (let lane = 0; lane < 8; lane++) this.#word(bits);
  }

  /** Code that stands by itself. */
  append(code: Uint8Array): void {
    for (const byte of code) this.#bytes.push(byte);
  }

  /** Clears the upper halves: what runs next may use the older instructions without waiting for them. */
  clearUpper(): void {
    this.#emit(0xc5, 0xf8, 0x77);
  }

  /** add, or, and, sub, xor, cmp by their number in the encoding. */
  #arithmetic(operation: number, to: Register, value: Register | Place | number): void {
    if (typeof value !== "number") {
      if (typeof value === "string") this.#general(8 * operation + 1, REGISTER[value], to);
      else this.#general(8 * operation + 3, REGISTER[to], value);
      return;
    }
    const isShort = value >= -128 && value <= 127;
    this.#general(isShort ? 0x83 : 0x81, operation, to);
    if (isShort) this.#emit(value & 0xff);
    else this.#word(value);
  }

  #general(opcode: number, reg: number, operand: Register | Place, wide = true): void {
    const [x, b] = extensions(operand);
    const prefix = rex(wide, reg, x, b);
    this.#emit(...(prefix === 0x40 ? [] : [prefix]), opcode);
    this.#operand(reg, typeof operand === "string" ? REGISTER[operand] : operand);
  }

  /** The three-byte VEX prefix, which can say everything. */
  #vex({ map, prefix, opcode, wide = true }: VexForm, reg: number, second: number, operand: Vector | Place): void {
    const [x, b] = typeof operand === "number" ? [0, operand] : extensions(operand);
    const inverted = (reg > 7 ? 0 : 0x80) | (x > 7 ? 0 : 0x40) | (b > 7 ? 0 : 0x20);
    this.#emit(0xc4, inverted | MAP[map], ((~second & 15) << 3) | (wide ? 4 : 0) | PREFIX[prefix], opcode);
    this.#operand(reg, operand);
  }

  /** The ModRM byte, and SIB and the offset where there are. */
  #operand(reg: number, operand: number | Place): void {
    const field = (reg & 7) << 3;
    if (typeof operand === "number") {
      this.#emit(0xc0 | field | (operand & 7));
      return;
    }
    const { base, index, scale = 1, offset = 0 } = operand;
    const low = REGISTER[base] & 7;
    // rbp and r13 as a base always have an offset; rsp and r12 always a SIB; rsp can be no index.
    const mode = offset === 0 && low !== 5 ? 0 : offset >= -128 && offset <= 127 ? 1 : 2;
    if (index === undefined && low !== 4) this.#emit((mode << 6) | field | low);
    else {
      if (index === "rsp") throw new Error("rsp cannot be an index");
      const i = index === undefined ? 4 : REGISTER[index] & 7;
      this.#emit((mode << 6) | field | 4, (Math.log2(scale) << 6) | (i << 3) | low);
    }
    if (mode === 1) this.#emit(offset & 0xff);
    if (mode === 2) this.#word(offset);
  }

  #target(label: Label): void {
    label.jumps.push(this.position);
    this.#word(0);
  }

  #word(value: number): void {
    this.#emit(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, (value >> 24) & 0xff);
  }

  #emit(...bytes: number[]): void {
    this.#bytes.push(...bytes);
  }
}

function rex(wide: boolean, reg: number, index: number, base: number): number {
  return 0x40 | (wide ? 8 : 0) | (reg > 7 ? 4 : 0) | (index > 7 ? 2 : 0) | (base > 7 ? 1 : 0);
}

/** Numbers of the index and base registers of an operand. */
function extensions(operand: Register | Place): readonly [index: number, base: number] {
  if (typeof operand === "string") return [0, REGISTER[operand]];
  return [operand.index === undefined ? 0 : REGISTER[operand.index], REGISTER[operand.base]];
}
