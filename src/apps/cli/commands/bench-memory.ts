// `sqlenv bench memory`: what was estimated beside what a whole GRPO step took.
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
import { addDeviceOptions, type DeviceFlags, deviceOptions } from "../options/device.ts";
import { drawTable, formatBytes, formatNumber, output, wholeNumber } from "../terminal/output.ts";

interface Options extends DeviceFlags {
  readonly model: string;
  readonly cases: string;
  readonly loraR: number;
  readonly questions: number;
  readonly generations: number;
  readonly prompt: number;
  readonly completion: number;
  readonly json?: boolean;
}

/** Ways to train, by name. */
const CASES: Readonly<Record<string, (lora: number) => MemoryCase>> = {
  full: () => ({ recompute: false, reference: false }),
  "full-recompute": () => ({ recompute: true, reference: false }),
  "full-recompute-kl": () => ({ recompute: true, reference: true }),
  lora: (r) => ({ lora: { r, alpha: 2 * r }, recompute: false, reference: false }),
  "lora-recompute-kl": (r) => ({ lora: { r, alpha: 2 * r }, recompute: true, reference: true }),
};

export function memoryCommand(): Command {
  const command = new Command("memory")
    .description("the memory of a whole GRPO step with random weights, beside what was estimated")
    .option("--model <name>", `the shape: ${Object.keys(MEMORY_MODELS).join(", ")}`, "small")
    .addOption(
      new Option("--cases <list>", "ways to train, between commas").default(
        Object.keys(CASES).join(","),
        "all there are",
      ),
    )
    .option("--lora-r <n>", "rank of the adapters", wholeNumber("--lora-r"), 16)
    .option("--questions <n>", "of a step", wholeNumber("--questions"), 2)
    .option("--generations <n>", "episodes of each", wholeNumber("--generations"), 4)
    .option("--prompt <n>", "tokens", wholeNumber("--prompt"), 256)
    .option("--completion <n>", "tokens", wholeNumber("--completion"), 64)
    .option("--json", "print one JSON object");
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
  const { questions, generations, prompt, completion } = options;
  const size: StepSize = { questions, generations, prompt, completion };
  const measured: (MemoryMeasure & { readonly name: string })[] = [];
  let variant = "";
  for (const name of names) {
    out.progress(name);
    const device = startDevice(deviceOptions(options));
    variant = device.variant;
    measured.push({ name, ...(await measureMemory(device, config, CASES[name]!(options.loraR), size)) });
  }
  out.endProgress();
  const rows = measured.map(({ name, peak, estimate, ratio, learned, rows, seconds }) => [
    ...[name, formatNumber(learned), formatNumber(rows), formatBytes(peak), formatBytes(estimate.total)],
    ...[
      `${(100 * ratio).toFixed(0)} %`,
      seconds.all.toFixed(1),
      seconds.sampling.toFixed(1),
      seconds.learning.toFixed(1),
    ],
  ]);
  out.line(`${options.model}, ${formatNumber(measured[0]!.parameters)} parameters, ${variant}`);
  const head = ["", "learned", "rows", "peak", "estimate", "of peak", "step s", "sampling s", "learning s"];
  out.line(drawTable(head, rows));
  out.result({ model: options.model, variant, size, cases: measured });
}
