// Encodes x86-64 instructions: prefixes, operands and labels. The mnemonics are in assembler.ts.

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

/** A vector register: xmm, ymm or zmm by the operation's width, 0 to 31; above 15 only with AVX-512. */
export type Vector = number;

/** Width of a vector operation: xmm, ymm or zmm registers. */
export type VectorBits = 128 | 256 | 512;

/** A memory operand: [base + index · scale + offset]. */
export interface Memory {
  readonly base: Register;
  readonly index?: Register;
  readonly scale?: 1 | 2 | 4 | 8;
  readonly offset?: number;
  /** The operand is one float, repeated in all lanes; only in 512-bit arithmetic. */
  readonly broadcast?: boolean;
}

/** A position in the code to jump to or to take the address of. */
export interface Label {
  at: number | undefined;
  /** Positions in the code that hold a 32-bit distance to it. */
  readonly references: number[];
}

/** Opcode maps and prefixes as VEX and EVEX encode them. */
const MAP = { "0f": 1, "0f38": 2, "0f3a": 3 } as const;
const PREFIX = { none: 0, "66": 1, f3: 2, f2: 3 } as const;

export interface VectorForm {
  readonly map: keyof typeof MAP;
  readonly prefix: keyof typeof PREFIX;
  readonly opcode: number;
  /** @default 256 */
  readonly bits?: VectorBits | undefined;
}

/** Collects instruction bytes; `finish` returns them. */
export class Encoder {
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

  /** Emits data: one float, eight times. */
  floats(value: number): void {
    const bits = new Int32Array(Float32Array.of(value).buffer)[0]!;
    for (let lane = 0; lane < 8; lane++) this.dword(bits);
  }

  /** Appends position-independent code. */
  append(code: Uint8Array): void {
    for (const byte of code) this.#bytes.push(byte);
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

  protected emit(...bytes: number[]): void {
    this.#bytes.push(...bytes);
  }

  protected dword(value: number): void {
    this.emit(value & 0xff, (value >> 8) & 0xff, (value >> 16) & 0xff, (value >> 24) & 0xff);
  }

  protected reference(label: Label): void {
    label.references.push(this.position);
    this.dword(0);
  }

  /** Emits an instruction on general registers or memory. */
  protected general(opcode: number, reg: number, operand: Register | Memory, wide = true): void {
    const [x, b] = extensions(operand);
    const prefix = rex(wide, reg, x, b);
    this.emit(...(prefix === 0x40 ? [] : [prefix]), opcode);
    this.operand(reg, typeof operand === "string" ? REGISTER[operand] : operand);
  }

  /** Emits a vector instruction: with the VEX prefix where it can encode it, else with the EVEX prefix of AVX-512. */
  protected vector(form: VectorForm, reg: number, second: number, operand: Vector | Memory): void {
    const isHigh = Math.max(reg, second, typeof operand === "number" ? operand : 0) > 15;
    if (form.bits === 512 || isHigh) this.#evex(form, reg, second, operand);
    else this.#vex(form, reg, second, operand);
  }

  /** Emits the three-byte VEX prefix, which can encode every form. */
  #vex({ map, prefix, opcode, bits = 256 }: VectorForm, reg: number, second: number, operand: Vector | Memory): void {
    const [x, b] = typeof operand === "number" ? [0, operand] : extensions(operand);
    const inverted = (reg > 7 ? 0 : 0x80) | (x > 7 ? 0 : 0x40) | (b > 7 ? 0 : 0x20);
    this.emit(0xc4, inverted | MAP[map], ((~second & 15) << 3) | (bits === 256 ? 4 : 0) | PREFIX[prefix], opcode);
    this.operand(reg, operand);
  }

  /** Emits the EVEX prefix: 32 registers, 512 bits, masks, one float of memory for all lanes. */
  #evex({ map, prefix, opcode, bits = 256 }: VectorForm, reg: number, second: number, operand: Vector | Memory): void {
    // A register operand has its fifth bit where memory has its index.
    const [x, b] = typeof operand === "number" ? [operand >> 1, operand] : extensions(operand);
    const inverted = (reg & 8 ? 0 : 0x80) | (x & 8 ? 0 : 0x40) | (b & 8 ? 0 : 0x20) | (reg & 16 ? 0 : 0x10);
    const broadcast = typeof operand !== "number" && operand.broadcast ? 0x10 : 0;
    const length = bits === 512 ? 0x40 : bits === 256 ? 0x20 : 0;
    this.emit(0x62, inverted | MAP[map], ((~second & 15) << 3) | 4 | PREFIX[prefix]);
    this.emit(length | broadcast | (second & 16 ? 0 : 8), opcode);
    this.operand(reg, operand, false); // an offset of one byte would be scaled by the operand's size
  }

  /** Emits the ModRM byte, then SIB byte and offset if needed. */
  protected operand(reg: number, operand: number | Memory, allowsByte = true): void {
    const field = (reg & 7) << 3;
    if (typeof operand === "number") {
      this.emit(0xc0 | field | (operand & 7));
      return;
    }
    const { base, index, scale = 1, offset = 0 } = operand;
    const low = REGISTER[base] & 7;
    // As a base, rbp and r13 need an offset, and rsp and r12 a SIB byte; rsp cannot be an index.
    const isByte = offset === 0 || (allowsByte && offset >= -128 && offset <= 127);
    const mode = offset === 0 && low !== 5 ? 0 : isByte ? 1 : 2;
    if (index === undefined && low !== 4) this.emit((mode << 6) | field | low);
    else {
      if (index === "rsp") throw new Error("rsp cannot be an index");
      const i = index === undefined ? 4 : REGISTER[index] & 7;
      this.emit((mode << 6) | field | 4, (Math.log2(scale) << 6) | (i << 3) | low);
    }
    if (mode === 1) this.emit(offset & 0xff);
    if (mode === 2) this.dword(offset);
  }
}

/** The REX prefix. */
export function rex(wide: boolean, reg: number, index: number, base: number): number {
  return 0x40 | (wide ? 8 : 0) | (reg > 7 ? 4 : 0) | (index > 7 ? 2 : 0) | (base > 7 ? 1 : 0);
}

/** Numbers of an operand's index and base registers, for the prefix. */
export function extensions(operand: Register | Memory): readonly [index: number, base: number] {
  if (typeof operand === "string") return [0, REGISTER[operand]];
  return [operand.index === undefined ? 0 : REGISTER[operand.index], REGISTER[operand.base]];
}
