// Asks the processor and the system which instructions can be used.
import { Assembler } from "./assembler.ts";
import type { InstructionSet } from "./instruction-set.ts";

const [FMA, XGETBV, AVX] = [1 << 12, 1 << 27, 1 << 28]; // leaf 1, ecx
const AVX2 = 1 << 5; // leaf 7, ebx
const AVX512 = (1 << 16) | (1 << 17) | (1 << 31); // leaf 7, ebx: F, DQ, VL
const [YMM_STATE, ZMM_STATE] = [0x06, 0xe6]; // registers that the system saves

/** Assembles `int canRun()`: 1 if the processor has AVX2 and FMA, or AVX-512 too, and the system saves its registers. */
export function assembleCanRun(set: InstructionSet): Uint8Array<ArrayBuffer> {
  const isWide = set === "avx512";
  const asm = new Assembler();
  const no = asm.label();
  const has = (register: "rax" | "rbx" | "rcx", bits: number) => {
    asm.and(register, bits | 0); // sign-extended: the register's upper half is 0
    asm.mov("rdx", register);
    asm.shl("rdx", 32);
    asm.mov("rsi", bits | 0);
    asm.shl("rsi", 32);
    asm.cmp("rdx", "rsi");
    asm.jne(no);
  };
  asm.push("rbx");
  asm.mov("rax", 0);
  asm.cpuid();
  asm.cmp("rax", 7); // the highest leaf
  asm.jl(no);
  asm.mov("rax", 1);
  asm.cpuid();
  has("rcx", FMA | XGETBV | AVX);
  asm.mov("rax", 7);
  asm.mov("rcx", 0);
  asm.cpuid();
  has("rbx", isWide ? AVX2 | AVX512 : AVX2);
  asm.mov("rcx", 0);
  asm.xgetbv();
  has("rax", isWide ? ZMM_STATE : YMM_STATE);
  asm.mov("rax", 1);
  asm.pop("rbx");
  asm.ret();
  asm.bind(no);
  asm.mov("rax", 0);
  asm.pop("rbx");
  asm.ret();
  return asm.finish();
}
