// Reads and writes adapters in PEFT's files: adapter_config.json and adapter_model.safetensors.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { ModelLoadError } from "../../../errors.ts";
import { writeFolderWhole } from "../../../io/atomic-write.node.ts";
import { checkLora, LORA_MODULES, type LoraModule, type LoraSpec, loadLora, loraTensorsOf } from "../lora.ts";
import type { Model } from "../parameters.ts";
import { readJson, writeJson } from "../text/tokenizer.node.ts";
import { openSafetensors, writeSafetensors } from "./safetensors.node.ts";

export const ADAPTER_CONFIG = "adapter_config.json";
export const ADAPTER_WEIGHTS = "adapter_model.safetensors";

/** The keys of adapter_config.json that affect the arithmetic; others are ignored. */
const adapterFile = z.looseObject({
  peft_type: z.string(),
  base_model_name_or_path: z.string().nullish(),
  r: z.int().min(1),
  lora_alpha: z.number().positive(),
  target_modules: z.union([z.array(z.string()).min(1), z.string()]),
  bias: z.string().nullish(),
  use_rslora: z.boolean().nullish(),
  use_dora: z.boolean().nullish(),
  fan_in_fan_out: z.boolean().nullish(),
  modules_to_save: z.array(z.string()).nullish(),
  layers_to_transform: z.union([z.int(), z.array(z.int())]).nullish(),
  rank_pattern: z.record(z.string(), z.unknown()).nullish(),
  alpha_pattern: z.record(z.string(), z.unknown()).nullish(),
});

export interface AdapterConfig {
  readonly spec: LoraSpec;
  /** The base model: a folder, or a name on the Hub. */
  readonly base: string | null;
}

/** Whether a folder contains an adapter. */
export function isAdapterFolder(dir: string): boolean {
  return existsSync(join(dir, ADAPTER_CONFIG));
}

/** Reads adapter_config.json; rejects every field value that would be computed wrongly. */
export function readAdapterConfig(dir: string): AdapterConfig {
  const file = join(dir, ADAPTER_CONFIG);
  const read = adapterFile.safeParse(readJson(file));
  if (!read.success) {
    const issue = read.error.issues[0]!;
    throw bad(file, `${issue.path.join(".") || "(the whole file)"} is not usable (${issue.message})`);
  }
  const config = read.data;
  const refused = Object.entries({
    peft_type: config.peft_type !== "LORA" && config.peft_type,
    bias: (config.bias ?? "none") !== "none" && config.bias,
    use_rslora: config.use_rslora,
    use_dora: config.use_dora,
    fan_in_fan_out: config.fan_in_fan_out,
    modules_to_save: (config.modules_to_save ?? []).length > 0 && "modules",
    layers_to_transform: (config.layers_to_transform ?? null) !== null && "layers",
    rank_pattern: Object.keys(config.rank_pattern ?? {}).length > 0 && "patterns",
    alpha_pattern: Object.keys(config.alpha_pattern ?? {}).length > 0 && "patterns",
  }).find(([, value]) => value);
  if (refused) throw bad(file, `${refused[0]} is not supported`, String(refused[1]));
  const { target_modules: named } = config;
  const targets = named === "all-linear" ? LORA_MODULES : [named].flat().map((name) => name.split(".").at(-1)!);
  const spec = { r: config.r, alpha: config.lora_alpha, targets: targets as readonly LoraModule[] };
  checkLora(spec);
  return { spec, base: config.base_model_name_or_path ?? null };
}

/** Loads a model's adapters from a folder. */
export async function loadAdapter(model: Model, dir: string): Promise<void> {
  const file = join(dir, ADAPTER_WEIGHTS);
  const source = await openSafetensors(file);
  try {
    await loadLora(model, source, file);
  } finally {
    await source.close();
  }
}

/**
 * Saves a model's adapters in PEFT's format; `base` names the model they adapt. A new folder appears only when
 * complete.
 */
export async function saveAdapter(model: Model, dir: string, base: string, card?: string): Promise<void> {
  const target = resolve(dir);
  const isNew = !existsSync(target) || readdirSync(target).length === 0;
  if (isNew) mkdirSync(dirname(target), { recursive: true });
  if (isNew) await writeFolderWhole(target, (aside) => writeAdapter(model, aside, base, card));
  else await writeAdapter(model, target, base, card);
}

async function writeAdapter(model: Model, dir: string, base: string, card?: string): Promise<void> {
  const { spec } = model.lora!;
  const tensors = [...loraTensorsOf(model)];
  const shapes = new Map(tensors.map(({ name, shape }) => [name, shape]));
  await writeSafetensors(join(dir, ADAPTER_WEIGHTS), shapes, tensors, { dtype: "F32" });
  writeJson(join(dir, ADAPTER_CONFIG), {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: base,
    r: spec.r,
    lora_alpha: spec.alpha,
    lora_dropout: 0,
    target_modules: spec.targets,
    bias: "none",
    fan_in_fan_out: false,
    inference_mode: true,
    init_lora_weights: true,
    modules_to_save: null,
    use_rslora: false,
    use_dora: false,
  });
  if (card !== undefined) writeFileSync(join(dir, "README.md"), card);
}

function bad(file: string, what: string, value?: string): ModelLoadError {
  return new ModelLoadError({ what: `${file}: ${what}`, value, remedy: "use a plain LoRA adapter of these modules" });
}
