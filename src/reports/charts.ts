// The smaller charts of a run's page: is the training healthy, what does the model do, where does the time go.
import type { MetricLine, TimingLine } from "../training/records.ts";
import { type Colour, drawPanel, type Panel, type Series, svgDocument } from "./chart.ts";
import type { Habits } from "./habits.ts";
import { pointsOf } from "./learning-curve.ts";
import { twoDecimals } from "./words.ts";

const BOX = { x: 4, y: 4, width: 412, height: 196 };

const wholePercent = (rate: number) => `${Math.round(100 * rate)} %`;

/** Every chart there are numbers for, as SVGs for a page of `htmlPage`. */
export function trainingCharts(
  metrics: readonly MetricLine[],
  timings: readonly TimingLine[] = [],
  habits: readonly Habits[] = [],
): string[] {
  const line = (key: string, colour: Colour, label = "", from: readonly MetricLine[] = metrics): Series => ({
    label,
    colour,
    points: pointsOf(from, key),
    smoothed: true,
  });
  const [timed, acted] = [asMetrics(timings), asMetrics(habits)];
  const panels: Panel[] = [
    { title: "Spread of the reward", note: "what GRPO learns from", series: [line("reward_std", "ink")] },
    {
      title: "Groups without spread",
      note: "they teach nothing",
      series: [line("frac_reward_zero_std", "orange")],
      y: [0, 1],
      format: wholePercent,
    },
    { title: "Entropy", note: "how undecided the model is", series: [line("entropy", "purple")] },
    { title: "Loss", note: "near 0 by design, not a measure of success", series: [line("loss", "ink")] },
    { title: "Gradient norm", series: [line("grad_norm", "green")] },
    { title: "KL", note: "distance from the reference model", series: [line("kl", "blue")] },
    { title: "Learning rate", series: [{ ...line("learning_rate", "grey"), smoothed: false }] },
    {
      title: "Tokens an episode",
      note: "written by the model",
      series: [
        line("completions/max_length", "grey", "max"),
        line("completions/mean_length", "blue", "mean"),
        line("completions/min_length", "grey", "min"),
      ],
    },
    {
      title: "Episodes cut short",
      note: "out of tokens",
      series: [line("completions/clipped_ratio", "orange")],
      y: [0, 1],
      format: wholePercent,
    },
    {
      title: "Clipped tokens",
      note: "ratio outside 1 ± ε",
      series: [line("clip_ratio/region_mean", "purple")],
      format: wholePercent,
    },
    {
      title: "Actions an episode",
      series: [
        line("DESCRIBE", "blue", "describe", acted),
        line("SAMPLE", "green", "sample", acted),
        line("QUERY", "orange", "query", acted),
        line("ANSWER", "purple", "answer", acted),
      ],
      format: twoDecimals,
    },
    {
      title: "Actions that went wrong",
      series: [
        line("failed", "orange", "failed", acted),
        line("repeated", "blue", "repeated", acted),
        line("not_understood", "purple", "not understood", acted),
      ],
      format: wholePercent,
    },
    {
      title: "Seconds a step",
      series: [
        line("step_time", "ink", "all", timed),
        line("sampling", "blue", "sampling", timed),
        line("training", "orange", "training", timed),
        line("environment", "green", "environment", timed),
      ],
      format: twoDecimals,
    },
    { title: "Tokens a second", note: "sampled", series: [line("tokens_per_s", "blue", "", timed)] },
  ];
  return panels.filter(worthDrawing).map(drawAlone);
}

/** One panel as an SVG of its own. */
export function drawAlone(panel: Panel): string {
  const [width, height] = [BOX.width + 8, BOX.height + 8];
  return svgDocument({ width, height, title: panel.title, inline: true }, drawPanel(panel, BOX));
}

/** A chart of nothing, or of nothing but zeros, says nothing. */
function worthDrawing({ series }: Panel): boolean {
  return series.some(({ points }) => points.some(({ y }) => y !== 0));
}

function asMetrics(lines: readonly (TimingLine | Habits)[]): MetricLine[] {
  return lines.map((line) => ({ ...line }));
}
