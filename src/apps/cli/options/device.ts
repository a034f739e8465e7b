// Where a command computes: --device, --precision and --threads, the same for all that run a model.
import { type Command, Option } from "commander";
import { UsageError } from "../../../errors.ts";
import type { ThreadEngineOptions } from "../../../lm/engine/index.node.ts";
import { wholeNumber } from "../terminal/output.ts";

export interface DeviceFlags {
  readonly device?: "auto" | "cpu" | "cuda";
  readonly precision?: "bf16" | "fp32";
  readonly threads?: number;
  readonly maxGpuMemory?: number;
}

/** Adds the options. */
export function addDeviceOptions(command: Command): Command {
  return command
    .addOption(new Option("--device <name>", "where to compute").choices(["auto", "cpu", "cuda"]).default("auto"))
    .addOption(
      new Option("--precision <name>", "of a GPU's activations (default: bf16 where it has that)").choices([
        "bf16",
        "fp32",
      ]),
    )
    .option("--max-gpu-memory <gigabytes>", "of a GPU to use (default: all it has)", Number)
    .option("--threads <number>", "of the CPU (default: all)", wholeNumber("--threads"));
}

/** The options an engine is started with. */
export function deviceOptions({ device, precision, threads, maxGpuMemory }: DeviceFlags): ThreadEngineOptions {
  if (maxGpuMemory !== undefined && !(maxGpuMemory > 0))
    throw new UsageError({ what: "--max-gpu-memory takes a number of gigabytes above 0", value: maxGpuMemory });
  return {
    ...(maxGpuMemory === undefined ? {} : { maxGpuMemory: maxGpuMemory * 1e9 }),
    ...(device === undefined ? {} : { device }),
    ...(precision === undefined ? {} : { precision }),
    ...(threads === undefined ? {} : { threads }),
  };
}
