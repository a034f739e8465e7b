// Maps machine code into executable memory under Node, once for all devices of a thread.
import { createRequire } from "node:module";
import { type Bound, bindNative, type Foreign, type Native, type NativeCode, type NativeFunction } from "./bind.ts";
import { assembleCanRun } from "./can-run.ts";
import { assembleRunCommands, ENTRY_BYTES, LIST_OFFSET, PARAMETERS_BYTES } from "./command-list.ts";
import { fastestCode } from "./fastest.ts";
import { INSTRUCTION_SETS, type InstructionSet } from "./instruction-set.ts";
import { BASE_OFFSET } from "./matmul.ts";
import { assembleMatmulFor } from "./matmul-for.ts";
import { assembleSwiGlu, assembleSwiGluBackward } from "./swiglu.ts";

const FUNCTIONS: Record<NativeFunction, (set: InstructionSet) => Uint8Array> = {
  matmul: assembleMatmulFor,
  runCommands: assembleRunCommands,
  swiGlu: assembleSwiGlu,
  swiGluBackward: assembleSwiGluBackward,
};

const [READ_WRITE, READ_EXECUTE, PRIVATE_ANONYMOUS] = [3, 5, 0x22];
const HUGE_PAGES = 14; // MADV_HUGEPAGE
const MAX_BYTES = 2 ** 32; // V8 reserves this range for a WebAssembly memory

const mapped = new Map<InstructionSet, Native | null>();
let fastest: InstructionSet | null | undefined;

/** The mapped code for an instruction set; null if this machine cannot run it or koffi is missing. */
export function nativeCode(set: InstructionSet | null = fastestSet()): Native | null {
  if (set === null) return null;
  if (!mapped.has(set)) mapped.set(set, mapCode(set));
  return mapped.get(set)!;
}

/**
 * The instruction set whose matmul is fastest here, measured once in about two milliseconds: some processors execute
 * 512 bits in two halves or at a lower frequency. Null if there is none. Results have the same bits with any of them.
 */
function fastestSet(): InstructionSet | null {
  if (fastest !== undefined) return fastest;
  const codes = INSTRUCTION_SETS.flatMap((set) => nativeCode(set) ?? []);
  fastest = codes.length > 1 ? fastestCode(codes) : (codes[0]?.code.instructionSet ?? null);
  return fastest;
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

/**
 * Asks for pages of 2 MB in a device's memory, which some systems give only on request. Decoding reads and writes keys
 * and values in many places far apart; with pages of 4 kB each place needs an address translation of its own.
 */
export function adviseHugePages({ koffi }: Native, memory: WebAssembly.Memory): void {
  const advise = koffi.load(null).func("int madvise(void *address, size_t length, int advice)");
  const start = koffi.address(new Uint8Array(memory.buffer));
  advise(...([start, MAX_BYTES, HUGE_PAGES] as never[])); // the whole range is reserved, so it covers what is added later
}

/** A JavaScript expression for workers: a function from their memory to the bound kernels. */
export function bindingText({ code }: Native): string {
  // Every thread loads koffi itself.
  const koffi = `require("node:module").createRequire(${JSON.stringify(import.meta.url)})("koffi")`;
  return `(memory) => (${bindNative})(${koffi}, memory, ${JSON.stringify(code)})`;
}

function mapCode(set: InstructionSet): Native | null {
  if (process.platform !== "linux" || process.arch !== "x64") return null;
  if ("Deno" in globalThis || process.versions.bun) return null; // koffi supports Node only
  try {
    const koffi = createRequire(import.meta.url)("koffi") as Foreign;
    const { bytes, starts } = concatenate([
      assembleCanRun(set),
      ...Object.values(FUNCTIONS).map((assemble) => assemble(set)),
    ]);
    const address = mapBytes(koffi, bytes);
    const canRun = koffi.decode(address, koffi.proto("int ()")) as unknown as () => number;
    if (canRun() !== 1) return null;
    const addresses = Object.keys(FUNCTIONS).map((name, i) => [name, Number(address) + starts[i + 1]!]);
    const functions = Object.fromEntries(addresses) as NativeCode["functions"];
    const code = {
      instructionSet: set,
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
