// The assembler's bytes, pinned against what GNU as gives for the same instructions.
import { expect, test } from "vitest";
import { Assembler } from "./assembler.ts";

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
  ["mov rsi, r12", "4c89e6", (asm) => asm.move("rsi", "r12")],
  ["mov r12, [rdi+0x68]", "4c8b6768", (asm) => asm.move("r12", { base: "rdi", offset: 0x68 })],
  ["mov eax, [rdi+0xc]", "8b470c", (asm) => asm.moveWord("rax", { base: "rdi", offset: 12 })],
  ["mov r8d, [rdi+0x8]", "448b4708", (asm) => asm.moveWord("r8", { base: "rdi", offset: 8 })],
  ["mov rcx, 1", "48c7c101000000", (asm) => asm.set("rcx", 1)],
  ["mov [rdi+0x60], rcx", "48894f60", (asm) => asm.store({ base: "rdi", offset: 0x60 }, "rcx")],
  ["lea r9, [r8+r8*2]", "4f8d0c40", (asm) => asm.address("r9", { base: "r8", index: "r8", scale: 2 })],
  ["lea r13, [r13+r14*4]", "4f8d6cb500", (asm) => asm.address("r13", { base: "r13", index: "r14", scale: 4 })],
  ["add rsi, rax", "4801c6", (asm) => asm.add("rsi", "rax")],
  ["add rdx, 0x20", "4883c220", (asm) => asm.add("rdx", 32)],
  ["add rdx, 0x1000", "4881c200100000", (asm) => asm.add("rdx", 4096)],
  ["add rcx, [rdi+0x30]", "48034f30", (asm) => asm.add("rcx", { base: "rdi", offset: 0x30 })],
  ["sub rcx, 1", "4883e901", (asm) => asm.subtract("rcx", 1)],
  ["and rcx, 3", "4883e103", (asm) => asm.and("rcx", 3)],
  ["cmp rcx, 0", "4883f900", (asm) => asm.compare("rcx", 0)],
  ["imul rcx, r14", "490fafce", (asm) => asm.multiply("rcx", "r14")],
  ["shl rcx, 2", "48c1e102", (asm) => asm.shiftLeft("rcx", 2)],
  ["shr rcx, 2", "48c1e902", (asm) => asm.shiftRight("rcx", 2)],
  ["cpuid", "0fa2", (asm) => asm.cpuid()],
  ["xgetbv", "0f01d0", (asm) => asm.xgetbv()],
  ["vbroadcastss ymm15, [rsi]", "c4627d183e", (asm) => asm.broadcast(15, { base: "rsi" })],
  ["vbroadcastss ymm15, [rsi+r9]", "c4227d183c0e", (asm) => asm.broadcast(15, { base: "rsi", index: "r9" })],
  ["vmovups ymm14, [rdx+r10*2]", "c4217c103452", (asm) => asm.load(14, { base: "rdx", index: "r10", scale: 2 })],
  ["vmovups ymm0, [r13+0x20]", "c4c17c104520", (asm) => asm.load(0, { base: "r13", offset: 32 })],
  ["vmovups [r13+r15+0x40], ymm11", "c4017c115c3d40", (asm) => asm.save({ base: "r13", index: "r15", offset: 64 }, 11)],
  ["vmovups ymm1, [r12]", "c4c17c100c24", (asm) => asm.load(1, { base: "r12" })],
  ["vmovups ymm1, [rbx+0x200]", "c4e17c108b00020000", (asm) => asm.load(1, { base: "rbx", offset: 512 })],
  ["vfmadd231ps ymm9, ymm15, ymm12", "c44205b8cc", (asm) => asm.fma(9, 15, 12)],
  ["vfmadd231ps ymm7, ymm8, [rdx+rbp]", "c4e23db83c2a", (asm) => asm.fma(7, 8, { base: "rdx", index: "rbp" })],
  ["vxorps ymm8, ymm8, ymm8", "c4413c57c0", (asm) => asm.zero(8)],
  ["vbroadcastss ymm3, xmm3", "c4e27d18db", (asm) => asm.broadcast(3, 3)],
  ["vmovss [rsi-8], xmm3", "c4e17a115ef8", (asm) => asm.saveOne({ base: "rsi", offset: -8 }, 3)],
  [
    "vfmadd213ps ymm5, ymm4, [rax+0xc0]",
    "c4e25da8a8c0000000",
    (asm) => asm.fmaOnto(5, 4, { base: "rax", offset: 192 }),
  ],
  ["vfmadd213ps ymm5, ymm6, ymm4", "c4e24da8ec", (asm) => asm.fmaOnto(5, 6, 4)],
  ["vaddps xmm1, xmm1, xmm4", "c4e17058cc", (asm) => asm.lanewise("add", 1, 1, 4, 4)],
  ["vsubps ymm4, ymm4, ymm3", "c4e15c5ce3", (asm) => asm.lanewise("subtract", 4, 4, 3)],
  [
    "vmulps ymm4, ymm2, [rsi+rcx]",
    "c4e16c59240e",
    (asm) => asm.lanewise("multiply", 4, 2, { base: "rsi", index: "rcx" }),
  ],
  ["vdivps ymm4, ymm2, ymm10", "c4c16c5ee2", (asm) => asm.lanewise("divide", 4, 2, 10)],
  ["vmaxps ymm4, ymm4, [rax]", "c4e15c5f20", (asm) => asm.lanewise("max", 4, 4, { base: "rax" })],
  ["vminps ymm4, ymm4, [rax+0x20]", "c4e15c5d6020", (asm) => asm.lanewise("min", 4, 4, { base: "rax", offset: 32 })],
  ["vandps ymm7, ymm7, ymm6", "c4e14454fe", (asm) => asm.lanewise("and", 7, 7, 6)],
  ["vorps ymm8, ymm8, ymm5", "c4613c56c5", (asm) => asm.lanewise("or", 8, 8, 5)],
  ["vcmpgeps ymm6, ymm4, [rax]", "c4e15cc2300d", (asm) => asm.compareLanes("atLeast", 6, 4, { base: "rax" })],
  ["vcmpunordps ymm5, ymm4, ymm4", "c4e15cc2ec03", (asm) => asm.compareLanes("unordered", 5, 4, 4)],
  ["vroundps ymm7, ymm7, 8", "c4e37d08ff08", (asm) => asm.round(7, 7)],
  ["vpslld ymm7, ymm7, 23", "c4e14572f717", (asm) => asm.shiftLanesLeft(7, 7, 23)],
  ["vextractf128 xmm4, ymm12, 1", "c4637d19e401", (asm) => asm.upper(4, 12)],
  ["vpermilps xmm4, xmm1, 0x4e", "c4e37904e14e", (asm) => asm.permute(4, 1, 0x4e)],
  [
    "mov dword [rsi+rcx], 0xff800000",
    "c7040e000080ff",
    (asm) => asm.storeWord({ base: "rsi", index: "rcx" }, 0xff800000),
  ],
  ["mov dword [r8+r9], 0", "43c7040800000000", (asm) => asm.storeWord({ base: "r8", index: "r9" }, 0)],
  ["prefetcht0 [rdx+r10*8]", "420f180cd2", (asm) => asm.prefetch({ base: "rdx", index: "r10", scale: 8 })],
  ["prefetcht0 [rbx]", "0f180b", (asm) => asm.prefetch({ base: "rbx" })],
  ["vzeroupper", "c5f877", (asm) => asm.clearUpper()],
])("%s is %s", (_, bytes, write) => expect(bytesOf(write)).toBe(bytes));

test("data stands where its label says", () => {
  const bytes = bytesOf((asm) => {
    const data = asm.label();
    asm.addressOf("rax", data);
    asm.ret();
    asm.align(16);
    asm.place(data);
    asm.floats(1);
  });
  expect(bytes).toBe(`488d0509000000c3${"cc".repeat(8)}${"0000803f".repeat(8)}`);
});

test("a call goes to code that was made elsewhere", () => {
  const bytes = bytesOf((asm) => {
    const other = asm.label();
    asm.call(other);
    asm.ret();
    asm.align(8);
    asm.place(other);
    asm.append(Uint8Array.of(0x90, 0xc3));
  });
  expect(bytes).toBe("e803000000" + "c3" + "cccc" + "90c3");
});

test("jumps go forward and back, and only to labels that were placed", () => {
  const bytes = bytesOf((asm) => {
    const end = asm.label();
    const loop = asm.here();
    asm.jumpIf("less", end);
    asm.jump(loop);
    asm.place(end);
    asm.ret();
  });
  expect(bytes).toBe("0f8c05000000" + "e9f5ffffff" + "c3");
  expect(() => bytesOf((asm) => asm.jump(asm.label()))).toThrow(/never placed/);
  expect(() => bytesOf((asm) => asm.address("rax", { base: "rax", index: "rsp" }))).toThrow(/rsp/);
});
