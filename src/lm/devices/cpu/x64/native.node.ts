// Machine code under Node: puts it into memory where it may run, once for all devices of a thread, and says where it lies.
import { createRequire } from "node:module";
import { Assembler } from "./assembler.ts";
import { type Bound, bindNative, type Foreign, type NativeCode, type NativeFunction } from "./bind.ts";
import { assembleRun, ENTRY_BYTES, LIST_OFFSET, PARAMETERS_BYTES } from "./list.ts";
import { assembleProduct, BASE_OFFSET } from "./products.ts";
import { assembleSwiGlu, assembleSwiGluBackward } from "./swiglu.ts";

/** Machine code that is ready to be called, and the koffi to call it with. */
export interface Native {
  readonly koffi: Foreign;
  readonly code: NativeCode;
}

const FUNCTIONS: Record<NativeFunction, () => Uint8Array> = {
  product: assembleProduct,
  run: assembleRun,
  swiGlu: assembleSwiGlu,
  swiGluBackward: assembleSwiGluBackward,
};

const [READ_WRITE, READ_EXECUTE, PRIVATE_ANONYMOUS] = [3, 5, 0x22];

let mapped: Native | null | undefined;

/** The code, or null where this machine cannot run it or nothing can call it. */
export function nativeCode(): Native | null {
  if (mapped === undefined) mapped = mapCode();
  return mapped;
}

/**
 * The code bound to a device's memory, from the text that workers get: what rewrites functions, and so breaks the text,
 * breaks it here too, and all threads do without.
 */
export function bindFromText(native: Native, memory: WebAssembly.Memory): Bound {
  const evaluate = new Function("require", `return ${bindingText(native)}`);
  const bind = evaluate(createRequire(import.meta.url)) as (memory: WebAssembly.Memory) => Bound;
  return bind(memory);
}

/** An expression for a worker's text: from the memory to the kernels that call the code. */
export function bindingText({ code }: Native): string {
  const koffi = `require("node:module").createRequire(${JSON.stringify(import.meta.url)})("koffi")`; // each thread loads it
  return `(memory) => (${bindNative})(${koffi}, memory, ${JSON.stringify(code)})`;
}

function mapCode(): Native | null {
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  if ("Deno" in globalThis || process.versions.bun) return null; // koffi is made for Node
  try {
    const koffi = createRequire(import.meta.url)("koffi") as Foreign;
    const { bytes, starts } = sideBySide([
      assembleQuestion(),
      ...Object.values(FUNCTIONS).map((assemble) => assemble()),
    ]);
    const address = mapBytes(koffi, bytes);
    const canRun = koffi.decode(address, koffi.proto("int ()")) as unknown as () => number;
    if (canRun() !== 1) return null;
    const places = Object.keys(FUNCTIONS).map((name, i) => [name, Number(address) + starts[i + 1]!]);
    const functions = Object.fromEntries(places) as NativeCode["functions"];
    const code = {
      functions,
      baseOffset: BASE_OFFSET,
      listOffset: LIST_OFFSET,
      entryBytes: ENTRY_BYTES,
      parametersBytes: PARAMETERS_BYTES,
    };
    return { koffi, code };
  } catch {
    return null; // no koffi, or a system that forbids memory to run: WebAssembly does
  }
}

/** Pieces of code one after another, each at the beginning of a cache line. */
function sideBySide(parts: readonly Uint8Array[]): { readonly bytes: Uint8Array; readonly starts: readonly number[] } {
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
