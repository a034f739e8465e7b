// The learning curve: the reward and its components, and success on held-out questions with 95 % bands.
import type { Decoding, Evaluation, EvaluationSplit, MetricLine } from "../../rl/run/records.ts";
import { escapeHtml, isNumber, shortNumber } from "./format.ts";
import { rewardLabel, rewardWeight } from "./reward-weights.ts";
import type { Point, Spread } from "./smooth.ts";
import { type Described, splitLabel } from "./split-label.ts";
import { type Colour, drawPanel, LINE_COLOURS, type Series, svgDocument } from "./svg-chart.ts";

export interface LearningCurveOptions {
  /** @default "Learning curve" */
  readonly title?: string;
  /** A line under the title, such as the model and the number of episodes. */
  readonly subtitle?: string;
  /** Of a run that is not about SQL. */
  readonly environment?: Described;
  /** The random player's evaluation, drawn as a horizontal line. */
  readonly random?: Evaluation | undefined;
  /** Weights of the reward functions, in the order they are logged; components are drawn times their weight. @default 1 each */
  readonly reward_weights?: readonly number[] | null | undefined;
  /** Omits style rules, background and headings, for a page that has them. @default false */
  readonly inline?: boolean;
}

const WIDTH = 900;
const BELOW_HEAD = 520;
const BUILT_IN = ["reward_correctness", "reward_progress", "reward_operational"];

/**
 * Draws metrics.jsonl as a self-contained SVG, also for a run without data yet.
 *
 * @example
 * const { metrics } = await readRun("runs/starter");
 * const svg = learningCurve(metrics, { title: "starter" });
 */
export function learningCurve(metrics: readonly MetricLine[], options: LearningCurveOptions = {}): string {
  const { title = "Learning curve", subtitle = "", random, reward_weights, environment, inline = false } = options;
  const last = metrics.reduce((most, { step }) => Math.max(most, isNumber(step) ? step : 0), 0);
  const x: readonly [number, number] = [0, Math.max(1, last)];
  const top = inline ? 8 : 70; // a page has its own headings
  const height = top + BELOW_HEAD;
  const head = inline
    ? ""
    : `<text class="sc-fill-ink" x="20" y="32" font-size="18" font-weight="700">${escapeHtml(title)}</text><text class="sc-dim" x="20" y="51">${escapeHtml(subtitle)}</text>`;
  const reward = drawPanel(
    {
      title: "Reward per episode",
      note: "the total and its weighted components; dots as logged, lines smoothed",
      x,
      format: shortNumber,
      series: rewardSeries(metrics, reward_weights),
    },
    { x: 20, y: top, width: WIDTH - 40, height: 250 },
  );
  const panels = (["unseen", "seen"] as const).map((split, i) =>
    drawPanel(
      {
        title: `Success on ${splitLabel(split, environment)}`,
        note: countNote(metrics, split),
        x,
        y: [0, 1],
        format: (rate) => `${Math.round(100 * rate)} %`,
        series: successSeries(metrics, split, random),
        empty: "no evaluation yet",
      },
      { x: 20 + i * (WIDTH / 2), y: top + 270, width: WIDTH / 2 - 30, height: 205 },
    ),
  );
  const foot = `<text class="sc-dim" x="20" y="${height - 16}">Held-out ${environment ? "tasks" : "questions"}. Greedy: most likely tokens. Sampled: as in training. Bands: 95 % intervals.</text>`;
  return svgDocument({ width: WIDTH, height, title, inline }, [head, reward, ...panels, foot].join(""));
}

/** The total and every logged component times its weight, so that they add up; the built-in ones first. */
function rewardSeries(metrics: readonly MetricLine[], weights: readonly number[] | null | undefined): Series[] {
  const names = new Set<string>();
  for (const line of metrics) {
    for (const key in line) if (key.startsWith("rewards/") && key.endsWith("/mean")) names.add(key.slice(8, -5));
  }
  const logged = [...names];
  const builtIn = BUILT_IN.filter((name) => names.has(name));
  const others = logged.filter((name) => !BUILT_IN.includes(name)).sort();
  const part = (name: string, i: number): Series => {
    const weight = rewardWeight(name, logged, weights);
    return {
      label: rewardLabel(name, weight),
      colour: LINE_COLOURS[i % LINE_COLOURS.length]!,
      points: pointsOf(metrics, `rewards/${name}/mean`).map(({ x, y }) => ({ x, y: y * weight })),
      smoothed: true,
    };
  };
  const total: Series = { label: "reward", colour: "ink", points: pointsOf(metrics, "reward"), smoothed: true };
  return [total, ...builtIn.map(part), ...others.map((name, i) => part(name, builtIn.length + i))];
}

/** How many questions the points stand for: "n = 96, between 24". */
export function countNote(metrics: readonly MetricLine[], split: EvaluationSplit): string {
  const counts = pointsOf(metrics, `eval_${split}/greedy/episodes`).map(({ y }) => y);
  const [first, last] = [counts[0], counts.at(-1)];
  const between = [...new Set(counts.slice(1, -1))].filter((n) => n !== first);
  if (first === undefined) return "";
  return between.length === 1 && first === last
    ? `n = ${first}, between ${between[0]}`
    : `n = ${[...new Set(counts)].join(", ")}`;
}

const DECODINGS: readonly (readonly [Decoding, Colour])[] = [
  ["greedy", "blue"],
  ["sampled", "orange"],
];

function successSeries(
  metrics: readonly MetricLine[],
  split: EvaluationSplit,
  random: Evaluation | undefined,
): Series[] {
  const lines = DECODINGS.map(([decoding, colour]): Series => {
    const key = `eval_${split}/${decoding}`;
    return {
      label: decoding,
      colour,
      points: pointsOf(metrics, `${key}/success_rate`),
      band: bandOf(metrics, `${key}/success_ci_low`, `${key}/success_ci_high`),
      dashed: decoding === "sampled",
    };
  });
  const level = random?.[split].sampled.success_rate ?? random?.[split].greedy.success_rate;
  if (isNumber(level)) lines.push({ label: "random", colour: "grey", points: [{ x: 0, y: level }], level: true });
  return lines;
}

/** One metric over steps; if a step has several lines, as at the end of a training, the last one counts. */
export function pointsOf(metrics: readonly MetricLine[], key: string): Point[] {
  const found = metrics.flatMap((line) =>
    isNumber(line[key]) && isNumber(line.step) ? [[line.step, { x: line.step, y: line[key] }] as const] : [],
  );
  return [...new Map(found).values()];
}

/** The band between two metrics over steps. */
export function bandOf(metrics: readonly MetricLine[], low: string, high: string): Spread[] {
  const highs = new Map(pointsOf(metrics, high).map(({ x, y }) => [x, y]));
  return pointsOf(metrics, low).flatMap(({ x, y }) => (highs.has(x) ? [{ x, low: y, high: highs.get(x)! }] : []));
}
