// `sqlenv bench webgpu`: speed of the WebGPU device beside the CPU's and, where there is one, an NVIDIA GPU's.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { SqlEnvError } from "../../../errors.ts";
import { createCpu } from "../../../lm/devices/cpu/start.node.ts";
import { createCuda } from "../../../lm/devices/cuda/create.node.ts";
import type { Device } from "../../../lm/devices/index.ts";
import { createWebGpu } from "../../../lm/devices/webgpu/create.node.ts";
import { type Adapter, describeAdapter } from "../../../lm/devices/webgpu/device.ts";
import { createModel, parametersChanged } from "../../../lm/model/parameters.ts";
import { randomize } from "../../bench/cuda.ts";
import { measureRoofline, type RooflineRow } from "../../bench/cuda-roofline.ts";
import { measurementNow } from "../../bench/measurement.node.ts";
import {
  type DeviceRates,
  kernelTime,
  measureCopy,
  measureMatmul,
  measureModel,
  measureRate,
  SOFTWARE_SPEC,
  WEBGPU_MODELS,
  WEBGPU_SPEC,
  type WebGpuSpec,
} from "../../bench/webgpu.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { countFromOne, drawTable, formatNumber, type Output, output } from "../terminal/output.ts";

interface Options {
  readonly json?: boolean;
  readonly quick?: boolean;
  readonly training?: boolean;
  readonly kernels?: boolean;
  readonly size?: number;
}

/** The adapter's measured limits. */
interface Limits {
  readonly adapter: Adapter;
  /** Multiply-adds in registers, and copies. */
  readonly gflops: number;
  readonly gigabytes_per_s: number;
}

interface Measured extends DeviceRates {
  /** Seconds of the default training, with its evaluations and reports, and its success on unseen databases. */
  readonly default_training: { readonly seconds: number; readonly success_rate: number } | null;
}

/** A device to measure: how it is made here, and chosen in a training. */
interface Candidate {
  readonly device: string;
  readonly make: () => Device;
  readonly flags: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const CANDIDATES: readonly Candidate[] = [
  { device: "WebGPU", make: () => createWebGpu(), flags: ["--device", "webgpu"] },
  { device: "CPU", make: () => createCpu(), flags: ["--device", "cpu"] },
  {
    device: "CPU, WebAssembly",
    make: () => createCpu({ native: false }),
    flags: ["--device", "cpu"],
    environment: { SQLENV_NATIVE: "0" },
  },
  {
    device: "CUDA, fp32",
    make: () => createCuda({ precision: "fp32" }),
    flags: ["--device", "cuda", "--precision", "fp32"],
  },
  { device: "CUDA, bf16", make: () => createCuda({ precision: "bf16" }), flags: ["--device", "cuda"] },
];

export function webGpuCommand(): Command {
  return new Command("webgpu")
    .description("training and sampling speed through WebGPU, beside the other devices of this machine")
    .option("--size <number>", "rows and columns of the matmul (default: 4096)", countFromOne("--size"))
    .option("--quick", "the starter's shape only")
    .option("--kernels", "also WebGPU's kernels against the limits of the adapter")
    .option("--training", "also the default training on each device")
    .option("--json", JSON_OUTPUT)
    .action(async ({ json, quick = false, training = false, kernels = false, size }: Options) => {
      const out = output({ json });
      const measured = measurementNow();
      const limits = measureLimits(out);
      const { software } = limits.adapter;
      if (software) out.line("a software adapter: its speed says nothing about GPUs");
      const usual = software ? SOFTWARE_SPEC : WEBGPU_SPEC;
      const spec = { ...usual, matmul: size ?? usual.matmul, models: quick ? usual.models.slice(0, 1) : usual.models };
      const devices: Measured[] = [];
      for (const candidate of CANDIDATES) {
        const rates = await measure(candidate, { spec, training }, out);
        if (rates) devices.push(rates);
      }
      const rows = kernels ? measureKernels(limits, software, out) : [];
      out.line(describe(limits, spec, devices, rows));
      out.result({ ...limits, spec, devices, kernels: rows, measured });
    });
}

function measureLimits(out: Output): Limits {
  const device = createWebGpu(); // throws with a remedy if there is none
  try {
    out.progress("the adapter's limits");
    const { adapter } = device;
    const floats = Math.min(adapter.limits.maxBufferSize / 4, adapter.software ? 2 ** 22 : 2 ** 28);
    return { adapter, gflops: measureRate(device), gigabytes_per_s: measureCopy(device, floats) };
  } finally {
    device.close();
  }
}

/** Measures a device; undefined if this machine does not have it. */
async function measure(
  candidate: Candidate,
  { spec, training }: { readonly spec: WebGpuSpec; readonly training: boolean },
  out: Output,
): Promise<Measured | undefined> {
  const { device: name, make } = candidate;
  let device: Device;
  try {
    device = make();
  } catch (error) {
    if (!(error instanceof SqlEnvError)) throw error;
    out.line(`${name}: not measured, ${error.what}`);
    return undefined;
  }
  out.progress(`${name}: matmul`);
  const { variant } = device;
  const matmul_gflops = measureMatmul(device, spec.matmul);
  device.close();
  const models = [];
  for (const model of spec.models) {
    out.progress(`${name}: ${model}`);
    models.push(await measureModel(make(), model, spec));
  }
  if (training) out.progress(`${name}: the default training`);
  return {
    device: name,
    variant,
    matmul_gflops,
    models,
    default_training: training ? trainByDefault(candidate) : null,
  };
}

/** Runs the default training in a process of its own. */
function trainByDefault({ flags, environment }: Candidate): Measured["default_training"] {
  const main = fileURLToPath(new URL("../main.js", import.meta.url));
  const folder = mkdtempSync(join(tmpdir(), "sqlenv-bench-"));
  try {
    const args = [main, "train", "--seed", "42", "--output-dir", join(folder, "run"), "--json", ...flags];
    const text = execFileSync(process.execPath, args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...environment },
      maxBuffer: 1 << 26,
    });
    const { seconds, after } = JSON.parse(text) as {
      readonly seconds: number;
      readonly after: { readonly unseen: { readonly greedy: { readonly success_rate: number } } };
    };
    return { seconds, success_rate: after.unseen.greedy.success_rate };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Each kernel of a training step of the 82M model (of the tiny one on a software adapter). */
function measureKernels({ gflops, gigabytes_per_s }: Limits, software: boolean, out: Output): RooflineRow[] {
  out.progress("WebGPU: kernels");
  const device = createWebGpu();
  try {
    const model = createModel(device, WEBGPU_MODELS[software ? "tiny" : "82m"]!, { trains: true });
    for (const { value } of model.tensors) randomize(device, value, 0.02);
    parametersChanged(model);
    const ceilings = { tflops: gflops / 1000, terabytes_per_s: gigabytes_per_s / 1000 };
    const tokens = software ? 16 : 4096;
    return measureRoofline(model, device, ceilings, { time: kernelTime(device), tokens, length: tokens / 4 });
  } finally {
    device.close();
  }
}

function describe(
  { adapter, gflops, gigabytes_per_s }: Limits,
  spec: WebGpuSpec,
  devices: readonly Measured[],
  kernels: readonly RooflineRow[],
): string {
  const n = (value: number | null | undefined) => (value == null ? "" : formatNumber(Math.round(value)));
  const models = devices[0]!.models;
  const columns = ["", ...devices.map(({ device }) => device)];
  const rows = [
    [`matmul ${spec.matmul}³, GFLOP/s`, ...devices.map(({ matmul_gflops }) => n(matmul_gflops))],
    ...models.flatMap(({ model, sampling }, m) => [
      [`${model}: training, tokens/s`, ...devices.map(({ models }) => n(models[m]?.training_tokens_per_s))],
      ...sampling.map(({ batch_size }, s) => [
        `${model}: decoding ${batch_size}, tokens/s`,
        ...devices.map(({ models }) => n(models[m]?.sampling[s]?.decode_tokens_per_s)),
      ]),
    ]),
    ...(devices.some(({ default_training }) => default_training)
      ? [["default training, s", ...devices.map(({ default_training }) => n(default_training?.seconds))]]
      : []),
  ];
  const share = devices[0]!.matmul_gflops / gflops;
  const shares = kernels.map((row) => [
    row.kernel,
    row.milliseconds.toFixed(3),
    `${(100 * row.share).toFixed(0)} %`,
    row.bound,
  ]);
  return [
    `WebGPU on ${describeAdapter(adapter)}: ${n(gflops)} GFLOP/s of multiply-adds, copies at ${n(gigabytes_per_s)} GB/s; the matmul reaches ${(100 * share).toFixed(0)} %`,
    drawTable(columns, rows),
    ...(shares.length > 0 ? [drawTable(["WebGPU kernel", "ms", "of the limit", "bound by"], shares)] : []),
    "",
  ].join("\n");
}
