// Opens a CUDA device, or throws an error that says what is missing.
import { SqlEnvError } from "../../../errors.ts";
import { Blas } from "./blas.node.ts";
import { Compiler } from "./compiler.node.ts";
import { Cuda } from "./cuda.node.ts";
import type { CudaDevice, CudaOptions } from "./device.ts";
import { Driver } from "./driver.node.ts";

/** Minimum compute capability: Turing. */
export const LEAST_CAPABILITY = 75;
const BF16_CAPABILITY = 80;

/** Opens a CUDA device; an error says what is missing. */
export function createCuda({ precision, ordinal = 0, memory, cache }: CudaOptions = {}): CudaDevice {
  const driver = new Driver(ordinal);
  const { name, capability } = driver.gpu;
  if (capability < LEAST_CAPABILITY) {
    throw new SqlEnvError("no_cuda", {
      what: `the GPU ${name} is too old: compute capability`,
      value: `${capability / 10}, at least ${LEAST_CAPABILITY / 10} is needed`,
      remedy: "use --device cpu",
    });
  }
  if (precision === "bf16" && capability < BF16_CAPABILITY) {
    throw new SqlEnvError("no_bf16", {
      what: `the GPU ${name} has no bf16`,
      value: `compute capability ${capability / 10}`,
      remedy: "use --precision fp32",
    });
  }
  const chosen = precision ?? (capability >= BF16_CAPABILITY ? "bf16" : "fp32");
  const compiler = new Compiler(driver.ffi, capability, cache);
  const speaks = Math.floor(driver.gpu.driverVersion / 1000);
  if (Number.parseInt(compiler.version, 10) > speaks) {
    throw new SqlEnvError("no_cuda", {
      what: `NVRTC ${compiler.version} (${compiler.path}) is newer than the NVIDIA driver, which speaks CUDA`,
      value: speaks,
      remedy: `update the driver, or set CUDA_HOME to a CUDA toolkit ${speaks}, or use --device cpu`,
    });
  }
  return new Cuda(driver, compiler, new Blas(driver), chosen, memory);
}
