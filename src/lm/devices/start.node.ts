// Starts the requested device, or the best available one.
import { SqlEnvError } from "../../errors.ts";
import type { CpuDevice } from "./cpu/device.ts";
import { createCpu } from "./cpu/start.node.ts";
import { createCuda } from "./cuda/create.node.ts";
import type { CudaDevice, Precision } from "./cuda/device.ts";
import { createWebGpu, openWebGpu } from "./webgpu/create.node.ts";
import type { WebGpuDevice } from "./webgpu/device.ts";

/** Devices by name. */
export const DEVICE_CHOICES = ["auto", "cpu", "cuda", "webgpu"] as const;
export type DeviceChoice = (typeof DEVICE_CHOICES)[number];

export interface StartOptions {
  /** "auto": a usable CUDA GPU, else a GPU that WebGPU reaches, else the CPU. @default "auto" */
  readonly device?: DeviceChoice | undefined;
  /** Type of activations on a CUDA GPU. @default bf16 if the GPU supports it */
  readonly precision?: Precision | undefined;
  /** Maximum bytes of a GPU's memory to use. @default all of it */
  readonly maxGpuMemory?: number | undefined;
  /** Number of CPU threads. */
  readonly threads?: number | undefined;
  readonly simd?: "plain" | "relaxed" | undefined;
}

/** Starts a device. */
export function startDevice(options: StartOptions = {}): CpuDevice | CudaDevice | WebGpuDevice {
  const { device = "auto", precision, maxGpuMemory: memory, threads, simd } = options;
  const limit = memory === undefined ? {} : { memory };
  if (device === "webgpu") {
    if (precision === "bf16") {
      throw new SqlEnvError("no_bf16", { what: "WebGPU has no bf16", remedy: "omit --precision, or use fp32" });
    }
    return createWebGpu(limit);
  }
  if (device !== "cpu") {
    try {
      return createCuda({ ...(precision && { precision }), ...limit });
    } catch (error) {
      const isAbsent = error instanceof SqlEnvError && error.code === "no_cuda";
      if (device === "cuda" || !isAbsent) throw error;
    }
    const gpu = precision === "bf16" ? null : openWebGpu(limit);
    if (gpu) return gpu;
  }
  return createCpu({ ...(threads === undefined ? {} : { threads }), ...(simd === undefined ? {} : { simd }) });
}
