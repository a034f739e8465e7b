// Which metrics are drawn in one panel: shared by reports and the dashboard.

import { shortNumber, twoDecimals } from "./format.ts";
import type { Colour } from "./svg-chart.ts";

/** A run's log; "habits" are the action statistics counted from its episodes. */
export type PanelSource = "metrics" | "timings" | "habits";

export interface PanelLine {
  readonly key: string;
  readonly colour: Colour;
  readonly label?: string;
  /** False for scheduled values without noise. @default true */
  readonly smoothed?: boolean;
}

export interface PanelSpec {
  readonly title: string;
  readonly note?: string;
  readonly from: PanelSource;
  readonly lines: readonly PanelLine[];
  /** Range of the y axis. @default fits the data */
  readonly y?: readonly [number, number];
  readonly format: (value: number) => string;
}

const wholePercent = (rate: number) => `${Math.round(100 * rate)} %`;

/** Training health, the model's behaviour, and time. */
export const PANELS: readonly PanelSpec[] = [
  {
    title: "Reward std",
    note: "within groups; GRPO's learning signal",
    from: "metrics",
    lines: [{ key: "reward_std", colour: "ink" }],
    format: shortNumber,
  },
  {
    title: "Groups with zero std",
    note: "no learning signal",
    from: "metrics",
    lines: [{ key: "frac_reward_zero_std", colour: "orange" }],
    y: [0, 1],
    format: wholePercent,
  },
  {
    title: "Entropy",
    note: "uncertainty of the policy",
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
    note: "to the reference model",
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
    title: "Tokens per episode",
    note: "sampled by the model",
    from: "metrics",
    lines: [
      { key: "completions/max_length", colour: "grey", label: "max" },
      { key: "completions/mean_length", colour: "blue", label: "mean" },
      { key: "completions/min_length", colour: "grey", label: "min" },
    ],
    format: shortNumber,
  },
  {
    title: "Truncated episodes",
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
    title: "Actions per episode",
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
    title: "Failed actions",
    from: "habits",
    lines: [
      { key: "failed", colour: "orange", label: "failed" },
      { key: "repeated", colour: "blue", label: "repeated" },
      { key: "not_understood", colour: "purple", label: "not parsed" },
    ],
    format: wholePercent,
  },
  {
    title: "Seconds per step",
    from: "timings",
    lines: [
      { key: "step_time", colour: "ink", label: "total" },
      { key: "sampling", colour: "blue", label: "sampling" },
      { key: "training", colour: "orange", label: "training" },
      { key: "environment", colour: "green", label: "environment" },
    ],
    format: twoDecimals,
  },
  {
    title: "Tokens per second",
    note: "sampled",
    from: "timings",
    lines: [{ key: "tokens_per_s", colour: "blue" }],
    format: shortNumber,
  },
];
