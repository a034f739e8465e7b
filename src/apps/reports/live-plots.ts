// Live plots of a running training: reward on the left, success on training and evaluation questions on the right.
import type { RewardPoint, SuccessPoint } from "../../rl/live-visualization.ts";
import { drawPanel, svgDocument } from "./svg-chart.ts";

export interface LivePlots {
  readonly rewards: readonly RewardPoint[];
  readonly success: readonly SuccessPoint[];
  /** End of the x axes. */
  readonly total_steps: number;
}

const [WIDTH, HEIGHT] = [900, 290];

/**
 * Both plots as one self-contained SVG, with a placeholder while there is no data.
 *
 * @example
 * const rewards = [{ step: 1, reward: 0.2 }, { step: 2, reward: 0.3 }];
 * const svg = livePlots({ rewards, success: [], total_steps: 100 });
 */
export function livePlots({ rewards, success, total_steps }: LivePlots): string {
  const x: readonly [number, number] = [0, Math.max(1, total_steps)];
  const box = { y: 20, width: WIDTH / 2 - 30, height: HEIGHT - 36 };
  const points = rewards.map(({ step, reward }) => ({ x: step, y: reward }));
  const rates = (split: "train" | "eval") => success.map((point) => ({ x: point.step, y: point[split] }));
  const reward = drawPanel(
    {
      title: "Reward per episode",
      note: "mean per step, and smoothed",
      x,
      series: [{ label: "reward", colour: "ink", points, smoothed: true }],
      empty: "no step yet",
    },
    { ...box, x: 20 },
  );
  const split = drawPanel(
    {
      title: "Right answers",
      note: "a few greedy episodes each",
      x,
      y: [0, 1],
      format: (rate) => `${Math.round(100 * rate)} %`,
      series: [
        { label: "train", colour: "blue", points: rates("train") },
        { label: "eval", colour: "orange", points: rates("eval"), dashed: true },
      ],
      empty: "not measured yet",
    },
    { ...box, x: WIDTH / 2 + 10 },
  );
  return svgDocument({ width: WIDTH, height: HEIGHT, title: "The training so far" }, reward + split);
}
