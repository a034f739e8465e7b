// Interface of the CUDA device: a device plus facts about its GPU.
import type { Device } from "../device.ts";

/** Properties of a GPU. */
export interface Gpu {
  readonly name: string;
  /** 10·major + minor: 90 for Hopper. */
  readonly capability: number;
  readonly memory: number;
  readonly multiprocessors: number;
  /** Maximum bytes of shared memory per block. */
  readonly sharedPerBlock: number;
  /** CUDA version of the driver: 13000 for 13.0. */
  readonly driverVersion: number;
}

/** Type of activations. */
export type Precision = "bf16" | "fp32";

export interface CudaOptions {
  /** @default bf16 if the GPU has it (compute capability 8.0 and above), else fp32 */
  readonly precision?: Precision;
  /** Index of the GPU. @default 0 */
  readonly ordinal?: number;
  /** Maximum bytes to use; the device then acts as if the GPU had no more. @default all of it */
  readonly memory?: number;
  /** Folder for compiled kernels. @default sqlenv/cuda in the user's cache folder */
  readonly cache?: string;
}

export interface CudaDevice extends Device {
  readonly gpu: Gpu;
  readonly precision: Precision;
  /** Bytes in use now, the peak so far, and bytes reserved from the driver. */
  readonly memory: { readonly used: number; readonly peak: number; readonly reserved: number };
  /** Returns free memory that the pool holds to the driver. */
  trim(): void;
  /** Waits until all queued work is done. */
  synchronize(): void;
  /** Measures the GPU time of the work that `work` queues, in milliseconds. */
  time(work: () => void): number;
}
