// A training at a glance, in one picture: what the model does, the reward, and right answers in training and on held-out questions.
import type { MetricLine } from "../../rl/run/records.ts";
import type { ActionStats } from "./action-stats.ts";
import { behaviourChart } from "./behaviour-chart.ts";
import { bandOf, countNote, pointsOf } from "./learning-curve.ts";
import { drawPanel, type Series, svgDocument } from "./svg-chart.ts";

export interface TrainingBoardRecords {
  /** Per optimizer step, as `ActionStatsCounter` lists them. */
  readonly behaviour: readonly ActionStats[];
  /** Lines of metrics.jsonl so far. */
  readonly metrics: readonly MetricLine[];
  /** End of the x axes. */
  readonly total_steps: number;
}

const WIDTH = 900;
const AREAS = 250;
const PANELS = 270;

/**
 * Draws the board as a self-contained SVG, also before the first step.
 *
 * @example
 * const { metrics, habits } = await readRun("runs/starter");
 * const svg = trainingBoardSvg({ behaviour: habits, metrics, total_steps: 40 });
 */
export function trainingBoardSvg({ behaviour, metrics, total_steps }: TrainingBoardRecords): string {
  const x: readonly [number, number] = [0, Math.max(1, total_steps)];
  const box = { y: AREAS + 16, width: WIDTH / 2 - 30, height: PANELS - 32 };
  const areas = behaviourChart(behaviour, { inline: true, width: WIDTH, height: AREAS, total_steps });
  const reward = drawPanel(
    {
      title: "Reward per episode",
      note: "mean per step, and smoothed",
      x,
      series: [{ label: "reward", colour: "ink", points: pointsOf(metrics, "reward"), smoothed: true }],
      empty: "no step yet",
    },
    { ...box, x: 20 },
  );
  const success = drawPanel(
    {
      title: "Right answers",
      note: ["held-out", countNote(metrics, "unseen")].filter(Boolean).join(", "),
      x,
      y: [0, 1],
      format: (rate) => `${Math.round(100 * rate)} %`,
      series: successSeries(metrics),
      empty: "not measured yet",
    },
    { ...box, x: WIDTH / 2 + 10 },
  );
  const sized = areas.replace("<svg ", `<svg width="${WIDTH}" height="${AREAS}" `); // nested, so its size must be given
  return svgDocument({ width: WIDTH, height: AREAS + PANELS, title: "The training so far" }, sized + reward + success);
}

/** Training episodes are sampled; held-out questions are decoded greedily. */
function successSeries(metrics: readonly MetricLine[]): Series[] {
  const heldOut = (split: "unseen" | "seen") => `eval_${split}/greedy`;
  const unseen = heldOut("unseen");
  return [
    {
      label: "training",
      colour: "grey",
      points: pointsOf(metrics, "rewards/reward_correctness/mean"),
      smoothed: true,
    },
    { label: "seen", colour: "orange", points: pointsOf(metrics, `${heldOut("seen")}/success_rate`), dashed: true },
    {
      label: "unseen",
      colour: "blue",
      points: pointsOf(metrics, `${unseen}/success_rate`),
      band: bandOf(metrics, `${unseen}/success_ci_low`, `${unseen}/success_ci_high`),
    },
  ];
}
