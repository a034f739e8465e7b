// Which lines a chart has, for one run or for several laid over each other.

import type { Manner, Place } from "../../../rl/run/records.ts";
import { shortNumber } from "../../reports/format.ts";
import { PANELS, type PanelSource, type PanelSpec } from "../../reports/metric-panels.ts";
import type { ChartLine, ChartOptions } from "./chart.ts";
import type { Points, RunModel, XAxis } from "./run-model.ts";

/** A chart to be: what it is called and how its lines come from a run. */
export interface Panel {
  readonly group: string;
  readonly options: Pick<ChartOptions, "title" | "note" | "format" | "y">;
  lines(run: RunModel, axis: XAxis): ChartLine[];
}

export const GROUPS = [
  "Is it learning?",
  "Is it healthy?",
  "What does it do?",
  "Where does the time go?",
  "Everything else",
] as const;

const GROUP_OF: Readonly<Record<PanelSource, string>> = { metrics: GROUPS[1], habits: GROUPS[2], timings: GROUPS[3] };
const RUN_COLOURS = ["--blue", "--orange", "--green", "--purple", "--yellow", "--ink"];
const wholePercent = (rate: number) => `${Math.round(100 * rate)} %`;

/** Reward and the parts it is made of, those of the package first. */
export const REWARD: Panel = {
  group: GROUPS[0],
  options: { title: "Reward", note: "of a training episode, and its parts", format: shortNumber },
  lines(run, axis) {
    const parts = Object.keys(run.logs.metrics)
      .filter((key) => key.startsWith("rewards/") && key.endsWith("/mean"))
      .sort((a, b) => rank(a) - rank(b));
    return [
      { label: "total", colour: "--ink", points: run.points("metrics", "reward", axis) },
      ...parts.map((key, i) => ({
        label: key
          .slice(8, -5)
          .replace(/^reward_/, "")
          .replaceAll("_", " "),
        colour: RUN_COLOURS[i % RUN_COLOURS.length]!,
        points: run.points("metrics", key, axis),
      })),
    ];
  },
};

function rank(key: string): number {
  const at = ["correctness", "progress", "operational"].findIndex((part) => key.includes(`reward_${part}/`));
  return at < 0 ? 9 : at;
}

/** Success in evaluations with its interval, and the random player's as a level. */
export function successPanel(place: Place, manners: readonly Manner[] = ["greedy", "sampled"]): Panel {
  const title = place === "unseen" ? "Success on unseen databases" : "Success on seen databases";
  return {
    group: GROUPS[0],
    options: { title, note: "with 95 % intervals", format: wholePercent, y: [0, 1] },
    lines: (run, axis) => [
      ...manners.map((manner, i) => successLine(run, axis, place, manner, i === 0 ? "--good" : "--orange", manner)),
      ...randomLine(run, axis, place),
    ],
  };
}

/** Both places in one chart: does what is learned carry over? */
export const CARRIES_OVER: Panel = {
  group: GROUPS[0],
  options: { title: "Right answers, by step", format: wholePercent, y: [0, 1] },
  lines: (run, axis) => [
    successLine(run, axis, "unseen", "greedy", "--good", "unseen databases"),
    successLine(run, axis, "seen", "greedy", "--blue", "seen databases"),
    {
      ...{ label: "while training", colour: "--orange" },
      points: run.points("metrics", "rewards/reward_correctness/mean", axis),
    },
    ...randomLine(run, axis, "unseen"),
  ],
};

function successLine(
  run: RunModel,
  axis: XAxis,
  place: Place,
  manner: Manner,
  colour: string,
  label: string,
): ChartLine {
  const of = (what: string) => run.points("metrics", `eval_${place}/${manner}/success_${what}`, axis);
  return { label, colour, points: of("rate"), smoothed: false, band: { low: of("ci_low"), high: of("ci_high") } };
}

function randomLine(run: RunModel, axis: XAxis, place: Place): ChartLine[] {
  const rate = run.summary.random?.[place].greedy.success_rate ?? null;
  const { x } = run.points("metrics", "reward", axis);
  const last = x.at(-1);
  if (rate === null || last === undefined) return [];
  return [
    { label: "random", colour: "--dim", points: { x: [0, last], y: [rate, rate] }, smoothed: false, dashed: true },
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
          ...{ label, colour: `--${colour}`, smoothed },
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

/** Every panel a run has numbers for; metrics nobody thought of here get one each. */
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

/** The first line of a panel for each run, in the run's colour. */
export function overlaid(panel: Panel, runs: readonly RunModel[], axis: XAxis): ChartLine[] {
  if (runs.length === 1) return panel.lines(runs[0]!, axis);
  return runs.flatMap((run, i) => {
    const [first] = panel.lines(run, axis);
    return first ? [{ ...first, label: run.id, colour: runColour(i) }] : [];
  });
}

export function runColour(i: number): string {
  return RUN_COLOURS[i % RUN_COLOURS.length]!;
}

export type { Points };
