// config.yaml: the settings of a run, written when it begins and read when it is resumed.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseYaml, stringify } from "yaml";
import { messageOf, UsageError } from "../../errors.ts";
import { CONFIG_KEYS, type GRPOConfig, resolveConfig, unknownKey } from "../config.ts";

export const CONFIG_FILE = "config.yaml";

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

/** The config as config.yaml has it. */
export function configText(config: GRPOConfig): string {
  return stringify(config);
}

/** Settings that may change when a run is resumed: they do not affect its results. */
const FREE: readonly (keyof GRPOConfig)[] = [
  "threads",
  "environment_threads",
  "save_steps",
  "save_total_limit",
  "output_dir",
  "reward_timeout",
];

/** The config of a run that is resumed, with settings that replace its own. Those that would make it another run are refused by name. */
export function resumedConfig(run: string, settings: Readonly<Record<string, unknown>> = {}): GRPOConfig {
  const file = join(run, CONFIG_FILE);
  if (!existsSync(file))
    throw new UsageError({
      what: "no run to resume",
      value: run,
      remedy: `name the folder of a training, one with a ${CONFIG_FILE}`,
    });
  const kept = resolveConfig(readConfigFile(file));
  const wanted = resolveConfig({ ...kept, ...settings });
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
