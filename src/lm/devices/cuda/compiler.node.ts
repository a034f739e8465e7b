// Compiles CUDA C for this machine's GPU with NVRTC; caches results on disk by a hash of compiler, target and source.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { SqlEnvError } from "../../../errors.ts";
import type { KernelSource } from "./launch.ts";
import { type Ffi, type Library, loadLibrary } from "./libraries.node.ts";

const PROTOTYPES = [
  "int nvrtcVersion(_Out_ int *major, _Out_ int *minor)",
  "int nvrtcGetNumSupportedArchs(_Out_ int *count)",
  "int nvrtcGetSupportedArchs(void *archs)",
  "int nvrtcCreateProgram(_Out_ uint64_t *program, const char *source, const char *name, int headers, void *contents, void *names)",
  "int nvrtcCompileProgram(uint64_t program, int count, const char **options)",
  "int nvrtcGetCUBINSize(uint64_t program, _Out_ size_t *size)",
  "int nvrtcGetCUBIN(uint64_t program, void *image)",
  "int nvrtcGetPTXSize(uint64_t program, _Out_ size_t *size)",
  "int nvrtcGetPTX(uint64_t program, void *image)",
  "int nvrtcGetProgramLogSize(uint64_t program, _Out_ size_t *size)",
  "int nvrtcGetProgramLog(uint64_t program, void *log)",
  "int nvrtcDestroyProgram(_Inout_ uint64_t *program)",
] as const;

export class Compiler {
  readonly version: string;
  readonly path: string;
  readonly #call: (name: string, ...args: unknown[]) => number;
  readonly #target: { readonly flag: string; readonly isBinary: boolean };
  readonly #folder: string;

  /** `capability` is, for example, 90 for Hopper. */
  constructor(ffi: Ffi, capability: number, folder = defaultFolder()) {
    const library: Library = loadLibrary(ffi, "nvrtc");
    const calls = new Map(PROTOTYPES.map((prototype) => [/(\w+)\(/.exec(prototype)![1]!, library.func(prototype)]));
    this.path = library.path;
    this.#call = (name, ...args) => calls.get(name)!(...args) as number;
    this.#folder = folder;
    const [major, minor] = [[0], [0]];
    this.#call("nvrtcVersion", major, minor);
    this.version = `${major[0]}.${minor[0]}`;
    this.#target = this.#targetFor(capability);
  }

  /** Compiles a source, or reads it from the cache. */
  compile(source: KernelSource): Uint8Array {
    const key = createHash("sha256")
      .update(`${this.version} ${this.#target.flag}\n${source.code}`)
      .digest("hex")
      .slice(0, 32);
    const file = join(this.#folder, `${source.name}-${key}.bin`);
    try {
      return readFileSync(file);
    } catch {
      const image = this.#compile(source);
      saveToCache(file, this.#folder, image);
      return image;
    }
  }

  #compile({ name, code }: KernelSource): Uint8Array {
    const handle: (number | bigint)[] = [0];
    this.#check("nvrtcCreateProgram", this.#call("nvrtcCreateProgram", handle, code, `${name}.cu`, 0, null, null));
    const program = handle[0]!;
    try {
      const options = [`--gpu-architecture=${this.#target.flag}`, "--std=c++17", "-default-device"];
      const failed = this.#call("nvrtcCompileProgram", program, options.length, options) !== 0;
      if (failed) {
        throw new SqlEnvError("cuda_compile", {
          what: `the CUDA kernels "${name}" do not compile for ${this.#target.flag} with NVRTC ${this.version}`,
          value: this.#log(program),
          remedy: "report this with the log, and use --device cpu meanwhile",
        });
      }
      const kind = this.#target.isBinary ? "CUBIN" : "PTX";
      const size: (number | bigint)[] = [0];
      this.#check(`nvrtcGet${kind}Size`, this.#call(`nvrtcGet${kind}Size`, program, size));
      const image = new Uint8Array(Number(size[0]));
      this.#check(`nvrtcGet${kind}`, this.#call(`nvrtcGet${kind}`, program, image));
      return image;
    } finally {
      this.#call("nvrtcDestroyProgram", handle);
    }
  }

  #log(program: number | bigint): string {
    const size: (number | bigint)[] = [0];
    this.#call("nvrtcGetProgramLogSize", program, size);
    const log = new Uint8Array(Number(size[0]));
    this.#call("nvrtcGetProgramLog", program, log);
    return new TextDecoder().decode(log).replaceAll("\0", "").trim();
  }

  /** Chooses SASS for the GPU if this NVRTC supports it, else PTX, which the driver compiles. */
  #targetFor(capability: number): { flag: string; isBinary: boolean } {
    const count = [0];
    this.#check("nvrtcGetNumSupportedArchs", this.#call("nvrtcGetNumSupportedArchs", count));
    const archs = new Int32Array(count[0]!);
    this.#check("nvrtcGetSupportedArchs", this.#call("nvrtcGetSupportedArchs", archs));
    if (archs.includes(capability)) return { flag: `sm_${capability}${capability === 90 ? "a" : ""}`, isBinary: true };
    const nearest = archs.filter((arch) => arch < capability).at(-1);
    if (nearest !== undefined) return { flag: `compute_${nearest}`, isBinary: false };
    throw new SqlEnvError("no_cuda", {
      what: `NVRTC ${this.version} cannot compile for this GPU`,
      value: `compute capability ${capability / 10}; it knows ${[...archs].join(", ")}`,
      remedy: "install an older CUDA toolkit, or use --device cpu",
    });
  }

  #check(name: string, code: number): void {
    if (code !== 0) throw new SqlEnvError("cuda_compile", { what: `NVRTC: ${name} failed`, value: `error ${code}` });
  }
}

function defaultFolder(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "sqlenv", "cuda");
}

/** Writes to the cache; a failure is not an error. */
function saveToCache(file: string, folder: string, image: Uint8Array): void {
  try {
    mkdirSync(folder, { recursive: true });
    const aside = `${file}.${process.pid}`;
    writeFileSync(aside, image);
    renameSync(aside, file);
  } catch {
    // It will be compiled again next time.
  }
}
