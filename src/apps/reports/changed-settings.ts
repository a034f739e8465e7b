// A run's settings: those that differ from the nearest preset (or the defaults) first.
import { resolveConfig } from "../../rl/config.ts";
import { PRESET_NAMES, presetNamed } from "../../rl/presets.ts";
import { settingText } from "./format.ts";

export interface ChangedSettings {
  /** Name of the preset with the fewest differences; null for the defaults. */
  readonly preset: string | null;
  readonly changed: readonly { readonly key: string; readonly value: string; readonly usual: string }[];
  readonly same: readonly { readonly key: string; readonly value: string }[];
}

/** Settings that identify a run and are not compared. */
const NOT_COMPARED = new Set(["output_dir", "seed"]);

/** Compares settings with the preset that needs the fewest changes; in a tie, the defaults win. */
export function changedSettings(config: Readonly<Record<string, unknown>>): ChangedSettings {
  const flat = flattenSettings(config);
  const candidates = [null, ...PRESET_NAMES].map((preset) => {
    const usual = flattenSettings(resolveConfig(preset === null ? {} : presetNamed(preset)) as Record<string, unknown>);
    const changed = [...flat].flatMap(([key, value]) => {
      const known = usual.get(key);
      return known === undefined || known === value || NOT_COMPARED.has(key) ? [] : [{ key, value, usual: known }];
    });
    return { preset, changed };
  });
  const best = candidates.reduce((a, b) => (b.changed.length < a.changed.length ? b : a));
  const differs = new Set(best.changed.map(({ key }) => key));
  return {
    ...best,
    same: [...flat].filter(([key]) => !differs.has(key)).map(([key, value]) => ({ key, value })),
  };
}

/** Nested settings by dotted names, as text. */
export function flattenSettings(config: Readonly<Record<string, unknown>>, before = ""): Map<string, string> {
  return new Map(
    Object.entries(config).flatMap(([key, value]): [string, string][] =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? [...flattenSettings(value as Record<string, unknown>, `${before}${key}.`)]
        : [[before + key, settingText(value)]],
    ),
  );
}
