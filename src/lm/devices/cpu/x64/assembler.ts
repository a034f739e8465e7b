// A small x86-64 assembler: one method, named by the Intel mnemonic, for each of the few instructions our kernels use.
// Operands are in Intel's order, destination first: `vfmadd231ps(y, a, b)` is y += a · b.

/** 64-bit general registers by their numbers in the encoding. */
export const REGISTER = {
  rax: 0,
  rcx: 1,
  rdx: 2,
  rbx: 3,
  rsp: 4,
  rbp: 5,
  rsi: 6,
  rdi: 7,
  r8: 8,
  r9: 9,
  r10: 10,
  r11: 11,
  r12: 12,
  r13: 13,
  r14: 14,
  r15: 15,
} as const;
export type Register = keyof typeof REGISTER;

/** A vector register: ymm0 to ymm15, or its lower half xmm0 to xmm15 in 128-bit instructions. */
export type Vector = number;

/** A memory operand: [base + index · scale + offset]. */
export interface Memory {
  readonly base: Register;
  readonly index?: Register;
  readonly scale?: 1 | 2 | 4 | 8;
  readonly offset?: number;
}

/** Width of a vector operation: xmm or ymm registers. */
export type VectorBits = 128 | 256;

/** A position in the code to jump to or to take the address of. */
export interface Label {
  at: number | undefined;
  /** Positions in the code that hold a 32-bit distance to it. */
  readonly references: number[];
}

/** Opcode maps and prefixes as VEX encodes them. */
const MAP = { "0f": 1, "0f38": 2, "0f3a": 3 } as const;
const PREFIX = { none: 0, "66": 1, f3: 2, f2: 3 } as const;

interface VexForm {
  readonly map: keyof typeof MAP;
  readonly prefix: keyof typeof PREFIX;
  readonly opcode: number;
  /** Whether the operation is 256 bits wide rather than 128. @default true */
  readonly wide?: boolean;
}

/** Writes instructions; `finish` returns the bytes. */
export class Assembler {
  readonly #bytes: number[] = [];
  readonly #labels: Label[] = [];

  /** Number of bytes so far, which is the offset of the next instruction. */
  get position(): number {
    return this.#bytes.length;
  }

  label(): Label {
    const label: Label = { at: undefined, references: [] };
    this.#labels.push(label);
    return label;
  }

  /** Binds a label to the current position. */
  bind(label: Label): void {
    if (label.at !== undefined) throw new Error("the label is already bound");
    label.at = this.position;
  }

  /** Creates a label at the current position. */
  here(): Label {
    const label = this.label();
    this.bind(label);
    return label;
  }

  /** Pads with int3, which is never reached, so that the next byte starts a cache line. */
  align(to = 64): void {
    while (this.position % to !== 0) this.#bytes.push(0xcc);
  }

  /** Returns the code with all label references resolved. */
  finish(): Uint8Array<ArrayBuffer> {
    const code = Uint8Array.from(this.#bytes);
    const view = new DataView(code.buffer);
    for (const { at, references } of this.#labels) {
      if (at === undefined && references.length > 0) throw new Error("a label is used but never bound");
      for (const reference of references) view.setInt32(reference, at! - (reference + 4), true);
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
    this.#reference(label);
  }

  jmp(label: Label): void {
    this.#emit(0xe9);
    this.#reference(label);
  }

  je(label: Label): void {
    this.#jcc(0x4, label);
  }

  jne(label: Label): void {
    this.#jcc(0x5, label);
  }

  /** Jumps if less than (signed). */
  jl(label: Label): void {
    this.#jcc(0xc, label);
  }

  /** Jumps if greater or equal (signed). */
  jge(label: Label): void {
    this.#jcc(0xd, label);
  }

  /** Moves 64 bits. An immediate has 32 bits and is sign-extended. */
  mov(to: Register, from: Register | Memory | number): void;
  mov(to: Memory, from: Register): void;
  mov(to: Register | Memory, from: Register | Memory | number): void {
    if (typeof from === "number") {
      this.#general(0xc7, 0, to);
      this.#dword(from);
    } else if (typeof from === "string") this.#general(0x89, REGISTER[from], to);
    else this.#general(0x8b, REGISTER[to as Register], from);
  }

  /** Moves 32 bits: `mov r32, m32`, which clears the register's upper half, or `mov m32, imm32`. */
  mov32(to: Register, from: Memory): void;
  mov32(to: Memory, bits: number): void;
  mov32(to: Register | Memory, from: Memory | number): void {
    if (typeof from === "number") {
      this.#general(0xc7, 0, to, false);
      this.#dword(from);
    } else this.#general(0x8b, REGISTER[to as Register], from, false);
  }

  /** Loads the address of a memory operand, or of a label (relative to rip). */
  lea(to: Register, of: Memory | Label): void {
    if ("base" in of) {
      this.#general(0x8d, REGISTER[to], of);
      return;
    }
    this.#emit(rex(true, REGISTER[to], 0, 0), 0x8d, 0x05 | ((REGISTER[to] & 7) << 3));
    this.#reference(of);
  }

  add(to: Register, value: Register | Memory | number): void {
    this.#arithmetic(0, to, value);
  }

  sub(to: Register, value: Register | Memory | number): void {
    this.#arithmetic(5, to, value);
  }

  and(to: Register, value: Register | Memory | number): void {
    this.#arithmetic(4, to, value);
  }

  cmp(a: Register, b: Register | Memory | number): void {
    this.#arithmetic(7, a, b);
  }

  imul(to: Register, by: Register): void {
    const modrm = 0xc0 | ((REGISTER[to] & 7) << 3) | (REGISTER[by] & 7);
    this.#emit(rex(true, REGISTER[to], 0, REGISTER[by]), 0x0f, 0xaf, modrm);
  }

  shl(register: Register, bits: number): void {
    this.#general(0xc1, 4, register);
    this.#emit(bits);
  }

  shr(register: Register, bits: number): void {
    this.#general(0xc1, 5, register);
    this.#emit(bits);
  }

  /** Reads processor features: leaf in eax, sub-leaf in ecx; results in eax, ebx, ecx, edx. */
  cpuid(): void {
    this.#emit(0x0f, 0xa2);
  }

  /** Reads the extended control register ecx into edx:eax; register 0 tells which registers the system saves. */
  xgetbv(): void {
    this.#emit(0x0f, 0x01, 0xd0);
  }

  /** Prefetches; never faults, whatever the address. */
  prefetcht0(from: Memory): void {
    const [x, b] = extensions(from);
    const prefix = rex(false, 0, x, b);
    this.#emit(...(prefix === 0x40 ? [] : [prefix]), 0x0f, 0x18);
    this.#operand(1, from);
  }

  /** Broadcasts one float, from memory or a register's lowest lane, to all eight lanes. */
  vbroadcastss(to: Vector, from: Vector | Memory): void {
    this.#vex({ map: "0f38", prefix: "66", opcode: 0x18 }, to, 0, from);
  }

  /** Loads or stores eight floats; needs no alignment. */
  vmovups(to: Vector, from: Memory): void;
  vmovups(to: Memory, from: Vector): void;
  vmovups(to: Vector | Memory, from: Vector | Memory): void {
    if (typeof to === "number") this.#vex({ map: "0f", prefix: "none", opcode: 0x10 }, to, 0, from);
    else this.#vex({ map: "0f", prefix: "none", opcode: 0x11 }, from as Vector, 0, to);
  }

  /** Stores the lowest lane. */
  vmovss(to: Memory, from: Vector): void {
    this.#vex({ map: "0f", prefix: "f3", opcode: 0x11, wide: false }, from, 0, to);
  }

  /** to = to · a + b, rounded once. */
  vfmadd213ps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: "0f38", prefix: "66", opcode: 0xa8 }, to, a, b);
  }

  /** to += a · b, rounded once. */
  vfmadd231ps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#vex({ map: "0f38", prefix: "66", opcode: 0xb8 }, to, a, b);
  }

  vaddps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x58, to, a, b, bits);
  }

  vsubps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x5c, to, a, b, bits);
  }

  vmulps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x59, to, a, b, bits);
  }

  vdivps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x5e, to, a, b, bits);
  }

  /** Minimum per lane; b if either is NaN. */
  vminps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x5d, to, a, b, bits);
  }

  /** Maximum per lane; b if either is NaN. */
  vmaxps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x5f, to, a, b, bits);
  }

  vandps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x54, to, a, b, bits);
  }

  vorps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x56, to, a, b, bits);
  }

  vxorps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.#packed(0x57, to, a, b, bits);
  }

  /** Sets a lane to all ones if a >= b. */
  vcmpgeps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#packed(0xc2, to, a, b);
    this.#emit(0x0d);
  }

  /** Sets a lane to all ones if either is NaN. */
  vcmpunordps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#packed(0xc2, to, a, b);
    this.#emit(0x03);
  }

  /** Rounds each lane by `mode`: 8 means to nearest, ties to even, without exceptions. */
  vroundps(to: Vector, from: Vector, mode: number): void {
    this.#vex({ map: "0f3a", prefix: "66", opcode: 0x08 }, to, 0, from);
    this.#emit(mode);
  }

  /** Shifts each 32-bit lane left. */
  vpslld(to: Vector, from: Vector, bits: number): void {
    this.#vex({ map: "0f", prefix: "66", opcode: 0x72 }, 6, to, from);
    this.#emit(bits);
  }

  /** Extracts half of a ymm register (0: lower, 1: upper) into an xmm register. */
  vextractf128(to: Vector, from: Vector, half: 0 | 1): void {
    this.#vex({ map: "0f3a", prefix: "66", opcode: 0x19 }, from, 0, to);
    this.#emit(half);
  }

  /** Permutes four lanes (xmm): `order` has two bits per destination lane. */
  vpermilps(to: Vector, from: Vector, order: number): void {
    this.#vex({ map: "0f3a", prefix: "66", opcode: 0x04, wide: false }, to, 0, from);
    this.#emit(order);
  }

  /** Clears the upper halves of all ymm registers, so that later SSE code pays no transition penalty. */
  vzeroupper(): void {
    this.#emit(0xc5, 0xf8, 0x77);
  }

  /** Emits data: one float, eight times. */
  floats(value: number): void {
    const bits = new Int32Array(Float32Array.of(value).buffer)[0]!;
    for (let lane = 0; lane < 8; lane++) this.#dword(bits);
  }

  /** Appends position-independent code. */
  append(code: Uint8Array): void {
    for (const byte of code) this.#bytes.push(byte);
  }

  #jcc(condition: number, label: Label): void {
    this.#emit(0x0f, 0x80 + condition);
    this.#reference(label);
  }

  #packed(opcode: number, to: Vector, a: Vector, b: Vector | Memory, bits: VectorBits = 256): void {
    this.#vex({ map: "0f", prefix: "none", opcode, wide: bits === 256 }, to, a, b);
  }

  /** Operation codes: add 0, or 1, and 4, sub 5, xor 6, cmp 7. */
  #arithmetic(operation: number, to: Register, value: Register | Memory | number): void {
    if (typeof value !== "number") {
      if (typeof value === "string") this.#general(8 * operation + 1, REGISTER[value], to);
      else this.#general(8 * operation + 3, REGISTER[to], value);
      return;
    }
    const isShort = value >= -128 && value <= 127;
    this.#general(isShort ? 0x83 : 0x81, operation, to);
    if (isShort) this.#emit(value & 0xff);
    else this.#dword(value);
  }

  #general(opcode: number, reg: number, operand: Register | Memory, wide = true): void {
    const [x, b] = extensions(operand);
    const prefix = rex(wide, reg, x, b);
    this.#emit(...(prefix === 0x40 ? [] : [prefix]), opcode);
    this.#operand(reg, typeof operand === "string" ? REGISTER[operand] : operand);
  }

  /** Emits an instruction with the three-byte VEX prefix, which can encode every form. */
  #vex({ map, prefix, opcode, wide = true }: VexForm, reg: number, second: number, operand: Vector | Memory): void {
    const [x, b] = typeof operand === "number" ? [0, operand] : extensions(operand);
    const inverted = (reg > 7 ? 0 : 0x80) | (x > 7 ? 0 : 0x40) | (b > 7 ? 0 : 0x20);
    this.#emit(0xc4, inverted | MAP[map], ((~second & 15) << 3) | (wide ? 4 : 0) | PREFIX[prefix], opcode);
    this.#operand(reg, operand);
  }

  /** Emits the ModRM byte, then SIB byte and offset if needed. */
  #operand(reg: number, operand: number | Memory): void {
    const field = (reg & 7) << 3;
    if (typeof operand === "number") {
      this.#emit(0xc0 | field | (operand & 7));
      return;
    }
    const { base, index, scale = 1, offset = 0 } = operand;
    const low = REGISTER[base] & 7;
    // As a base, rbp and r13 need an offset, and rsp and r12 a SIB byte; rsp cannot be an index.
    const mode = offset === 0 && low !== 5 ? 0 : offset >= -128 && offset <= 127 ? 1 : 2;
    if (index === undefined && low !== 4) this.#emit((mode << 6) | field | low);
    else {
      if (index === "rsp") throw new Error("rsp cannot be an index");
      const i = index === undefined ? 4 : REGISTER[index] & 7;
      this.#emit((mode << 6) | field | 4, (Math.log2(scale) << 6) | (i << 3) | low);
    }
    if (mode === 1) this.#emit(offset & 0xff);
    if (mode === 2) this.#dword(offset);
  }

  #reference(label: Label): void {
    label.references.push(this.position);
    this.#dword(0);
  }

  #dword(value: number): void {
    this.#emit(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, (value >> 24) & 0xff);
  }

  #emit(...bytes: number[]): void {
    this.#bytes.push(...bytes);
  }
}

function rex(wide: boolean, reg: number, index: number, base: number): number {
  return 0x40 | (wide ? 8 : 0) | (reg > 7 ? 4 : 0) | (index > 7 ? 2 : 0) | (base > 7 ? 1 : 0);
}

/** Numbers of an operand's index and base registers, for the prefix. */
function extensions(operand: Register | Memory): readonly [index: number, base: number] {
  if (typeof operand === "string") return [0, REGISTER[operand]];
  return [operand.index === undefined ? 0 : REGISTER[operand.index], REGISTER[operand.base]];
}
