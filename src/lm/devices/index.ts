// Where arithmetic runs.
export { type CpuDevice, type CpuOptions, createCpuDevice } from "./cpu/device.ts";
export { type CpuWebOptions, createWebCpu } from "./cpu/start.web.ts";
export * from "./device.ts";
