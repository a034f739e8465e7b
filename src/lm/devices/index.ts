// Devices that run the arithmetic.
export { type CpuDevice, type CpuOptions, createCpuDevice } from "./cpu/device.ts";
export { type CpuWebOptions, createWebCpu } from "./cpu/start.web.ts";
export type {
  AdamStep,
  BlockAddress,
  Buffer,
  CapturedGraph,
  Decoding,
  Device,
  Dtype,
  HeadShape,
  KvShape,
  Scale,
  TokenLayout,
  Weight,
} from "./device.ts";
export type {
  AttentionArgs,
  AttentionBackwardArgs,
  HeadNorms,
  LinearBackwardArgs,
  LinearNormedArgs,
  LogProbsArgs,
  LogProbsBackwardArgs,
  RmsNormArgs,
  RmsNormBackwardArgs,
  RotateArgs,
  RotateAttendArgs,
  RotateBackwardArgs,
  SampleArgs,
} from "./device-args.ts";
