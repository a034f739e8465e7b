// `sqlenv bench memory`: estimated and measured memory of a whole GRPO step.
import { Command, Option } from "commander";
import { UsageError } from "../../../errors.ts";
import { startDevice } from "../../../lm/devices/start.node.ts";
import {
  MEMORY_MODELS,
  type MemoryCase,
  type MemoryMeasure,
  measureMemory,
  type StepSize,
} from "../../bench/memory.ts";
import { addAlias } from "../options/alias.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "../options/device.ts";
import { countFromOne, drawTable, formatBytes, formatNumber, output, wholeNumber } from "../terminal/output.ts";

interface Options extends DeviceFlags {
  readonly model: string;
  readonly cases: string;
  readonly loraR: number;
  readonly questions: number;
  readonly numGenerations: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly json?: boolean;
}

/** Training setups by name. */
const CASES: Readonly<Record<string, (lora: number) => MemoryCase>> = {
  full: () => ({ recompute: false, reference: false }),
  "full-recompute": () => ({ recompute: true, reference: false }),
  "full-recompute-kl": () => ({ recompute: true, reference: true }),
  lora: (r) => ({ lora: { r, alpha: 2 * r }, recompute: false, reference: false }),
  "lora-recompute-kl": (r) => ({ lora: { r, alpha: 2 * r }, recompute: true, reference: true }),
};

export function memoryCommand(): Command {
  const command = new Command("memory")
    .description("estimated and measured memory of a GRPO step with random weights")
    .option("--model <name>", `architecture: ${Object.keys(MEMORY_MODELS).join(", ")}`, "small")
    .addOption(
      new Option("--cases <list>", `training setups: ${Object.keys(CASES).join(",")}`).default(
        Object.keys(CASES).join(","),
        "all",
      ),
    )
    .option("--lora-r <number>", "LoRA rank", countFromOne("--lora-r"), 16)
    .option("--questions <number>", "questions per step", wholeNumber("--questions"), 2)
    .option("--num-generations <number>", "episodes per question", wholeNumber("--num-generations"), 4)
    .option("--prompt-tokens <number>", "tokens per prompt", wholeNumber("--prompt-tokens"), 256)
    .option("--completion-tokens <number>", "tokens per completion", wholeNumber("--completion-tokens"), 64)
    .option("--json", JSON_OUTPUT);
  addAlias(command, "--generations", "--num-generations");
  addAlias(command, "--prompt", "--prompt-tokens");
  addAlias(command, "--completion", "--completion-tokens");
  return addDeviceOptions(command).action(run);
}

async function run(options: Options): Promise<void> {
  const out = output(options);
  const config = MEMORY_MODELS[options.model];
  if (!config) {
    const remedy = `use ${Object.keys(MEMORY_MODELS).join(" or ")}`;
    throw new UsageError({ what: "no such model", value: options.model, remedy });
  }
  const names = options.cases.split(",");
  const unknown = names.find((name) => !(name in CASES));
  if (unknown !== undefined)
    throw new UsageError({ what: "no such case", value: unknown, remedy: `use ${Object.keys(CASES).join(", ")}` });
  const { questions, numGenerations: generations, promptTokens: prompt, completionTokens: completion } = options;
  const size: StepSize = { questions, generations, prompt, completion };
  const measured: (MemoryMeasure & { readonly name: string })[] = [];
  let variant = "";
  for (const name of names) {
    out.progress(name);
    const device = startDevice(deviceOptions(options));
    if (!("native" in device || "gpu" in device)) {
      device.close();
      throw new UsageError({ what: "bench memory measures the CPU and CUDA", remedy: "omit --device webgpu" });
    }
    variant = device.variant;
    measured.push({ name, ...(await measureMemory(device, config, CASES[name]!(options.loraR), size)) });
  }
  out.endProgress();
  const rows = measured.map(({ name, peak, estimate, ratio, learned, rows, seconds }) => [
    name,
    formatNumber(learned),
    formatNumber(rows),
    formatBytes(peak),
    formatBytes(estimate.total),
    `${(100 * ratio).toFixed(0)} %`,
    seconds.all.toFixed(1),
    seconds.sampling.toFixed(1),
    seconds.learning.toFixed(1),
  ]);
  out.line(`${options.model}, ${formatNumber(measured[0]!.parameters)} parameters, ${variant}`);
  const head = ["", "trained", "rows", "peak", "estimate", "of peak", "step s", "sampling s", "learning s"];
  out.line(drawTable(head, rows));
  out.result({ model: options.model, variant, size, cases: measured });
}
