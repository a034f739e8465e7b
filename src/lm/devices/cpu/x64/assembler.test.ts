// Pins the assembler's bytes to those of GNU as for the same instructions.
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { Assembler } from "./assembler.ts";
import { assembleCanRun } from "./can-run.ts";
import { assembleRunCommands } from "./command-list.ts";
import { assembleMatmul } from "./matmul.ts";
import { assembleMatmul512 } from "./matmul512.ts";
import { assembleScoreGradients, assembleSoftmax } from "./softmax.ts";
import { assembleSwiGlu, assembleSwiGluBackward } from "./swiglu.ts";

function bytesOf(write: (asm: Assembler) => void): string {
  const asm = new Assembler();
  write(asm);
  return Buffer.from(asm.finish()).toString("hex");
}

test.each<[string, string, (asm: Assembler) => void]>([
  ["push rbx", "53", (asm) => asm.push("rbx")],
  ["push r12", "4154", (asm) => asm.push("r12")],
  ["pop r15", "415f", (asm) => asm.pop("r15")],
  ["ret", "c3", (asm) => asm.ret()],
  ["mov rsi, r12", "4c89e6", (asm) => asm.mov("rsi", "r12")],
  ["mov r12, [rdi+0x68]", "4c8b6768", (asm) => asm.mov("r12", { base: "rdi", offset: 0x68 })],
  ["mov eax, [rdi+0xc]", "8b470c", (asm) => asm.mov32("rax", { base: "rdi", offset: 12 })],
  ["mov r8d, [rdi+0x8]", "448b4708", (asm) => asm.mov32("r8", { base: "rdi", offset: 8 })],
  ["mov rcx, 1", "48c7c101000000", (asm) => asm.mov("rcx", 1)],
  ["mov [rdi+0x60], rcx", "48894f60", (asm) => asm.mov({ base: "rdi", offset: 0x60 }, "rcx")],
  ["lea r9, [r8+r8*2]", "4f8d0c40", (asm) => asm.lea("r9", { base: "r8", index: "r8", scale: 2 })],
  ["lea r13, [r13+r14*4]", "4f8d6cb500", (asm) => asm.lea("r13", { base: "r13", index: "r14", scale: 4 })],
  ["add rsi, rax", "4801c6", (asm) => asm.add("rsi", "rax")],
  ["add rdx, 0x20", "4883c220", (asm) => asm.add("rdx", 32)],
  ["add rdx, 0x1000", "4881c200100000", (asm) => asm.add("rdx", 4096)],
  ["add rcx, [rdi+0x30]", "48034f30", (asm) => asm.add("rcx", { base: "rdi", offset: 0x30 })],
  ["sub rcx, 1", "4883e901", (asm) => asm.sub("rcx", 1)],
  ["and rcx, 3", "4883e103", (asm) => asm.and("rcx", 3)],
  ["cmp rcx, 0", "4883f900", (asm) => asm.cmp("rcx", 0)],
  ["imul rcx, r14", "490fafce", (asm) => asm.imul("rcx", "r14")],
  ["shl rcx, 2", "48c1e102", (asm) => asm.shl("rcx", 2)],
  ["shr rcx, 2", "48c1e902", (asm) => asm.shr("rcx", 2)],
  ["cpuid", "0fa2", (asm) => asm.cpuid()],
  ["xgetbv", "0f01d0", (asm) => asm.xgetbv()],
  ["vbroadcastss ymm15, [rsi]", "c4627d183e", (asm) => asm.vbroadcastss(15, { base: "rsi" })],
  ["vbroadcastss ymm15, [rsi+r9]", "c4227d183c0e", (asm) => asm.vbroadcastss(15, { base: "rsi", index: "r9" })],
  ["vmovups ymm14, [rdx+r10*2]", "c4217c103452", (asm) => asm.vmovups(14, { base: "rdx", index: "r10", scale: 2 })],
  ["vmovups ymm0, [r13+0x20]", "c4c17c104520", (asm) => asm.vmovups(0, { base: "r13", offset: 32 })],
  [
    "vmovups [r13+r15+0x40], ymm11",
    "c4017c115c3d40",
    (asm) => asm.vmovups({ base: "r13", index: "r15", offset: 64 }, 11),
  ],
  ["vmovups ymm1, [r12]", "c4c17c100c24", (asm) => asm.vmovups(1, { base: "r12" })],
  ["vmovups ymm1, [rbx+0x200]", "c4e17c108b00020000", (asm) => asm.vmovups(1, { base: "rbx", offset: 512 })],
  ["vfmadd231ps ymm9, ymm15, ymm12", "c44205b8cc", (asm) => asm.vfmadd231ps(9, 15, 12)],
  ["vfmadd231ps ymm7, ymm8, [rdx+rbp]", "c4e23db83c2a", (asm) => asm.vfmadd231ps(7, 8, { base: "rdx", index: "rbp" })],
  ["vxorps ymm8, ymm8, ymm8", "c4413c57c0", (asm) => asm.vxorps(8, 8, 8)],
  ["vbroadcastss ymm3, xmm3", "c4e27d18db", (asm) => asm.vbroadcastss(3, 3)],
  ["vmovss [rsi-8], xmm3", "c4e17a115ef8", (asm) => asm.vmovss({ base: "rsi", offset: -8 }, 3)],
  [
    "vfmadd213ps ymm5, ymm4, [rax+0xc0]",
    "c4e25da8a8c0000000",
    (asm) => asm.vfmadd213ps(5, 4, { base: "rax", offset: 192 }),
  ],
  ["vfmadd213ps ymm5, ymm6, ymm4", "c4e24da8ec", (asm) => asm.vfmadd213ps(5, 6, 4)],
  ["vaddps xmm1, xmm1, xmm4", "c4e17058cc", (asm) => asm.vaddps(1, 1, 4, 128)],
  ["vsubps ymm4, ymm4, ymm3", "c4e15c5ce3", (asm) => asm.vsubps(4, 4, 3)],
  ["vmulps ymm4, ymm2, [rsi+rcx]", "c4e16c59240e", (asm) => asm.vmulps(4, 2, { base: "rsi", index: "rcx" })],
  ["vdivps ymm4, ymm2, ymm10", "c4c16c5ee2", (asm) => asm.vdivps(4, 2, 10)],
  ["vmaxps ymm4, ymm4, [rax]", "c4e15c5f20", (asm) => asm.vmaxps(4, 4, { base: "rax" })],
  ["vminps ymm4, ymm4, [rax+0x20]", "c4e15c5d6020", (asm) => asm.vminps(4, 4, { base: "rax", offset: 32 })],
  ["vandps ymm7, ymm7, ymm6", "c4e14454fe", (asm) => asm.vandps(7, 7, 6)],
  ["vorps ymm8, ymm8, ymm5", "c4613c56c5", (asm) => asm.vorps(8, 8, 5)],
  ["vcmpgeps ymm6, ymm4, [rax]", "c4e15cc2300d", (asm) => asm.vcmpgeps(6, 4, { base: "rax" })],
  ["vcmpunordps ymm5, ymm4, ymm4", "c4e15cc2ec03", (asm) => asm.vcmpunordps(5, 4, 4)],
  ["vroundps ymm7, ymm7, 8", "c4e37d08ff08", (asm) => asm.vroundps(7, 7, 8)],
  ["vpslld ymm7, ymm7, 23", "c4e14572f717", (asm) => asm.vpslld(7, 7, 23)],
  ["vextractf128 xmm4, ymm12, 1", "c4637d19e401", (asm) => asm.vextractf128(4, 12, 1)],
  ["vpermilps xmm4, xmm1, 0x4e", "c4e37904e14e", (asm) => asm.vpermilps(4, 1, 0x4e)],
  ["mov dword [rsi+rcx], 0xff800000", "c7040e000080ff", (asm) => asm.mov32({ base: "rsi", index: "rcx" }, 0xff800000)],
  ["mov dword [r8+r9], 0", "43c7040800000000", (asm) => asm.mov32({ base: "r8", index: "r9" }, 0)],
  ["prefetcht0 [rdx+r10*8]", "420f180cd2", (asm) => asm.prefetcht0({ base: "rdx", index: "r10", scale: 8 })],
  ["prefetcht0 [rbx]", "0f180b", (asm) => asm.prefetcht0({ base: "rbx" })],
  // AVX-512. An offset is written in 32 bits: as one byte it would be scaled.
  [
    "vmovups zmm31, [rdx+rbx*2]",
    "62617c48103c5a",
    (asm) => asm.vmovups(31, { base: "rdx", index: "rbx", scale: 2 }, 512),
  ],
  ["vmovups [r13+0x40], zmm20", "62c17c4811a540000000", (asm) => asm.vmovups({ base: "r13", offset: 64 }, 20, 512)],
  ["vmovups ymm24, [rdx]", "62617c281002", (asm) => asm.vmovups(24, { base: "rdx" })],
  ["vbroadcastss zmm26, [r8+r11]", "62027d48181418", (asm) => asm.vbroadcastss(26, { base: "r8", index: "r11" }, 512)],
  ["vfmadd231ps zmm23, zmm26, zmm25", "62822d40b8f9", (asm) => asm.vfmadd231ps(23, 26, 25, 512)],
  [
    "vfmadd231ps zmm9, zmm12, [r9+r10*2]{1to16}",
    "62121d58b80c51",
    (asm) => asm.vfmadd231ps(9, 12, { base: "r9", index: "r10", scale: 2, broadcast: true }, 512),
  ],
  [
    "vinsertf32x8 zmm24, zmm24, [rdx+rbx], 1",
    "62633d401a041a01",
    (asm) => asm.vinsertf32x8(24, 24, { base: "rdx", index: "rbx" }, 1),
  ],
  ["vpxord zmm17, zmm17, zmm17", "62a17540efc9", (asm) => asm.vpxord(17, 17, 17)],
  ["mov dword [rdi+0x24], edx", "895724", (asm) => asm.mov32({ base: "rdi", offset: 36 }, "rdx")],
  ["vzeroupper", "c5f877", (asm) => asm.vzeroupper()],
])("%s is %s", (_, bytes, write) => expect(bytesOf(write)).toBe(bytes));

test("a label gives the address of data", () => {
  const bytes = bytesOf((asm) => {
    const data = asm.label();
    asm.lea("rax", data);
    asm.ret();
    asm.align(16);
    asm.bind(data);
    asm.floats(1);
  });
  expect(bytes).toBe(`488d0509000000c3${"cc".repeat(8)}${"0000803f".repeat(8)}`);
});

test("a call reaches code that was assembled elsewhere", () => {
  const bytes = bytesOf((asm) => {
    const other = asm.label();
    asm.call(other);
    asm.ret();
    asm.align(8);
    asm.bind(other);
    asm.append(Uint8Array.of(0x90, 0xc3));
  });
  expect(bytes).toBe("e803000000" + "c3" + "cccc" + "90c3");
});

test("jumps go forward and back, and only to labels that were bound", () => {
  const bytes = bytesOf((asm) => {
    const end = asm.label();
    const loop = asm.here();
    asm.jl(end);
    asm.jmp(loop);
    asm.bind(end);
    asm.ret();
  });
  expect(bytes).toBe("0f8c05000000" + "e9f5ffffff" + "c3");
  expect(() => bytesOf((asm) => asm.jmp(asm.label()))).toThrow(/never bound/);
  expect(() => bytesOf((asm) => asm.lea("rax", { base: "rax", index: "rsp" }))).toThrow(/rsp/);
});

// A kernel's bytes may change only by an intended change of its instructions; then update the pinned hashes.
test.each<[string, () => Uint8Array, string]>([
  ["matmul in AVX-512", assembleMatmul512, "61b459c9fe45ff4fa0e4dd9d018cedd16919145e6bcb5332604678db326a9550"],
  [
    "runCommands in AVX-512",
    () => assembleRunCommands("avx512"),
    "07d0bec0198221876acc3812d9dfb25f24de74d80ff563e8094bf868f8645f7b",
  ],
  [
    "canRun for AVX-512",
    () => assembleCanRun("avx512"),
    "e9bd6ca408bb85549892ef44173751da7ba800963f6d50bd0f0ca59ad989fc58",
  ],
  ["matmul", assembleMatmul, "bc8c82fece06726d44a6fb994ab8ec29ab659e100a71f0d294dabc011a9598fa"],
  [
    "runCommands",
    () => assembleRunCommands("avx2"),
    "e58aa849682817c2e2688def21cd9094a02436fb31b77d3ea22957c1ae7de906",
  ],
  ["softmax", assembleSoftmax, "b1013e3661dc1cb10aa8491cb17e46ed9845b72f9cdcfc6dc2d0a008b286f567"],
  ["scoreGradients", assembleScoreGradients, "eed8f7812fc021ac6927cba9148c899c1d8dc24942a68f962497b5d6363b45df"],
  ["swiGlu", assembleSwiGlu, "36377c30d1eec046f64b0727e8e9eadf3853b9bd9b57004a7343da97c7566105"],
  ["swiGluBackward", assembleSwiGluBackward, "6607faca571557dbdc38f5d0cbadb403c615b4605d29a74c8799e7ccfe7fb5d8"],
  ["canRun", () => assembleCanRun("avx2"), "d9fa75697298f959294737d7738bb6af9abcf0718bbfda02c6b1d19ba6267d51"],
])("the machine code of %s keeps its bytes", (_, assemble, sha256) => {
  expect(createHash("sha256").update(assemble()).digest("hex")).toBe(sha256);
});
