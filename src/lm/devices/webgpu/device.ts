// Interface of the WebGPU device: a device plus facts about its adapter.
import type { Buffer, Device } from "../device.ts";
import type { Program } from "./program.ts";

/** What the runtime says about a GPU. */
export interface Adapter {
  readonly vendor: string;
  readonly architecture: string;
  /** Empty where the runtime hides it. */
  readonly device: string;
  readonly description: string;
  /** Whether this is a software adapter, which emulates a GPU on the CPU. */
  readonly software: boolean;
  readonly features: readonly string[];
  readonly limits: {
    /** Maximum bytes of one buffer, and of the part that a kernel sees. */
    readonly maxBufferSize: number;
    readonly maxStorageBufferBindingSize: number;
  };
}

export interface WebGpuOptions {
  /** Maximum bytes of GPU memory to use. @default no limit of ours: WebGPU does not say how much there is */
  readonly memory?: number;
}

/** A kernel's arguments by name. */
export type Buffers = Readonly<Record<string, Buffer>>;
export type Numbers = Readonly<Record<string, number>>;

export interface WebGpuDevice extends Device {
  readonly adapter: Adapter;
  /** Bytes in use now, the peak so far, and bytes reserved from the GPU. */
  readonly memory: { readonly used: number; readonly peak: number; readonly reserved: number };
  /** Waits until all queued work is done. */
  synchronize(): void;
  /** Runs a kernel that the device itself does not have, in this many workgroups. */
  runProgram(program: Program, groups: number, buffers: Buffers, numbers: Numbers): void;
}

/** The adapter in a few words. */
export function describeAdapter({ vendor, architecture, device, description, software }: Adapter): string {
  const name = description || device || [vendor, architecture].filter(Boolean).join(" ") || "unnamed GPU";
  return software ? `${name} (software)` : name;
}
