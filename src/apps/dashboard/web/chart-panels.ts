// The charts' panels and their lines, for one run or several overlaid.

import type { Decoding, EvaluationSplit } from "../../../rl/run/records.ts";
import { shortNumber } from "../../reports/format.ts";
import { PANELS, type PanelSource, type PanelSpec } from "../../reports/metric-panels.ts";
import { rewardLabel, rewardWeight } from "../../reports/reward-weights.ts";
import { splitLabel } from "../../reports/split-label.ts";
import type { ChartLine, ChartOptions } from "./chart.ts";
import { type Grouping, groupRuns, meanLine, type RunGroup } from "./run-groups.ts";
import type { Points, RunModel, XAxis } from "./run-model.ts";
import { runName } from "./run-names.ts";
import { trainingSuccessMetric } from "./run-text.ts";

/** A chart's options, and its lines for a run. */
export interface Panel {
  readonly group: string;
  readonly options: Pick<ChartOptions, "title" | "note" | "format" | "y">;
  lines(run: RunModel, axis: XAxis): ChartLine[];
}

export const GROUPS = ["Is it learning?", "Is it healthy?", "What does it do?", "Time", "Other metrics"] as const;

const GROUP_OF: Readonly<Record<PanelSource, string>> = { metrics: GROUPS[1], habits: GROUPS[2], timings: GROUPS[3] };
const RUN_COLOURS = ["--blue", "--orange", "--green", "--purple", "--yellow", "--ink"];
const wholePercent = (rate: number) => `${Math.round(100 * rate)} %`;

/** Reward and its components, the built-in ones first. */
export const REWARD: Panel = {
  group: GROUPS[0],
  options: { title: "Reward", note: "with its weighted components", format: shortNumber },
  lines(run, axis) {
    const logged = Object.keys(run.logs.metrics).flatMap((key) => /^rewards\/(.*)\/mean$/.exec(key)?.[1] ?? []);
    const weights = run.summary.config?.reward_weights as readonly number[] | null | undefined;
    const parts = [...logged].sort((a, b) => rank(a) - rank(b));
    return [
      { label: "total", colour: "--ink", points: run.points("metrics", "reward", axis) },
      ...parts.map((name, i) => {
        const weight = rewardWeight(name, logged, weights);
        const { x, y } = run.points("metrics", `rewards/${name}/mean`, axis);
        return {
          label: rewardLabel(name, weight),
          colour: RUN_COLOURS[i % RUN_COLOURS.length]!,
          points: { x, y: y.map((value) => value * weight) },
        };
      }),
    ];
  },
};

function rank(name: string): number {
  const at = ["reward_correctness", "reward_progress", "reward_operational"].indexOf(name);
  return at < 0 ? 9 : at;
}

/** Success in evaluations with intervals, and the random baseline. */
export function successPanel(split: EvaluationSplit, decodings: readonly Decoding[] = ["greedy", "sampled"]): Panel {
  const title = split === "unseen" ? "Success on unseen databases" : "Success on seen databases";
  return {
    group: GROUPS[0],
    options: { title, note: "with 95 % intervals", format: wholePercent, y: [0, 1] },
    lines: (run, axis) => [
      ...decodings.map((decoding, i) =>
        successLine(run, axis, split, decoding, i === 0 ? "--good" : "--orange", decoding),
      ),
      ...randomLine(run, axis, split),
    ],
  };
}

/** Both splits in one chart: does it generalize? */
export const GENERALIZATION: Panel = {
  group: GROUPS[0],
  options: { title: "Right answers, by step", format: wholePercent, y: [0, 1] },
  lines: (run, axis) => [
    successLine(run, axis, "unseen", "greedy", "--good", splitLabel("unseen", run.summary.environment)),
    successLine(run, axis, "seen", "greedy", "--blue", splitLabel("seen", run.summary.environment)),
    {
      label: "training episodes",
      colour: "--orange",
      points: run.points("metrics", trainingSuccessMetric(run.summary), axis),
    },
    ...randomLine(run, axis, "unseen"),
  ],
};

function successLine(
  run: RunModel,
  axis: XAxis,
  split: EvaluationSplit,
  decoding: Decoding,
  colour: string,
  label: string,
): ChartLine {
  const of = (what: string) => run.points("metrics", `eval_${split}/${decoding}/success_${what}`, axis);
  return { label, colour, points: of("rate"), smoothed: false, band: { low: of("ci_low"), high: of("ci_high") } };
}

function randomLine(run: RunModel, axis: XAxis, split: EvaluationSplit): ChartLine[] {
  const rate = run.summary.random?.[split].greedy.success_rate ?? null;
  const { x } = run.points("metrics", "reward", axis);
  const last = x.at(-1);
  if (rate === null || last === undefined) return [];
  const end = axis === "step" ? Math.max(last, run.summary.total_steps ?? 0) : last;
  return [
    { label: "random", colour: "--dim", points: { x: [0, end], y: [rate, rate] }, smoothed: false, dashed: true },
  ];
}

const STANDARD: readonly Panel[] = [REWARD, successPanel("unseen"), successPanel("seen"), ...PANELS.map(panelOf)];

function panelOf({ from, lines, title, note, format, y }: PanelSpec): Panel {
  return {
    group: GROUP_OF[from],
    options: { title, ...(note ? { note } : {}), format, ...(y ? { y } : {}) },
    lines: (run, axis) =>
      lines
        .map(({ key, colour, label = "", smoothed = true }) => ({
          label,
          colour: `--${colour}`,
          smoothed,
          points: run.points(from, key, axis),
        }))
        .filter(({ points }) => points.x.length > 0),
  };
}

const DRAWN = new Set([
  "step",
  "epoch",
  "num_tokens",
  "reward",
  ...PANELS.flatMap(({ lines }) => lines.map(({ key }) => key)),
]);

/** Every panel with data for a run; metrics without a panel of their own get one each. */
export function panelsOf(run: RunModel): Panel[] {
  const others = Object.keys(run.logs.metrics)
    .filter((key) => !DRAWN.has(key) && !key.startsWith("eval_") && !/^rewards\/.*\/mean$/.test(key))
    .sort();
  return [...STANDARD, ...others.map(otherPanel)].filter((panel) =>
    panel.lines(run, "step").some(({ points, dashed }) => !dashed && points.y.some((value) => value !== 0)),
  );
}

function otherPanel(key: string): Panel {
  return {
    group: GROUPS[4],
    options: { title: key, format: shortNumber },
    lines: (run, axis) => [{ label: "", colour: "--blue", points: run.points("metrics", key, axis) }],
  };
}

/** The first line of a panel for each run, in the run's color; with a grouping, the mean of each group. */
export function overlaid(
  panel: Panel,
  runs: readonly RunModel[],
  axis: XAxis,
  grouping: Grouping | null = null,
): ChartLine[] {
  if (runs.length === 1) return panel.lines(runs[0]!, axis);
  if (grouping)
    return groupLines(
      panel,
      groupRuns(runs, grouping, ({ summary }) => summary),
      axis,
    );
  const drawn: { readonly id: string; readonly key: string }[] = [];
  return runs.flatMap((run, i) => {
    const [first] = panel.lines(run, axis);
    if (!first) return [];
    const key = JSON.stringify(first.points);
    const same = drawn.find((other) => other.key === key); // drawn later, it would hide the other
    drawn.push({ id: run.id, key });
    const name = runName(run.id);
    return [{ ...first, label: same ? `${name} (same as ${runName(same.id)})` : name, colour: runColour(i) }];
  });
}

/** One line per group: its only run's, or the mean of its runs. */
function groupLines(panel: Panel, groups: readonly RunGroup<RunModel>[], axis: XAxis): ChartLine[] {
  return groups.flatMap(({ label, runs }, i) => {
    const lines = runs.flatMap((run) => {
      const [line] = panel.lines(run, axis);
      return line && line.points.x.length > 0 ? [{ line, steps: panel.lines(run, "step")[0]!.points.x, run }] : [];
    });
    if (lines.length === 0) return [];
    const [{ line, run }] = lines as [(typeof lines)[number]];
    const shown =
      lines.length === 1
        ? { ...line, label: runName(run.id) }
        : meanLine(lines, `${label}, mean of ${lines.length} runs`);
    return [{ ...shown, colour: runColour(i) }];
  });
}

export function runColour(i: number): string {
  return RUN_COLOURS[i % RUN_COLOURS.length]!;
}

export type { Points };
