// Groups of runs: those that differ in the seed only, or have the preset or the model in common; and their mean curve.
import { settingText } from "../../reports/format.ts";
import type { RunListing } from "../server/schemas.ts";
import type { ChartLine } from "./chart.ts";
import type { Points } from "./run-model.ts";

export const GROUPINGS = { seeds: "settings, seeds together", preset: "preset", model: "model" } as const;
export type Grouping = keyof typeof GROUPINGS;

export interface RunGroup<T> {
  readonly label: string;
  readonly runs: readonly T[];
}

type Grouped = Pick<RunListing, "config" | "preset" | "model_name">;

/** Settings in which the runs of a group may differ. */
const OWN = new Set(["seed", "output_dir"]);

export function groupingOf(text: string | null): Grouping | null {
  return text !== null && Object.hasOwn(GROUPINGS, text) ? (text as Grouping) : null;
}

/** Runs in groups, in the order in which each first appears. */
export function groupRuns<T>(runs: readonly T[], by: Grouping, about: (run: T) => Grouped): RunGroup<T>[] {
  const groups = new Map<string, { readonly label: string; readonly runs: T[] }>();
  for (const run of runs) {
    const found = about(run);
    const key = by === "seeds" ? JSON.stringify(shared(found)) : labelOf(found, by);
    const group = groups.get(key) ?? { label: labelOf(found, by), runs: [] };
    group.runs.push(run);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function shared({ config }: Grouped): [string, string][] {
  return [...flatSettings(config ?? {})].filter(([key]) => !OWN.has(key)).sort(([a], [b]) => (a < b ? -1 : 1));
}

function labelOf({ config, preset, model_name }: Grouped, by: Grouping): string {
  if (by === "model") return model_name ?? "no model";
  const name = preset?.name ?? "no preset";
  if (by === "preset") return name;
  const flat = flatSettings(config ?? {});
  const differing = Object.keys(preset?.usual ?? {}).filter((key) => !OWN.has(key) && flat.has(key));
  return [name, ...differing.map((key) => `${key} ${flat.get(key)}`)].join(", ");
}

/** Nested settings by dotted names. */
export function flatSettings(config: Readonly<Record<string, unknown>>, before = ""): Map<string, string> {
  return new Map(
    Object.entries(config).flatMap(([key, value]): [string, string][] =>
      typeof value === "object" && value !== null && !Array.isArray(value)
        ? [...flatSettings(value as Record<string, unknown>, `${before}${key}.`)]
        : [[before + key, settingText(value)]],
    ),
  );
}

/** The mean of several runs' lines at the steps that all of them have, with the range of their values. */
export function meanLine(
  lines: readonly { readonly line: ChartLine; readonly steps: readonly number[] }[],
  label: string,
): ChartLine {
  const common = lines[0]!.steps.filter((step) => lines.every(({ steps }) => steps.includes(step)));
  const points = lines.map(({ line, steps }) => common.map((step) => valuesAt(line.points, steps.indexOf(step))));
  const by = (reduce: (values: readonly number[]) => number, axis: 0 | 1) =>
    common.map((_, i) => reduce(points.map((run) => run[i]![axis])));
  const x = by(mean, 0);
  return {
    ...lines[0]!.line,
    label,
    points: { x, y: by(mean, 1) },
    band: { low: { x, y: by((all) => Math.min(...all), 1) }, high: { x, y: by((all) => Math.max(...all), 1) } },
  };
}

function valuesAt({ x, y }: Points, i: number): readonly [number, number] {
  return [x[i]!, y[i]!];
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
