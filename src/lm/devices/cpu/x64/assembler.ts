// A small x86-64 assembler: one method, named by the Intel mnemonic, for each of the few instructions our kernels use.
// Operands are in Intel's order, destination first: `vfmadd231ps(y, a, b)` is y += a · b. Vector instructions are 256 bits
// wide unless `bits` says otherwise; with 512 bits or registers above 15 they need AVX-512.
import {
  Encoder,
  extensions,
  type Label,
  type Memory,
  REGISTER,
  type Register,
  rex,
  type Vector,
  type VectorBits,
} from "./encoder.ts";

export type { Label, Memory, Register, Vector, VectorBits } from "./encoder.ts";

/** Writes instructions, one method per mnemonic. */
export class Assembler extends Encoder {
  push(register: Register): void {
    const n = REGISTER[register];
    this.emit(...(n > 7 ? [0x41] : []), 0x50 + (n & 7));
  }

  pop(register: Register): void {
    const n = REGISTER[register];
    this.emit(...(n > 7 ? [0x41] : []), 0x58 + (n & 7));
  }

  ret(): void {
    this.emit(0xc3);
  }

  call(label: Label): void {
    this.emit(0xe8);
    this.reference(label);
  }

  jmp(label: Label): void {
    this.emit(0xe9);
    this.reference(label);
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
      this.general(0xc7, 0, to);
      this.dword(from);
    } else if (typeof from === "string") this.general(0x89, REGISTER[from], to);
    else this.general(0x8b, REGISTER[to as Register], from);
  }

  /** Moves 32 bits: `mov r32, m32`, which clears the register's upper half, `mov m32, r32` or `mov m32, imm32`. */
  mov32(to: Register, from: Memory): void;
  mov32(to: Memory, from: Register | number): void;
  mov32(to: Register | Memory, from: Register | Memory | number): void {
    if (typeof from === "number") {
      this.general(0xc7, 0, to, false);
      this.dword(from);
    } else if (typeof from === "string") this.general(0x89, REGISTER[from], to, false);
    else this.general(0x8b, REGISTER[to as Register], from, false);
  }

  /** Loads the address of a memory operand, or of a label (relative to rip). */
  lea(to: Register, of: Memory | Label): void {
    if ("base" in of) {
      this.general(0x8d, REGISTER[to], of);
      return;
    }
    this.emit(rex(true, REGISTER[to], 0, 0), 0x8d, 0x05 | ((REGISTER[to] & 7) << 3));
    this.reference(of);
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
    this.emit(rex(true, REGISTER[to], 0, REGISTER[by]), 0x0f, 0xaf, modrm);
  }

  shl(register: Register, bits: number): void {
    this.general(0xc1, 4, register);
    this.emit(bits);
  }

  shr(register: Register, bits: number): void {
    this.general(0xc1, 5, register);
    this.emit(bits);
  }

  /** Reads processor features: leaf in eax, sub-leaf in ecx; results in eax, ebx, ecx, edx. */
  cpuid(): void {
    this.emit(0x0f, 0xa2);
  }

  /** Reads the extended control register ecx into edx:eax; register 0 tells which registers the system saves. */
  xgetbv(): void {
    this.emit(0x0f, 0x01, 0xd0);
  }

  /** Prefetches; never faults, whatever the address. */
  prefetcht0(from: Memory): void {
    const [x, b] = extensions(from);
    const prefix = rex(false, 0, x, b);
    this.emit(...(prefix === 0x40 ? [] : [prefix]), 0x0f, 0x18);
    this.operand(1, from);
  }

  /** Broadcasts one float, from memory or a register's lowest lane, to all lanes. */
  vbroadcastss(to: Vector, from: Vector | Memory, bits?: VectorBits): void {
    this.vector({ map: "0f38", prefix: "66", opcode: 0x18, bits }, to, 0, from);
  }

  /** Loads or stores a vector; needs no alignment. */
  vmovups(to: Vector, from: Memory, bits?: VectorBits): void;
  vmovups(to: Memory, from: Vector, bits?: VectorBits): void;
  vmovups(to: Vector | Memory, from: Vector | Memory, bits?: VectorBits): void {
    if (typeof to === "number") this.vector({ map: "0f", prefix: "none", opcode: 0x10, bits }, to, 0, from);
    else this.vector({ map: "0f", prefix: "none", opcode: 0x11, bits }, from as Vector, 0, to);
  }

  /** Stores the lowest lane. */
  vmovss(to: Memory, from: Vector): void {
    this.vector({ map: "0f", prefix: "f3", opcode: 0x11, bits: 128 }, from, 0, to);
  }

  /** to = to · a + b, rounded once. */
  vfmadd213ps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.vector({ map: "0f38", prefix: "66", opcode: 0xa8 }, to, a, b);
  }

  /** to += a · b, rounded once. */
  vfmadd231ps(to: Vector, a: Vector, b: Vector | Memory, bits?: VectorBits): void {
    this.vector({ map: "0f38", prefix: "66", opcode: 0xb8, bits }, to, a, b);
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
    this.emit(0x0d);
  }

  /** Sets a lane to all ones if either is NaN. */
  vcmpunordps(to: Vector, a: Vector, b: Vector | Memory): void {
    this.#packed(0xc2, to, a, b);
    this.emit(0x03);
  }

  /** Rounds each lane by `mode`: 8 means to nearest, ties to even, without exceptions. */
  vroundps(to: Vector, from: Vector, mode: number): void {
    this.vector({ map: "0f3a", prefix: "66", opcode: 0x08 }, to, 0, from);
    this.emit(mode);
  }

  /** Shifts each 32-bit lane left. */
  vpslld(to: Vector, from: Vector, by: number): void {
    this.vector({ map: "0f", prefix: "66", opcode: 0x72 }, 6, to, from);
    this.emit(by);
  }

  /** Sets a zmm register to 0. */
  vpxord(to: Vector, a: Vector, b: Vector): void {
    this.vector({ map: "0f", prefix: "66", opcode: 0xef, bits: 512 }, to, a, b);
  }

  /** Copies zmm register `low` and replaces half of it (0: lower, 1: upper) by eight floats. */
  vinsertf32x8(to: Vector, low: Vector, from: Vector | Memory, half: 0 | 1): void {
    this.vector({ map: "0f3a", prefix: "66", opcode: 0x1a, bits: 512 }, to, low, from);
    this.emit(half);
  }

  /** Extracts half of a ymm register (0: lower, 1: upper) into an xmm register. */
  vextractf128(to: Vector, from: Vector, half: 0 | 1): void {
    this.vector({ map: "0f3a", prefix: "66", opcode: 0x19 }, from, 0, to);
    this.emit(half);
  }

  /** Permutes four lanes (xmm): `order` has two bits per destination lane. */
  vpermilps(to: Vector, from: Vector, order: number): void {
    this.vector({ map: "0f3a", prefix: "66", opcode: 0x04, bits: 128 }, to, 0, from);
    this.emit(order);
  }

  /** Clears the upper halves of all ymm registers, so that later SSE code pays no transition penalty. */
  vzeroupper(): void {
    this.emit(0xc5, 0xf8, 0x77);
  }

  #jcc(condition: number, label: Label): void {
    this.emit(0x0f, 0x80 + condition);
    this.reference(label);
  }

  #packed(opcode: number, to: Vector, a: Vector, b: Vector | Memory, bits: VectorBits = 256): void {
    this.vector({ map: "0f", prefix: "none", opcode, bits }, to, a, b);
  }

  /** Operation codes: add 0, or 1, and 4, sub 5, xor 6, cmp 7. */
  #arithmetic(operation: number, to: Register, value: Register | Memory | number): void {
    if (typeof value !== "number") {
      if (typeof value === "string") this.general(8 * operation + 1, REGISTER[value], to);
      else this.general(8 * operation + 3, REGISTER[to], value);
      return;
    }
    const isShort = value >= -128 && value <= 127;
    this.general(isShort ? 0x83 : 0x81, operation, to);
    if (isShort) this.emit(value & 0xff);
    else this.dword(value);
  }
}
