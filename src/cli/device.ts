// Where a command computes: --device, --precision and --threads, the same for all that run a model.
import { type Command, Option } from "commander";
import type { ThreadEngineOptions } from "../engine/index.node.ts";
import { wholeNumber } from "./output.ts";

export interface DeviceFlags {
  readonly device?: "auto" | "cpu" | "cuda";
  readonly precision?: "bf16" | "fp32";
  readonly threads?: number;
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
    .option("--threads <number>", "of the CPU (default: all)", wholeNumber("--threads"));
}

/** The options an engine is started with. */
export function deviceOptions({ device, precision, threads }: DeviceFlags): ThreadEngineOptions {
  return {
    ...(device === undefined ? {} : { device }),
    ...(precision === undefined ? {} : { precision }),
    ...(threads === undefined ? {} : { threads }),
  };
}
