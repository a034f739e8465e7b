// --device, --precision, --max-gpu-memory and --threads, the same in every command that runs a model.
import { type Command, Option } from "commander";
import { UsageError } from "../../../errors.ts";
import { DEVICE_CHOICES, type DeviceChoice } from "../../../lm/devices/start.node.ts";
import type { ThreadEngineOptions } from "../../../lm/engine/index.node.ts";
import { countFromOne } from "../terminal/output.ts";

export interface DeviceFlags {
  readonly device?: DeviceChoice;
  readonly precision?: "bf16" | "fp32";
  readonly threads?: number | undefined;
  readonly maxGpuMemory?: number;
}

/** Adds the options. `threads` is the flag for CPU threads: a server's --threads are those of its environments. */
export function addDeviceOptions(command: Command, { group = "Device options:", threads = "--threads" } = {}): Command {
  return command
    .optionsGroup(group)
    .addOption(new Option("--device <name>", "device to run on").choices(DEVICE_CHOICES).default("auto"))
    .addOption(precisionOption())
    .option("--max-gpu-memory <gigabytes>", "GPU memory limit (default: all of it)", Number)
    .option(`${threads} <number>`, "CPU threads (default: all cores)", countFromOne(threads));
}

/** --precision, also of commands that run on a GPU only. */
export function precisionOption(): Option {
  const description = "precision of activations on a GPU (default: bf16 where supported)";
  return new Option("--precision <name>", description).choices(["bf16", "fp32"]);
}

/** The flags as an engine's options. */
export function deviceOptions({ device, precision, threads, maxGpuMemory }: DeviceFlags): ThreadEngineOptions {
  if (maxGpuMemory !== undefined && !(maxGpuMemory > 0))
    throw new UsageError({ what: "--max-gpu-memory must be a positive number of gigabytes", value: maxGpuMemory });
  return {
    ...(maxGpuMemory === undefined ? {} : { maxGpuMemory: maxGpuMemory * 1e9 }),
    ...(device === undefined ? {} : { device }),
    ...(precision === undefined ? {} : { precision }),
    ...(threads === undefined ? {} : { threads }),
  };
}
