// `sqlenv doctor`: checks this machine: CPU, GPU and libraries, what is missing, and which models fit.
import { totalmem } from "node:os";
import { Command } from "commander";
import { messageOf, SqlEnvError } from "../../../errors.ts";
import { usableCpus } from "../../../io/cpus.node.ts";
import { createCpu } from "../../../lm/devices/cpu/start.node.ts";
import { INSTRUCTION_SET_NAMES } from "../../../lm/devices/cpu/x64/instruction-set.ts";
import { Compiler } from "../../../lm/devices/cuda/compiler.node.ts";
import { createCuda, LEAST_CAPABILITY } from "../../../lm/devices/cuda/create.node.ts";
import type { Gpu, Precision } from "../../../lm/devices/cuda/device.ts";
import { openGpu } from "../../../lm/devices/cuda/driver.node.ts";
import { type LibraryName, loadFfi, loadLibrary } from "../../../lm/devices/cuda/libraries.node.ts";
import { createWebGpu, findWebGpu } from "../../../lm/devices/webgpu/create.node.ts";
import { describeAdapter } from "../../../lm/devices/webgpu/device.ts";
import { estimateMemory, type MemoryPlace } from "../../../lm/engine/index.ts";
import { cpuMemory } from "../../../lm/engine/machine-memory.node.ts";
import { KNOWN_MODELS } from "../../../lm/model/formats/known.ts";
import type { LoraSpec } from "../../../lm/model/lora.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { drawTable, formatBytes, formatNumber, output, styled } from "../terminal/output.ts";
import { wrapText } from "../terminal/wrap.ts";

/** One thing checked. */
interface Finding {
  readonly what: string;
  readonly ok: boolean;
  readonly found: string;
  readonly remedy?: string | undefined;
}

export function doctorCommand(): Command {
  return new Command("doctor")
    .description("check this machine: CPU, GPU, libraries, and which models fit")
    .option("--json", JSON_OUTPUT)
    .action(({ json }: { readonly json?: boolean }) => {
      const out = output({ json });
      const cuda = cudaFindings();
      const canUseCuda = cuda.every(({ ok }) => ok);
      const findings = [...cpuFindings(), ...cuda, webGpuFinding()];
      for (const { what, ok, found, remedy } of findings) {
        const mark = ok ? styled("green", "ok     ") : styled("yellow", "missing");
        out.line(`${mark} ${what}: ${found}`);
        if (remedy) out.line(wrapText(remedy, process.stdout.columns || 80, 8));
      }
      const device = canUseCuda ? "cuda" : findWebGpu() ? "webgpu" : "cpu";
      out.line(`--device auto uses ${device}`);
      const models = whatFits(canUseCuda ? gpuMemory() : undefined);
      const where = canUseCuda ? "on the GPU" : `on the CPU, where an engine may use ${formatBytes(cpuMemory())}`;
      out.line(`\nestimated memory ${where}, and whether it fits:`);
      out.line(drawTable(["model", "inference", "LoRA training", "full training"], models.map(fitLine)));
      out.result({ device, findings, models });
    });
}

interface Fit {
  readonly model: string;
  /** Minimum bytes for each use, and whether they fit. */
  readonly sampling: Need;
  readonly adapters: Need;
  readonly all_weights: Need;
}

interface Need {
  readonly bytes: number;
  readonly fits: boolean;
}

/** Memory that known models need here for inference, LoRA and full training. */
function whatFits(gpu: { readonly memory: number; readonly precision: Precision } | undefined): Fit[] {
  const place: MemoryPlace = gpu ? { device: "cuda", ...gpu } : { device: "cpu" };
  const room = gpu ? 0.94 * gpu.memory : cpuMemory();
  // On a GPU, batches and caches shrink to what fits; on the CPU their sizes are fixed.
  const least = { place, recompute: true, ...(gpu && { rows: 1_024, cacheTokens: 8_192 }) };
  return Object.entries(KNOWN_MODELS).map(([model, { config }]) => {
    const need = (options: { readonly trains: boolean; readonly lora?: LoraSpec }): Need => {
      const { total: bytes } = estimateMemory(config, { ...least, ...options });
      return { bytes, fits: bytes <= room };
    };
    const lora = { r: 16, alpha: 32 };
    return {
      model,
      sampling: need({ trains: false }),
      adapters: need({ trains: true, lora }),
      all_weights: need({ trains: true }),
    };
  });
}

function fitLine({ model, sampling, adapters, all_weights }: Fit): string[] {
  return [
    model,
    ...[sampling, adapters, all_weights].map(({ bytes, fits }) => `${formatBytes(bytes)}: ${fits ? "yes" : "no"}`),
  ];
}

function gpuMemory(): { readonly memory: number; readonly precision: Precision } {
  const { memory, capability } = openGpu().gpu;
  return { memory, precision: capability >= 80 ? "bf16" : "fp32" };
}

function cpuFindings(): Finding[] {
  const device = createCpu({ threads: 1 });
  const { variant, instructionSet } = device;
  device.close();
  const kernels = instructionSet
    ? `machine code for ${INSTRUCTION_SET_NAMES[instructionSet]}, the same bits as WebAssembly (SQLENV_NATIVE=avx2, avx512 or 0 to choose)`
    : "WebAssembly; machine code needs Linux on x64, AVX2 and FMA, the package koffi, and SQLENV_NATIVE not 0";
  const found = `${usableCpus()} cores, ${formatBytes(totalmem())} of memory, ${variant}, Node ${process.versions.node}`;
  return [
    { what: "CPU", ok: true, found },
    { what: "CPU kernels", ok: true, found: kernels },
  ];
}

/** What `--device webgpu` would use. */
function webGpuFinding(): Finding {
  const what = "WebGPU";
  try {
    const device = createWebGpu();
    const { adapter } = device;
    device.close();
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
    const parts = [
      `${describeAdapter(adapter)}, for --device webgpu`,
      `buffers of ${formatBytes(maxBufferSize)}, so models of up to ${formatNumber(Math.floor(maxBufferSize / 4e6))} million parameters`,
      `${formatBytes(maxStorageBufferBindingSize)} of them in a kernel`,
      ["subgroups", "shader-f16"].map((name) => `${adapter.features.includes(name) ? "" : "no "}${name}`).join(", "),
    ];
    return { what, ok: true, found: parts.join("; ") };
  } catch (error) {
    return failed(what, error);
  }
}

/** A finding that something does not work. */
function failed(what: string, error: unknown): Finding {
  const known = error instanceof SqlEnvError ? error : undefined;
  const found = known ? [known.what, known.value].filter(Boolean).join(": ") : messageOf(error);
  return { what, ok: false, found, remedy: known?.remedy };
}

function cudaFindings(): Finding[] {
  const findings: Finding[] = [];
  const attempt = (what: string, look: () => string): boolean => {
    try {
      findings.push({ what, ok: true, found: look() });
      return true;
    } catch (error) {
      findings.push(failed(what, error));
      return false;
    }
  };
  const hasFfi = attempt("koffi", () => {
    loadFfi();
    return "installed";
  });
  if (!hasFfi) return findings;
  const library = (what: string, name: LibraryName) => attempt(what, () => loadLibrary(loadFfi(), name).path);
  const hasDriver = library("CUDA driver", "driver");
  let gpu: Gpu | undefined;
  const hasGpu =
    hasDriver &&
    attempt("GPU", () => {
      gpu = openGpu().gpu;
      const { name, capability, memory, driverVersion } = gpu;
      if (capability < LEAST_CAPABILITY) {
        const what = `${name} is too old: compute capability ${capability / 10}`;
        throw new SqlEnvError("no_cuda", { what, remedy: `use a GPU with ${LEAST_CAPABILITY / 10} or higher` });
      }
      const precision = capability >= 80 ? "bf16" : "fp32";
      const version = `${Math.floor(driverVersion / 1000)}.${(driverVersion % 1000) / 10}`;
      return `${name}, compute capability ${capability / 10}, ${formatBytes(memory)}, CUDA ${version}, precision ${precision}`;
    });
  const hasNvrtc = attempt("NVRTC", () => {
    const compiler = new Compiler(loadFfi(), gpu?.capability ?? 90);
    return `${compiler.version}, ${compiler.path}`;
  });
  const hasCublas = library("cuBLAS", "cublas");
  if (!hasGpu || !hasNvrtc || !hasCublas) return findings;
  attempt("CUDA device", () => {
    const device = createCuda();
    const { variant } = device;
    device.close();
    return variant;
  });
  return findings;
}
