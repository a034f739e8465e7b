// Maps machine code into executable memory under Node, once for all devices of a thread.
import { createRequire } from "node:module";
import { Assembler } from "./assembler.ts";
import { type Bound, bindNative, type Foreign, type NativeCode, type NativeFunction } from "./bind.ts";
import { assembleRunCommands, ENTRY_BYTES, LIST_OFFSET, PARAMETERS_BYTES } from "./command-list.ts";
import { assembleMatmul, BASE_OFFSET } from "./matmul.ts";
import { assembleSwiGlu, assembleSwiGluBackward } from "./swiglu.ts";

/** Mapped machine code, and the koffi instance that calls it. */
export interface Native {
  readonly koffi: Foreign;
  readonly code: NativeCode;
}

const FUNCTIONS: Record<NativeFunction, () => Uint8Array> = {
  matmul: assembleMatmul,
  runCommands: assembleRunCommands,
  swiGlu: assembleSwiGlu,
  swiGluBackward: assembleSwiGluBackward,
};

const [READ_WRITE, READ_EXECUTE, PRIVATE_ANONYMOUS] = [3, 5, 0x22];

let mapped: Native | null | undefined;

/** The mapped code; null if this machine cannot run it or koffi is missing. */
export function nativeCode(): Native | null {
  if (mapped === undefined) mapped = mapCode();
  return mapped;
}

/**
 * Binds the code to a device's memory through the source text that workers get. A tool that rewrites functions and so
 * breaks that text then breaks it here too, and all threads fall back to WebAssembly.
 */
export function bindFromText(native: Native, memory: WebAssembly.Memory): Bound {
  const evaluate = new Function("require", `return ${bindingText(native)}`);
  const bind = evaluate(createRequire(import.meta.url)) as (memory: WebAssembly.Memory) => Bound;
  return bind(memory);
}

/** A JavaScript expression for workers: a function from their memory to the bound kernels. */
export function bindingText({ code }: Native): string {
  // Every thread loads koffi itself.
  const koffi = `require("node:module").createRequire(${JSON.stringify(import.meta.url)})("koffi")`;
  return `(memory) => (${bindNative})(${koffi}, memory, ${JSON.stringify(code)})`;
}

function mapCode(): Native | null {
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  if ("Deno" in globalThis || process.versions.bun) return null; // koffi supports Node only
  try {
    const koffi = createRequire(import.meta.url)("koffi") as Foreign;
    const { bytes, starts } = concatenate([
      assembleCanRun(),
      ...Object.values(FUNCTIONS).map((assemble) => assemble()),
    ]);
    const address = mapBytes(koffi, bytes);
    const canRun = koffi.decode(address, koffi.proto("int ()")) as unknown as () => number;
    if (canRun() !== 1) return null;
    const addresses = Object.keys(FUNCTIONS).map((name, i) => [name, Number(address) + starts[i + 1]!]);
    const functions = Object.fromEntries(addresses) as NativeCode["functions"];
    const code = {
      functions,
      baseOffset: BASE_OFFSET,
      listOffset: LIST_OFFSET,
      entryBytes: ENTRY_BYTES,
      parametersBytes: PARAMETERS_BYTES,
    };
    return { koffi, code };
  } catch {
    return null; // koffi is missing or the system forbids executable memory: fall back to WebAssembly
  }
}

/** Concatenates routines, each aligned to a cache line. */
function concatenate(parts: readonly Uint8Array[]): { readonly bytes: Uint8Array; readonly starts: readonly number[] } {
  const starts: number[] = [];
  let end = 0;
  for (const { length } of parts) {
    starts.push(end);
    end = 64 * Math.ceil((end + length) / 64);
  }
  const bytes = new Uint8Array(end);
  parts.forEach((part, i) => {
    bytes.set(part, starts[i]);
  });
  return { bytes, starts };
}

/** Maps bytes into executable, read-only memory that lives as long as the process. */
function mapBytes(koffi: Foreign, bytes: Uint8Array): bigint {
  const system = koffi.load(null);
  const map = system.func(
    "void *mmap(void *address, size_t length, int protection, int flags, int file, int64 offset)",
  );
  const protect = system.func("int mprotect(void *address, size_t length, int protection)");
  const address = map(...([null, bytes.length, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0] as never[])) as bigint;
  if (BigInt.asIntN(64, address) === -1n) throw new Error("no memory for code");
  new Uint8Array(koffi.view(address, bytes.length)).set(bytes);
  if (protect(...([address, bytes.length, READ_EXECUTE] as never[])) !== 0)
    throw new Error("memory cannot be made executable");
  return address;
}

/** Assembles `int canRun()`: 1 if the processor has AVX2 and FMA and the system saves the ymm registers. */
export function assembleCanRun(): Uint8Array<ArrayBuffer> {
  const asm = new Assembler();
  const no = asm.label();
  const has = (register: "rax" | "rbx" | "rcx", bits: number) => {
    asm.and(register, bits);
    asm.cmp(register, bits);
    asm.jne(no);
  };
  asm.push("rbx");
  asm.mov("rax", 0);
  asm.cpuid();
  asm.cmp("rax", 7); // the highest leaf
  asm.jl(no);
  asm.mov("rax", 1);
  asm.cpuid();
  has("rcx", (1 << 12) | (1 << 27) | (1 << 28)); // FMA, XGETBV, AVX
  asm.mov("rax", 7);
  asm.mov("rcx", 0);
  asm.cpuid();
  has("rbx", 1 << 5); // AVX2
  asm.mov("rcx", 0);
  asm.xgetbv();
  has("rax", 6); // xmm and ymm state enabled
  asm.mov("rax", 1);
  asm.pop("rbx");
  asm.ret();
  asm.bind(no);
  asm.mov("rax", 0);
  asm.pop("rbx");
  asm.ret();
  return asm.finish();
}
