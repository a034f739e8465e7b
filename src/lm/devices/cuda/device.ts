// What a CUDA device is beyond being a device.
import type { Device } from "../device.ts";

/** What is known of a card. */
export interface Card {
  readonly name: string;
  /** 10·major + minor: 90 for Hopper. */
  readonly capability: number;
  readonly memory: number;
  readonly multiprocessors: number;
  /** Bytes of shared memory a block may ask for. */
  readonly sharedPerBlock: number;
  /** CUDA version the driver speaks: 13000 for 13.0. */
  readonly driverVersion: number;
}

/** How activations are stored. */
export type Precision = "bf16" | "fp32";

export interface CudaOptions {
  /** @default bf16 on cards that have it (compute capability 8.0 and above), else fp32 */
  readonly precision?: Precision;
  /** Which card. @default 0 */
  readonly ordinal?: number;
  /** Bytes to use at most: the card then counts as having no more. @default all it has */
  readonly memory?: number;
  /** Where compiled kernels are kept. @default sqlenv/cuda in the user's cache folder */
  readonly cache?: string;
}

export interface CudaDevice extends Device {
  readonly card: Card;
  readonly precision: Precision;
  /** Bytes in use now, the most so far, and what was asked of the driver. */
  readonly memory: { readonly used: number; readonly peak: number; readonly reserved: number };
  /** Gives memory that is free but kept back to the driver. */
  trim(): void;
  /** Waits until everything queued is done. */
  synchronize(): void;
  /** Milliseconds the card takes for what `work` queues. */
  time(work: () => void): number;
}
