// Matmul through cuBLAS: bf16 or float inputs, float sums, bf16 or float outputs.
import { SqlEnvError } from "../../../errors.ts";
import type { Dtype } from "../device.ts";
import type { Driver } from "./driver.node.ts";
import { loadLibrary } from "./libraries.node.ts";

const PROTOTYPES = [
  "int cublasCreate_v2(_Out_ uint64_t *handle)",
  "int cublasDestroy_v2(uint64_t handle)",
  "int cublasSetStream_v2(uint64_t handle, uint64_t stream)",
  "int cublasSetWorkspace_v2(uint64_t handle, uint64_t workspace, size_t bytes)",
  "int cublasGetVersion_v2(uint64_t handle, _Out_ int *version)",
  "int cublasGemmEx(uint64_t handle, int transA, int transB, int m, int n, int k, const void *alpha, uint64_t a, int typeA, int lda, uint64_t b, int typeB, int ldb, const void *beta, uint64_t c, int typeC, int ldc, int compute, int algorithm)",
] as const;

// Bytes that cuBLAS recommends on Hopper; fixed, so that the same call always uses the same algorithm.
const WORKSPACE = 32 * 2 ** 20;
const TYPES = { f32: 0, bf16: 14 } as const; // CUDA_R_32F, CUDA_R_16BF
const COMPUTE_32F = 68;
const DEFAULT_ALGORITHM = -1;
const ONE = Float32Array.of(1);
const ZERO = Float32Array.of(0);

/** A row-major matrix: its address, and the number of elements between rows. */
export interface Matrix {
  readonly address: number;
  readonly dtype: Dtype;
  readonly stride: number;
  /** Whether to read it transposed. */
  readonly transposed?: boolean;
}

export class Blas {
  readonly version: number;
  readonly path: string;
  readonly #handle: bigint;
  readonly #workspace: number;
  readonly #driver: Driver;
  readonly #gemm: (...args: unknown[]) => unknown;
  readonly #destroy: (...args: unknown[]) => unknown;

  constructor(driver: Driver) {
    this.#driver = driver;
    const library = loadLibrary(driver.ffi, "cublas");
    const calls = new Map(PROTOTYPES.map((prototype) => [/(\w+)\(/.exec(prototype)![1]!, library.func(prototype)]));
    const check = (name: string, ...args: unknown[]) => this.#check(name, calls.get(name)!(...args) as number);
    const handle: (number | bigint)[] = [0];
    check("cublasCreate_v2", handle);
    this.#handle = BigInt(handle[0]!);
    this.#workspace = driver.tryAlloc(WORKSPACE) ?? 0;
    check("cublasSetStream_v2", this.#handle, driver.stream);
    check("cublasSetWorkspace_v2", this.#handle, this.#workspace, WORKSPACE);
    const version = [0];
    check("cublasGetVersion_v2", this.#handle, version);
    this.version = version[0]!;
    this.path = library.path;
    this.#gemm = calls.get("cublasGemmEx")!;
    this.#destroy = calls.get("cublasDestroy_v2")!;
  }

  /** Computes out[m, n] = a[m, k] · b[k, n], or += with `add`. */
  gemm(m: number, n: number, k: number, a: Matrix, b: Matrix, out: Matrix, add = false): void {
    // cuBLAS is column-major: it computes outᵀ = bᵀ · aᵀ and reads a row-major matrix as its transpose.
    const code = this.#gemm(
      this.#handle,
      b.transposed ? 1 : 0,
      a.transposed ? 1 : 0,
      n,
      m,
      k,
      ONE,
      b.address,
      TYPES[b.dtype as keyof typeof TYPES],
      b.stride,
      a.address,
      TYPES[a.dtype as keyof typeof TYPES],
      a.stride,
      add ? ONE : ZERO,
      out.address,
      TYPES[out.dtype as keyof typeof TYPES],
      out.stride,
      COMPUTE_32F,
      DEFAULT_ALGORITHM,
    ) as number;
    if (code !== 0)
      this.#check(`cublasGemmEx [${m}, ${k}] · [${k}, ${n}] (${a.dtype}, ${b.dtype}, ${out.dtype})`, code);
  }

  close(): void {
    this.#destroy(this.#handle);
    this.#driver.free(this.#workspace);
  }

  #check(what: string, code: number): void {
    if (code === 0) return;
    this.#driver.synchronize(); // throws if the GPU is lost, which cuBLAS does not report
    throw new SqlEnvError("cuda", { what: `cuBLAS: ${what} failed`, value: `status ${code}` });
  }
}
