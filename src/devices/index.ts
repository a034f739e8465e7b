// Where arithmetic runs.
export { type CpuDevice, type CpuOptions, createCpuDevice } from "./cpu/cpu.ts";
export * from "./device.ts";
