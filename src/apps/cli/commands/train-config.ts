// From preset, YAML file and flags to one config: each overrides the one before it.
import { existsSync, readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { parse as parseYaml, stringify } from "yaml";
import { z } from "zod";
import { messageOf, UsageError } from "../../../errors.ts";
import type { ThreadEngineOptions } from "../../../lm/engine/index.node.ts";
import type { LoraSpec } from "../../../lm/model/lora.ts";
import {
  CONFIG_KEYS,
  configSchema,
  type GRPOConfig,
  PRESET_NAMES,
  presetNamed,
  resolveConfig,
  unknownKey,
} from "../../../rl/index.ts";

export interface ConfigFlags extends Readonly<Record<string, unknown>> {
  readonly preset?: string;
  readonly config?: string;
}

/** One setting as JSON Schema tells it. */
interface Setting {
  readonly type?: string | readonly string[];
  readonly default?: unknown;
  readonly description?: string;
  readonly enum?: readonly string[];
}

const SETTINGS = (z.toJSONSchema(configSchema, { io: "input" }) as { properties: Record<string, Setting> }).properties;

/** Adds --preset, --config and a flag for every setting. */
export function addConfigOptions(command: Command): Command {
  command
    .option("--preset <name>", `${PRESET_NAMES.join(", ")} (default: starter, unless --config is given)`)
    .option("--config <file>", "YAML with settings; flags override it");
  for (const key of CONFIG_KEYS) {
    const { type, default: fallback, description = "", enum: choices } = SETTINGS[key]!;
    const flag = `--${key.replaceAll("_", "-")}`;
    const text = choices ? `${description}: ${choices.join(", ")}` : description;
    const shown = `${text} (${JSON.stringify(fallback ?? null)})`;
    command.addOption(new Option(type === "boolean" ? `${flag} [boolean]` : `${flag} <value>`, shown));
  }
  return command;
}

/** The settings that were typed, by key. */
export function typedSettings(flags: ConfigFlags): Record<string, unknown> {
  const typed: Record<string, unknown> = {};
  for (const key of CONFIG_KEYS) {
    const value = flags[key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())];
    if (value !== undefined) typed[key] = value === true ? true : readValue(key, String(value));
  }
  return typed;
}

/** A flag's text as the value it means: numbers, true, null, lists between commas, YAML for the rest. */
function readValue(key: string, text: string): unknown {
  const { type, default: fallback } = SETTINGS[key]!;
  if (type === "string" && typeof fallback === "string") return text;
  const isList = Array.isArray(fallback) || key === "reward_weights" || key === "lora_target_modules";
  try {
    return parseYaml(isList && text !== "null" && !text.startsWith("[") ? `[${text}]` : text);
  } catch {
    return text;
  }
}

/** The settings of preset, file and flags together. */
export function configOf(flags: ConfigFlags): GRPOConfig {
  const file = flags.config === undefined ? {} : readConfigFile(flags.config);
  const { preset: named, ...settings } = file;
  const preset =
    flags.preset ?? (typeof named === "string" ? named : flags.config === undefined ? "starter" : undefined);
  return resolveConfig({
    ...(preset === undefined || preset === "none" ? {} : presetNamed(preset)),
    ...settings,
    ...typedSettings(flags),
  });
}

/** A YAML file's settings; unknown keys are refused with the nearest one, bad YAML with its line. */
export function readConfigFile(file: string): Record<string, unknown> {
  if (!existsSync(file)) throw new UsageError({ what: "no such config file", value: file });
  let parsed: unknown;
  try {
    parsed = parseYaml(readFileSync(file, "utf8")) ?? {};
  } catch (cause) {
    throw new UsageError({ what: `${file} is not YAML`, value: messageOf(cause), cause });
  }
  if (typeof parsed !== "object" || Array.isArray(parsed))
    throw new UsageError({
      what: `${file} does not hold settings`,
      value: typeof parsed,
      remedy: "write `key: value` lines",
    });
  const settings = parsed as Record<string, unknown>;
  for (const key of Object.keys(settings)) {
    if (key !== "preset" && !(CONFIG_KEYS as readonly string[]).includes(key)) throw unknownKey(key);
  }
  return settings;
}

/** The config as it is written to config.yaml. */
export function configText(config: GRPOConfig): string {
  return stringify(config);
}

/** Settings that may change when a run is resumed: they do not touch its results. */
const FREE: readonly (keyof GRPOConfig)[] = [
  "threads",
  "environment_threads",
  "save_steps",
  "save_total_limit",
  "output_dir",
  "reward_timeout",
];

/** The config of a run that is resumed. Settings that would make it another run are refused, by name. */
export function resumedConfig(kept: GRPOConfig, flags: ConfigFlags): GRPOConfig {
  const wanted =
    flags.preset !== undefined || flags.config !== undefined
      ? configOf(flags)
      : resolveConfig({ ...kept, ...typedSettings(flags) });
  const show = (value: unknown) => JSON.stringify(value);
  const changed = CONFIG_KEYS.filter((key) => !FREE.includes(key) && show(wanted[key]) !== show(kept[key]));
  if (changed.length > 0)
    throw new UsageError({
      what: "the run was begun with other settings",
      value: changed.map((key) => `${key} ${show(kept[key])}, now ${show(wanted[key])}`).join("; "),
      remedy: "leave them as they were, or start a new run",
    });
  return { ...wanted, output_dir: kept.output_dir };
}

/** The adapters a config asks for. */
export function loraOf({ lora_r: r, lora_alpha: alpha, lora_target_modules: targets }: GRPOConfig): LoraSpec {
  return { r, alpha, ...(targets && { targets }) };
}

/** What a config asks of the engine. */
export function engineOptions(config: GRPOConfig): ThreadEngineOptions {
  const { threads, device, precision, gradient_checkpointing: recompute, beta, max_gpu_memory } = config;
  return {
    ...{ device, recompute, reference: beta !== 0 },
    ...(config.use_peft && { lora: { ...loraOf(config), seed: config.seed } }),
    ...(max_gpu_memory === null ? {} : { maxGpuMemory: max_gpu_memory * 1e9 }),
    ...(threads === null ? {} : { threads }),
    ...(precision === "auto" ? {} : { precision }),
  };
}
