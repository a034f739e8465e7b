// Machine code under Node: puts it into memory where it may run, once a process, and says where it lies.
import { createRequire } from "node:module";
import { Assembler } from "./assembler.ts";
import { bindNative, type Foreign, type NativeCode } from "./bind.ts";
import { assembleProduct, BASE_OFFSET, PARAMETERS_BYTES } from "./products.ts";

/** Machine code that is ready to be called, and the koffi to call it with. */
export interface Native {
  readonly koffi: Foreign;
  /** Where koffi lies, for threads that load it themselves. */
  readonly path: string;
  readonly code: NativeCode;
}

const [READ_WRITE, READ_EXECUTE, PRIVATE_ANONYMOUS] = [3, 5, 0x22];

let mapped: Native | null | undefined;

/** The code, or null where this machine cannot run it or nothing can call it. */
export function nativeCode(): Native | null {
  if (mapped === undefined) mapped = mapCode();
  return mapped;
}

/** An expression for a worker's text: from the memory to the kernels that call the code. */
export function bindingText({ path, code }: Native): string {
  return `(memory) => (${bindNative})(require(${JSON.stringify(path)}), memory, ${JSON.stringify(code)})`;
}

function mapCode(): Native | null {
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  try {
    const require = createRequire(import.meta.url);
    const path = require.resolve("koffi");
    const koffi = require(path) as Foreign;
    const [answer, product] = [assembleQuestion(), assembleProduct()];
    const at = 64 * Math.ceil(answer.length / 64);
    const address = mapBytes(koffi, Uint8Array.from([...answer, ...new Uint8Array(at - answer.length), ...product]));
    const canRun = koffi.decode(address, koffi.proto("int ()")) as unknown as () => number;
    if (canRun() !== 1) return null;
    const code = { product: Number(address) + at, baseOffset: BASE_OFFSET, parametersBytes: PARAMETERS_BYTES };
    return { koffi, path, code };
  } catch {
    return null; // no koffi, or a system that forbids memory to run: WebAssembly does
  }
}

/** Memory with these bytes that can be run and no longer written; it stays for as long as the process. */
function mapBytes(koffi: Foreign, bytes: Uint8Array): bigint {
  const system = koffi.load(null);
  const map = system.func(
    "void *mmap(void *address, size_t length, int protection, int flags, int file, int64 offset)",
  );
  const protect = system.func("int mprotect(void *address, size_t length, int protection)");
  const address = map(...([null, bytes.length, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0] as never[])) as bigint;
  if (BigInt.asIntN(64, address) === -1n) throw new Error("no memory for code");
  new Uint8Array(koffi.view(address, bytes.length)).set(bytes);
  if (protect(...([address, bytes.length, READ_EXECUTE] as never[])) !== 0) throw new Error("code may not run here");
  return address;
}

/** `int canRun()`: 1 where the processor has AVX2 and FMA and the system keeps the wide registers. */
export function assembleQuestion(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const no = asm.label();
  const has = (register: "rax" | "rbx" | "rcx", bits: number) => {
    asm.and(register, bits);
    asm.compare(register, bits);
    asm.jumpIf("notEqual", no);
  };
  asm.push("rbx");
  asm.set("rax", 0);
  asm.cpuid();
  asm.compare("rax", 7); // the highest leaf
  asm.jumpIf("less", no);
  asm.set("rax", 1);
  asm.cpuid();
  has("rcx", (1 << 12) | (1 << 27) | (1 << 28)); // FMA, XGETBV, AVX
  asm.set("rax", 7);
  asm.set("rcx", 0);
  asm.cpuid();
  has("rbx", 1 << 5); // AVX2
  asm.set("rcx", 0);
  asm.xgetbv();
  has("rax", 6); // xmm and ymm are kept
  asm.set("rax", 1);
  asm.pop("rbx");
  asm.ret();
  asm.place(no);
  asm.set("rax", 0);
  asm.pop("rbx");
  asm.ret();
  return asm.finish();
}
