// The CUDA driver: one GPU, one stream, memory and kernels by address. The status of every call is checked.
import { SqlEnvError } from "../../../errors.ts";
import type { Gpu } from "./device.ts";
import { CHAINED } from "./kernels/common.ts";
import type { KernelArg } from "./launch.ts";
import { type Ffi, type Library, loadFfi, loadLibrary } from "./libraries.node.ts";

const CUDA_ERROR_OUT_OF_MEMORY = 2;
/**
 * Sticky errors: every later call in the context fails, and only a new process helps. Shut down (4), device unavailable
 * (46), memory and link errors (214, 220), kernel faults and time-outs (700, 702, 709, 710, 714–719), and unknown
 * (999), for example after a GPU fell off the bus.
 */
const STICKY: ReadonlySet<number> = new Set([4, 46, 214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999]);
const MAX_ARGS = 48;
const SHARED_BY_DEFAULT = 48 * 1024;

const ATTRIBUTE = { multiprocessors: 16, major: 75, minor: 76, sharedPerBlockOptin: 97 } as const;
const FUNCTION_MAX_DYNAMIC_SHARED = 8;

/** C prototypes of the driver's functions. */
const PROTOTYPES = [
  "int cuInit(unsigned int flags)",
  "int cuDriverGetVersion(_Out_ int *version)",
  "int cuDeviceGetCount(_Out_ int *count)",
  "int cuDeviceGet(_Out_ int *device, int ordinal)",
  "int cuDeviceGetName(void *name, int length, int device)",
  "int cuDeviceGetAttribute(_Out_ int *value, int attribute, int device)",
  "int cuDeviceTotalMem_v2(_Out_ uint64_t *bytes, int device)",
  "int cuDevicePrimaryCtxRetain(_Out_ uint64_t *context, int device)",
  "int cuDevicePrimaryCtxRelease_v2(int device)",
  "int cuCtxSetCurrent(uint64_t context)",
  "int cuStreamCreate(_Out_ uint64_t *stream, unsigned int flags)",
  "int cuStreamDestroy_v2(uint64_t stream)",
  "int cuStreamSynchronize(uint64_t stream)",
  "int cuMemGetInfo_v2(_Out_ uint64_t *free, _Out_ uint64_t *total)",
  "int cuMemAlloc_v2(_Out_ uint64_t *address, size_t bytes)",
  "int cuMemFree_v2(uint64_t address)",
  "int cuMemHostAlloc(_Out_ uint64_t *address, size_t bytes, unsigned int flags)",
  "int cuMemFreeHost(uint64_t address)",
  "int cuMemcpyHtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, uint64_t stream)",
  "int cuMemcpyDtoHAsync_v2(uint64_t to, uint64_t from, size_t bytes, uint64_t stream)",
  "int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, uint64_t stream)",
  "int cuMemsetD32Async(uint64_t to, unsigned int value, size_t count, uint64_t stream)",
  "int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, uint64_t stream)",
  "int cuModuleLoadData(_Out_ uint64_t *module, const void *image)",
  "int cuModuleUnload(uint64_t module)",
  "int cuModuleGetFunction(_Out_ uint64_t *function, uint64_t module, const char *name)",
  "int cuFuncSetAttribute(uint64_t function, int attribute, int value)",
  "int cuLaunchKernel(uint64_t function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared, uint64_t stream, uint64_t params, uint64_t extra)",
  "int cuLaunchKernelEx(const void *config, uint64_t function, uint64_t params, uint64_t extra)",
  "int cuEventCreate(_Out_ uint64_t *event, unsigned int flags)",
  "int cuEventDestroy_v2(uint64_t event)",
  "int cuEventRecord(uint64_t event, uint64_t stream)",
  "int cuEventSynchronize(uint64_t event)",
  "int cuEventElapsedTime(_Out_ float *milliseconds, uint64_t start, uint64_t end)",
  "int cuStreamBeginCapture_v2(uint64_t stream, int mode)",
  "int cuStreamEndCapture(uint64_t stream, _Out_ uint64_t *graph)",
  "int cuGraphInstantiateWithFlags(_Out_ uint64_t *exec, uint64_t graph, uint64_t flags)",
  "int cuGraphLaunch(uint64_t exec, uint64_t stream)",
  "int cuGraphExecDestroy(uint64_t exec)",
  "int cuGraphDestroy(uint64_t graph)",
  "int cuGetErrorName(int error, _Out_ const char **name)",
  "int cuGetErrorString(int error, _Out_ const char **text)",
] as const;

type Call = (...args: unknown[]) => unknown;

interface KernelFunction {
  readonly handle: bigint;
  /** Maximum bytes of shared memory it may be launched with. */
  shared: number;
  /** Whether it may start while the previous kernel is running (programmatic dependent launch). */
  readonly isChained: boolean;
}

const CHAIN_CAPABILITY = 90; // minimum capability for programmatic dependent launch
const CHAIN_ATTRIBUTE = 6; // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION

/** The driver for one GPU: a context, a stream, and calls on them. */
export class Driver {
  readonly ffi: Ffi;
  readonly gpu: Gpu;
  readonly path: string;
  readonly stream: bigint;
  readonly #calls: { get(name: string): Call };
  readonly #device: number;
  #lost = false;
  readonly #functions = new Map<string, KernelFunction>();
  readonly #modules: bigint[] = [];
  /** Arguments of the kernel being launched, eight bytes each; their addresses are in a table that never changes. */
  readonly #args: DataView;
  readonly #argsTable: bigint;
  readonly #table: BigUint64Array;
  /** A CUlaunchConfig and its only CUlaunchAttribute. */
  readonly #config: DataView;
  readonly #configBytes: Uint8Array;

  constructor(ordinal = 0) {
    const { ffi, library, gpu, device } = openGpu(ordinal);
    this.ffi = ffi;
    this.gpu = gpu;
    this.path = library.path;
    this.#device = device;
    this.#calls = callsOf(library);
    this.call("cuCtxSetCurrent", this.out("cuDevicePrimaryCtxRetain", device));
    this.stream = this.out("cuStreamCreate", 1) as bigint; // 1: does not synchronize with the default stream
    const slots = new ArrayBuffer(8 * MAX_ARGS);
    this.#args = new DataView(slots);
    const first = ffi.address(new Uint8Array(slots));
    this.#table = BigUint64Array.from({ length: MAX_ARGS }, (_, i) => first + BigInt(8 * i));
    this.#argsTable = ffi.address(this.#table);
    this.#configBytes = new Uint8Array(new ArrayBuffer(128));
    this.#config = new DataView(this.#configBytes.buffer);
    this.#config.setBigUint64(32, this.stream, true);
    this.#config.setBigUint64(40, ffi.address(this.#configBytes) + 56n, true);
    this.#config.setUint32(48, 1, true);
    this.#config.setUint32(56, CHAIN_ATTRIBUTE, true);
    this.#config.setUint32(64, 1, true);
  }

  /** Whether the GPU is lost, so that nothing can be computed, saved or freed any more. */
  get lost(): boolean {
    return this.#lost;
  }

  /** Calls the driver; throws on failure. */
  call(name: string, ...args: unknown[]): void {
    const code = this.#calls.get(name)(...args) as number;
    if (code !== 0) throw this.#failure(name, code);
  }

  /** Calls a function whose first argument is an output; returns that output. */
  out(name: string, ...args: unknown[]): number | bigint {
    const result: (number | bigint)[] = [0];
    this.call(name, result, ...args);
    const value = result[0]!;
    return typeof value === "bigint" || name === "cuDeviceGetAttribute" ? value : BigInt(value);
  }

  /** Allocates device memory; undefined if there is not enough. */
  tryAlloc(bytes: number): number | undefined {
    const result: (number | bigint)[] = [0];
    const code = this.#calls.get("cuMemAlloc_v2")(result, bytes) as number;
    if (code === CUDA_ERROR_OUT_OF_MEMORY) return undefined;
    if (code !== 0) throw this.#failure("cuMemAlloc", code);
    return Number(result[0]);
  }

  free(address: number): void {
    this.call("cuMemFree_v2", address);
  }

  /** Allocates pinned host memory, which the GPU reads and writes directly. */
  hostAlloc(bytes: number): { address: number; bytes: ArrayBuffer } {
    const address = this.out("cuMemHostAlloc", bytes, 0);
    return { address: Number(address), bytes: this.ffi.view(BigInt(address), bytes) };
  }

  memoryLeft(): number {
    const [free, total] = [[0], [0]] as (number | bigint)[][];
    this.call("cuMemGetInfo_v2", free, total);
    return Number(free![0]);
  }

  /** Loads a compiled module; its kernels can then be launched by name. */
  load(image: Uint8Array): void {
    this.#modules.push(this.out("cuModuleLoadData", image) as bigint);
  }

  /** Queues a kernel. */
  launch(
    kernel: string,
    [gx, gy, gz]: readonly [number, number, number],
    [bx, by, bz]: readonly [number, number, number],
    sharedBytes: number,
    args: readonly KernelArg[],
  ): void {
    const known = this.#functions.get(kernel) ?? this.#find(kernel);
    if (sharedBytes > known.shared) {
      this.call("cuFuncSetAttribute", known.handle, FUNCTION_MAX_DYNAMIC_SHARED, sharedBytes);
      known.shared = sharedBytes;
    }
    const view = this.#args;
    for (let i = 0; i < args.length; i++) {
      const arg = args[i]!;
      if ("ptr" in arg) view.setBigUint64(8 * i, BigInt(arg.ptr), true);
      else if ("i32" in arg) view.setInt32(8 * i, arg.i32, true);
      else if ("f32" in arg) view.setFloat32(8 * i, arg.f32, true);
      else view.setBigInt64(8 * i, BigInt(arg.i64), true);
    }
    const code = known.isChained
      ? this.#launchChained(known.handle, [gx, gy, gz, bx, by, bz, sharedBytes])
      : (this.#calls.get("cuLaunchKernel")(
          ...[known.handle, gx, gy, gz, bx, by, bz, sharedBytes, this.stream, this.#argsTable, 0],
        ) as number);
    if (code !== 0)
      throw this.#failure(
        `the launch of ${kernel} [${gx}, ${gy}, ${gz}] × [${bx}, ${by}, ${bz}], ${sharedBytes} bytes`,
        code,
      );
  }

  synchronize(): void {
    this.call("cuStreamSynchronize", this.stream);
  }

  /** Frees everything; for a lost GPU only the context, ignoring errors. */
  close(): void {
    if (this.#lost) {
      this.#calls.get("cuDevicePrimaryCtxRelease_v2")(this.#device);
      return;
    }
    for (const module of this.#modules) this.call("cuModuleUnload", module);
    this.call("cuStreamDestroy_v2", this.stream);
    this.call("cuDevicePrimaryCtxRelease_v2", this.#device);
  }

  #launchChained(handle: bigint, sizes: readonly number[]): number {
    for (let i = 0; i < sizes.length; i++) this.#config.setUint32(4 * i, sizes[i]!, true);
    return this.#calls.get("cuLaunchKernelEx")(this.#configBytes, handle, this.#argsTable, 0) as number;
  }

  #find(kernel: string): KernelFunction {
    for (const module of this.#modules) {
      const result: (number | bigint)[] = [0];
      if (this.#calls.get("cuModuleGetFunction")(result, module, kernel) !== 0) continue;
      const isChained = this.gpu.capability >= CHAIN_CAPABILITY && CHAINED.test(kernel);
      const found = { handle: BigInt(result[0]!), shared: SHARED_BY_DEFAULT, isChained };
      this.#functions.set(kernel, found);
      return found;
    }
    throw new SqlEnvError("cuda", { what: "no such kernel", value: kernel });
  }

  #failure(what: string, code: number): SqlEnvError {
    const text = (name: string) => {
      const result: (string | null)[] = [null];
      this.#calls.get(name)(code, result);
      return result[0] ?? "";
    };
    const value = `${text("cuGetErrorName")} (${code}): ${text("cuGetErrorString")}`;
    const again = "if it happens again, see nvidia-smi and the system's log, or try --device cpu";
    this.#lost ||= isSticky(code);
    if (this.#lost)
      return new SqlEnvError("device_lost", {
        what: `the GPU was lost: ${what} failed`,
        value,
        remedy: `resume from the last checkpoint in a new process; ${again}`,
      });
    const remedy = `the run's last checkpoint is intact: resume from it; ${again}`;
    return new SqlEnvError("cuda", { what: `CUDA: ${what} failed`, value, remedy });
  }
}

/** Whether this driver error makes the context unusable. */
export function isSticky(code: number): boolean {
  return STICKY.has(code);
}

/** Reads the properties of a GPU without creating a context. */
export function openGpu(ordinal = 0): { ffi: Ffi; library: Library; gpu: Gpu; device: number } {
  const ffi = loadFfi();
  const library = loadLibrary(ffi, "driver");
  const calls = callsOf(library);
  const check = (name: string, ...args: unknown[]) => {
    const code = calls.get(name)(...args) as number;
    if (code === 0) return;
    const what = name === "cuInit" ? "the CUDA driver does not start" : `CUDA: ${name} failed`;
    throw new SqlEnvError("no_cuda", {
      what,
      value: `error ${code}`,
      remedy: "see that nvidia-smi works, or use --device cpu",
    });
  };
  const int = (name: string, ...args: unknown[]): number => {
    const result = [0];
    check(name, result, ...args);
    return Number(result[0]);
  };
  check("cuInit", 0);
  const count = int("cuDeviceGetCount");
  if (ordinal >= count) {
    throw new SqlEnvError("no_cuda", {
      what: "no such CUDA GPU",
      value: `${ordinal} of ${count}`,
      remedy: "use --device cpu",
    });
  }
  const device = int("cuDeviceGet", ordinal);
  const name = new Uint8Array(256);
  check("cuDeviceGetName", name, name.length, device);
  const attribute = (which: number) => int("cuDeviceGetAttribute", which, device);
  const gpu: Gpu = {
    name: new TextDecoder().decode(name.subarray(0, name.indexOf(0))),
    capability: 10 * attribute(ATTRIBUTE.major) + attribute(ATTRIBUTE.minor),
    memory: int("cuDeviceTotalMem_v2", device),
    multiprocessors: attribute(ATTRIBUTE.multiprocessors),
    sharedPerBlock: attribute(ATTRIBUTE.sharedPerBlockOptin),
    driverVersion: int("cuDriverGetVersion"),
  };
  return { ffi, library, gpu, device };
}

/** Looks up functions by name when first called: an old driver lacks the newest ones. */
function callsOf(library: Library): { get(name: string): Call } {
  const prototypes = new Map(PROTOTYPES.map((prototype) => [/(\w+)\(/.exec(prototype)![1]!, prototype]));
  const calls = new Map<string, Call>();
  return {
    get(name) {
      let call = calls.get(name);
      if (!call) {
        try {
          call = library.func(prototypes.get(name)!);
        } catch (cause) {
          const remedy = "update the NVIDIA driver (CUDA 11.8 or newer), or use --device cpu";
          throw new SqlEnvError("no_cuda", {
            what: "the NVIDIA driver is too old: it lacks",
            value: name,
            remedy,
            cause,
          });
        }
        calls.set(name, call);
      }
      return call;
    },
  };
}
