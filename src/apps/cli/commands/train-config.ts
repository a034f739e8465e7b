// From preset, YAML file and flags to one config: each overrides the one before it.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, Option } from "commander";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { UsageError } from "../../../errors.ts";
import { findModel } from "../../../lm/engine/index.node.ts";
import { parameterCount, parseConfig } from "../../../lm/model/config.ts";
import { isGgufFile, loadGguf } from "../../../lm/model/formats/gguf.node.ts";
import { KNOWN_MODELS } from "../../../lm/model/formats/known.ts";
import {
  CONFIG_KEYS,
  configSchema,
  type GRPOConfig,
  type GRPOConfigInput,
  PRESET_NAMES,
  presetFor,
  presetNamed,
  RENAMED_KEYS,
  renameSettings,
  resolveConfig,
} from "../../../rl/index.ts";
import { SQL_ONLY } from "../../../rl/openenv/prepare.node.ts";
import { readConfigFile } from "../../../rl/run/config-file.node.ts";
import { addAlias } from "../options/alias.ts";

export interface ConfigFlags extends Readonly<Record<string, unknown>> {
  readonly preset?: string;
  readonly config?: string;
}

/** One setting in JSON Schema. */
interface Setting {
  readonly type?: string | readonly string[];
  readonly anyOf?: readonly { readonly type?: string }[];
  readonly default?: unknown;
  readonly description?: string;
  readonly enum?: readonly string[];
}

const SETTINGS = (z.toJSONSchema(configSchema, { io: "input" }) as { properties: Record<string, Setting> }).properties;

/** Settings that `train --help` lists; `--help-all` lists all. */
const COMMON: readonly string[] = [
  ...["model_name", "questions_path", "db_dir", "difficulty_filter", "step_budget", "seed", "output_dir", "max_steps"],
  ...[
    "env",
    "tasks",
    "system",
    "action_template",
    "num_generations",
    "per_device_train_batch_size",
    "learning_rate",
    "sft_steps",
    "use_peft",
    "device",
  ],
];

/** Groups of the other settings, by the first setting of each in the schema. */
const GROUPS: Readonly<Record<string, string>> = {
  model_name: "Model and data:",
  error_hints: "Environment and folder:",
  num_train_epochs: "How much:",
  sft_steps: "SFT before GRPO, and which questions GRPO asks:",
  prompt: "Prompts and sampling:",
  reward_funcs: "Rewards and advantages:",
  loss_type: "Loss:",
  self_taught_rounds: "Self-taught rounds:",
  use_peft: "LoRA:",
  engine: "Remote engine:",
  learning_rate: "Optimizer:",
  logging_steps: "Logging, evaluation and checkpoints:",
  device: "Device and threads:",
};

/** Settings of presets that are about SQL and do not apply to the environment of a server. */
const WITHOUT_SQL: GRPOConfigInput = { ...SQL_ONLY, reward_weights: null, easy_steps: 0 };

/** Adds --preset, --config, a flag for every setting, and --help-all. */
export function addConfigOptions(command: Command): Command {
  const starter: Readonly<Record<string, unknown>> = presetNamed("starter");
  const others: Option[] = [];
  command
    .optionsGroup("Settings (defaults are those of plain `train`, the starter preset):")
    .option(
      "--preset <name>",
      `settings that go together: ${PRESET_NAMES.join(", ")} (default: starter, or by --model-name; none: the schema's defaults)`,
    )
    .option("--config <file>", "YAML with settings; flags override it");
  let group = "";
  for (const key of CONFIG_KEYS) {
    const { type, default: fallback, description = "", enum: choices } = SETTINGS[key]!;
    const flag = `--${key.replaceAll("_", "-")}`;
    const text = choices ? `${description}: ${choices.join(", ")}` : description;
    const shown = `${text} (${JSON.stringify(starter[key] ?? fallback ?? null)})`;
    group = GROUPS[key] ?? group;
    const option = new Option(type === "boolean" ? `${flag} [boolean]` : `${flag} <value>`, shown);
    if (!COMMON.includes(key)) others.push(option.helpGroup(group).hideHelp());
    command.addOption(option);
  }
  command.addOption(new Option("--help-all", "list every setting, and stop")).on("option:help-all", () => {
    for (const option of others) option.hidden = false;
    command.help();
  });
  addAlias(command, "--data", "--questions-path"); // the name of this option in other commands
  for (const key of RENAMED_KEYS)
    command.addOption(new Option(`--${key.replaceAll("_", "-")} <value>`, "deprecated").hideHelp());
  return command;
}

/** The settings that were typed, by key. */
export function typedSettings(flags: ConfigFlags): Record<string, unknown> {
  const typed: Record<string, unknown> = {};
  for (const key of [...CONFIG_KEYS, ...RENAMED_KEYS]) {
    const value = flags[key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())];
    if (value !== undefined) typed[key] = value === true ? true : readValue(key, String(value));
  }
  return typed;
}

/** Parses a flag's text as YAML (numbers, true, null); settings that are lists take values between commas. */
function readValue(key: string, text: string): unknown {
  const { type, anyOf = [], default: fallback } = SETTINGS[key] ?? {};
  if (type === "string" && typeof fallback === "string") return text;
  const isText = anyOf.some((one) => one.type === "string") && anyOf.every((one) => /string|null/.test(one.type ?? ""));
  if (isText) return text === "null" ? null : text;
  const isList = Array.isArray(fallback) || key === "reward_weights" || key === "lora_target_modules";
  try {
    return parseYaml(isList && text !== "null" && !text.startsWith("[") ? `[${text}]` : text);
  } catch {
    return text;
  }
}

/**
 * Merges the settings of preset, file and flags. Calls `onDeprecated` about old names, and `onPreset` about a preset
 * that the user did not name.
 */
export function configOf(
  flags: ConfigFlags,
  onDeprecated?: (line: string) => void,
  onPreset?: (line: string) => void,
): GRPOConfig {
  const file = flags.config === undefined ? {} : readConfigFile(flags.config);
  const { preset: named, ...settings } = file;
  const given = { ...settings, ...typedSettings(flags) };
  const isOnServer = typeof given.env === "string";
  if (isOnServer && given.model_name === undefined && flags.preset === undefined && named === undefined)
    throw new UsageError({
      what: "--env needs a model, for the bundled starter was taught SQL only",
      value: String(given.env),
      remedy:
        "give --model-name a chat model of the Hub such as Qwen/Qwen3-0.6B, or a folder (starter trains the starter all the same)",
    });
  const asked = flags.preset ?? (typeof named === "string" ? named : undefined);
  const preset = asked ?? (isComplete(settings) ? "none" : presetOf(given));
  if (asked === undefined && preset !== "none" && Object.keys(given).length > 0 && onPreset)
    for (const line of presetLines(preset, given, flags.config)) onPreset(line);
  return resolveConfig(
    { ...(preset === "none" ? {} : presetNamed(preset)), ...(isOnServer && WITHOUT_SQL), ...given },
    onDeprecated && { onDeprecated },
  );
}

/** Whether a file needs no preset, because it has most settings, as a run's config.yaml does. */
function isComplete(settings: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(settings).length > CONFIG_KEYS.length / 2;
}

/**
 * The preset if the user names none: one for the model's size, or the starter's if no model is named either. On questions
 * of `data make` models of the starter's size get the preset with SFT before GRPO.
 */
function presetOf({ model_name: model, questions_path: data }: Readonly<Record<string, unknown>>): string {
  const preset = typeof model === "string" ? presetFor(model, parametersOf(model)) : "starter";
  return preset === "starter" && typeof data === "string" && isMade(data) ? OWN_DATA : preset;
}

const OWN_DATA = "own-starter";

/** Whether `data make` wrote this folder: its report is beside the questions. */
function isMade(folder: string): boolean {
  return existsSync(join(folder, "report.json")) && existsSync(join(folder, "questions"));
}

/** A model's size, if it is known or on this machine. */
function parametersOf(model: string): number | undefined {
  const known = KNOWN_MODELS[model]?.config;
  if (known) return parameterCount(known);
  try {
    const folder = findModel(model);
    if (folder && isGgufFile(folder)) {
      const { config, weights } = loadGguf(folder);
      void weights.close();
      return parameterCount(config);
    }
    const file = folder && join(folder, "config.json");
    if (!file || !existsSync(file)) return undefined;
    return parameterCount(parseConfig(JSON.parse(readFileSync(file, "utf8")), file));
  } catch {
    return undefined; // loading the model will report the error
  }
}

function presetLines(
  preset: string,
  { model_name: model, questions_path: data }: Readonly<Record<string, unknown>>,
  file: string | undefined,
): string[] {
  const others = "(--preset names another; none: the schema's defaults)";
  if (preset === OWN_DATA)
    return [
      `settings not given are those of the preset ${preset}, chosen for questions made by data make (${String(data)}): SFT on most of them, then GRPO on the others ${others}`,
    ];
  if (typeof model === "string")
    return [`settings not given are those of the preset ${preset}, chosen for ${model} ${others}`];
  return file === undefined
    ? []
    : [`settings not in ${file} are those of the preset ${preset} (--preset names another)`];
}

/**
 * Settings that replace those of a resumed run: only the flags, or all settings if a preset or a file is also given.
 */
export function resumeSettings(flags: ConfigFlags, onDeprecated: (line: string) => void): GRPOConfigInput {
  if (flags.preset !== undefined || flags.config !== undefined) return configOf(flags, onDeprecated);
  const { settings, note } = renameSettings(typedSettings(flags));
  if (note) onDeprecated(note);
  return settings;
}
