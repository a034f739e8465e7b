// Which numbers of a run are drawn together: one list for the pictures of a report and the charts of the dashboard.

import { shortNumber, twoDecimals } from "./format.ts";
import type { Colour } from "./svg-chart.ts";

/** Which of a run's logs a number stands in; habits are counted from its episodes. */
export type PanelSource = "metrics" | "timings" | "habits";

export interface PanelLine {
  readonly key: string;
  readonly colour: Colour;
  readonly label?: string;
  /** False for what moves by rule, not by chance. @default true */
  readonly smoothed?: boolean;
}

export interface PanelSpec {
  readonly title: string;
  readonly note?: string;
  readonly from: PanelSource;
  readonly lines: readonly PanelLine[];
  /** Ends of the y axis. @default what the numbers need */
  readonly y?: readonly [number, number];
  readonly format: (value: number) => string;
}

const wholePercent = (rate: number) => `${Math.round(100 * rate)} %`;

/** Is the training healthy, what does the model do, where does the time go. */
export const PANELS: readonly PanelSpec[] = [
  {
    title: "Spread of the reward",
    note: "what GRPO learns from",
    from: "metrics",
    lines: [{ key: "reward_std", colour: "ink" }],
    format: shortNumber,
  },
  {
    title: "Groups without spread",
    note: "they teach nothing",
    from: "metrics",
    lines: [{ key: "frac_reward_zero_std", colour: "orange" }],
    y: [0, 1],
    format: wholePercent,
  },
  {
    title: "Entropy",
    note: "how undecided the model is",
    from: "metrics",
    lines: [{ key: "entropy", colour: "purple" }],
    format: shortNumber,
  },
  {
    title: "Loss",
    note: "near 0 by design, not a measure of success",
    from: "metrics",
    lines: [{ key: "loss", colour: "ink" }],
    format: shortNumber,
  },
  { title: "Gradient norm", from: "metrics", lines: [{ key: "grad_norm", colour: "green" }], format: shortNumber },
  {
    title: "KL",
    note: "distance from the reference model",
    from: "metrics",
    lines: [{ key: "kl", colour: "blue" }],
    format: shortNumber,
  },
  {
    title: "Learning rate",
    from: "metrics",
    lines: [{ key: "learning_rate", colour: "grey", smoothed: false }],
    format: shortNumber,
  },
  {
    title: "Tokens an episode",
    note: "written by the model",
    from: "metrics",
    lines: [
      { key: "completions/max_length", colour: "grey", label: "max" },
      { key: "completions/mean_length", colour: "blue", label: "mean" },
      { key: "completions/min_length", colour: "grey", label: "min" },
    ],
    format: shortNumber,
  },
  {
    title: "Episodes cut short",
    note: "out of tokens",
    from: "metrics",
    lines: [{ key: "completions/clipped_ratio", colour: "orange" }],
    y: [0, 1],
    format: wholePercent,
  },
  {
    title: "Clipped tokens",
    note: "ratio outside 1 ± ε",
    from: "metrics",
    lines: [
      { key: "clip_ratio/region_mean", colour: "purple", label: "either" },
      { key: "clip_ratio/low_mean", colour: "blue", label: "below" },
      { key: "clip_ratio/high_mean", colour: "orange", label: "above" },
    ],
    format: wholePercent,
  },
  {
    title: "Actions an episode",
    from: "habits",
    lines: [
      { key: "DESCRIBE", colour: "blue", label: "describe" },
      { key: "SAMPLE", colour: "green", label: "sample" },
      { key: "QUERY", colour: "orange", label: "query" },
      { key: "ANSWER", colour: "purple", label: "answer" },
    ],
    format: twoDecimals,
  },
  {
    title: "Actions that went wrong",
    from: "habits",
    lines: [
      { key: "failed", colour: "orange", label: "failed" },
      { key: "repeated", colour: "blue", label: "repeated" },
      { key: "not_understood", colour: "purple", label: "not understood" },
    ],
    format: wholePercent,
  },
  {
    title: "Seconds a step",
    from: "timings",
    lines: [
      { key: "step_time", colour: "ink", label: "all" },
      { key: "sampling", colour: "blue", label: "sampling" },
      { key: "training", colour: "orange", label: "training" },
      { key: "environment", colour: "green", label: "environment" },
    ],
    format: twoDecimals,
  },
  {
    title: "Tokens a second",
    note: "sampled",
    from: "timings",
    lines: [{ key: "tokens_per_s", colour: "blue" }],
    format: shortNumber,
  },
];
