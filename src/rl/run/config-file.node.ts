// config.yaml: the settings of a run and the version of its folder, written when the run begins and read when it is
// resumed or reported on.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseYaml, stringify } from "yaml";
import { messageOf, UsageError } from "../../errors.ts";
import { CONFIG_KEYS, type GRPOConfig, RENAMED_KEYS, resolveConfig, unknownKey } from "../config.ts";
import { selfTaughtName } from "../sft/self-taught.ts";
import { ENVIRONMENT_FILE } from "./environment-file.ts";
import type { RunStore } from "./store.ts";

export const CONFIG_FILE = "config.yaml";

/**
 * Version of a run's folder. 1, or none: settings may have old names (imitation_*), and the model after SFT may be in
 * `warmed`. 2: all names are current.
 */
export const RUN_VERSION = 2;

/** A YAML file's settings without its version; unknown keys are refused with the nearest one, bad YAML with its line. */
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
      what: `${file} does not hold settings but`,
      value: Array.isArray(parsed) ? "a list" : `a ${typeof parsed}`,
      remedy: "write `key: value` lines, such as `max_steps: 60`",
    });
  const { version, ...settings } = parsed as Record<string, unknown>;
  checkVersion(version, file);
  const known: readonly string[] = [...CONFIG_KEYS, ...RENAMED_KEYS, "preset"];
  for (const key of Object.keys(settings)) if (!known.includes(key)) throw unknownKey(key);
  return settings;
}

/** Refuses an unknown version; older folders have none. */
export function checkVersion(version: unknown, file: string): void {
  if (version === undefined || (Number.isInteger(version) && 1 <= Number(version) && Number(version) <= RUN_VERSION))
    return;
  const isNewer = Number(version) > RUN_VERSION;
  throw new UsageError({
    what: `${file} is of ${isNewer ? "a newer" : "an unknown"} version`,
    value: String(version),
    remedy: isNewer
      ? `update sqlenv, which reads versions up to ${RUN_VERSION}`
      : `give 1 to ${RUN_VERSION}, or leave it out`,
  });
}

/** The config as config.yaml has it. */
export function configText(config: GRPOConfig): string {
  return stringify({ version: RUN_VERSION, ...config });
}

/** Settings that may change when a run is resumed: they do not affect its results. */
const FREE: readonly (keyof GRPOConfig)[] = [
  "env", // the server may have another address; the one of an environment is recorded in inputs.json
  "tasks", // the file may be elsewhere, its tasks are compared
  "threads",
  "environment_threads",
  "save_steps",
  "save_total_limit",
  "output_dir",
  "reward_timeout",
];

/** Settings of self-taught rounds. They may change on resume, because a round fails if no episode is right. */
const SELF_TAUGHT = CONFIG_KEYS.filter((key) => key.startsWith("self_taught_"));

/**
 * The config of a resumed run, with `settings` in place of its own. Throws UsageError that names settings which would
 * make it another run.
 */
export function resumedConfig(run: string, settings: Readonly<Record<string, unknown>> = {}): GRPOConfig {
  const file = join(run, CONFIG_FILE);
  if (!existsSync(file))
    throw new UsageError({
      what: "no run to resume",
      value: run,
      remedy: `name the folder of a training, one with a ${CONFIG_FILE}`,
    });
  // Without warnings about old names: the user cannot rename the settings of an existing run.
  const kept = resolveConfig(readConfigFile(file), { onDeprecated: () => {} });
  if (kept.env === null && existsSync(join(run, ENVIRONMENT_FILE)))
    throw new UsageError({
      what: "the run was trained in an environment of its own, which only its program has",
      value: run,
      remedy: "resume it from there: runTraining({ …, resume: true })",
    });
  const wanted = resolveConfig({ ...kept, ...settings });
  const show = (value: unknown) => JSON.stringify(value);
  const free = [...FREE, ...freeSelfTaught(run)];
  const changed = CONFIG_KEYS.filter((key) => !free.includes(key) && show(wanted[key]) !== show(kept[key]));
  if (changed.length > 0)
    throw new UsageError({
      what: "the run was begun with other settings",
      value: changed.map((key) => `${key} ${show(kept[key])}, now ${show(wanted[key])}`).join("; "),
      remedy: "leave them as they were, or start a new run",
    });
  if ((wanted.env === null) !== (kept.env === null))
    throw new UsageError({
      what: "the run was begun in another environment; env was",
      value: kept.env ?? "null",
      remedy: "leave it as it was, or start a new run",
    });
  return { ...wanted, output_dir: kept.output_dir };
}

/**
 * Settings of self-taught rounds that may still change: all until the first round has ended, then the number of rounds
 * until GRPO starts.
 */
function freeSelfTaught(run: string): readonly (keyof GRPOConfig)[] {
  if (existsSync(join(run, "before.json"))) return [];
  return existsSync(join(run, selfTaughtName(1))) ? ["self_taught_rounds"] : SELF_TAUGHT;
}

/** Writes changed settings of self-taught rounds to the run's config.yaml, so that the next resume starts from them. */
export function keepSelfTaught(store: RunStore, config: GRPOConfig): void {
  const file = join(store.name, CONFIG_FILE);
  const kept = resolveConfig(readConfigFile(file), { onDeprecated: () => {} });
  if (SELF_TAUGHT.some((key) => kept[key] !== config[key]))
    store.write(
      CONFIG_FILE,
      configText({ ...kept, ...Object.fromEntries(SELF_TAUGHT.map((key) => [key, config[key]])) }),
    );
}
