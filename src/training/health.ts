// Early warnings: what goes wrong most often in such trainings, told in words, with what to do about it, when it begins.
import type { GRPOConfig } from "./config.ts";
import type { Warning } from "./records.ts";

/** The metrics of a step, as far as there are any. */
type Metrics = Readonly<Record<string, number>>;

interface Sign {
  readonly code: string;
  /** What it is seen by; a step without it says nothing of it. */
  readonly metric: string;
  readonly holds: (metrics: Metrics, config: GRPOConfig) => boolean;
  readonly message: (metrics: Metrics, config: GRPOConfig) => string;
  readonly remedy: string;
}

const percent = (share: number | undefined) => `${Math.round(100 * (share ?? 0))} %`;

const SIGNS: readonly Sign[] = [
  {
    code: "truncated",
    metric: "completions/clipped_ratio",
    holds: (metrics) => (metrics["completions/clipped_ratio"] ?? 0) > 0.5,
    message: (metrics, { max_new_tokens, max_completion_length }) =>
      `${percent(metrics["completions/clipped_ratio"])} of the episodes were cut off at max_new_tokens ${max_new_tokens} or max_completion_length ${max_completion_length}: they cannot end with an answer`,
    remedy: "raise the limits, or warm the model up so that it closes its turns",
  },
  {
    code: "no_spread",
    metric: "frac_reward_zero_std",
    holds: (metrics) => metrics.frac_reward_zero_std === 1,
    message: () => "in no group did the episodes differ in reward: nothing was learned from this step",
    remedy:
      "if success is near 0, warm the model up or ask easier questions; if near 1, ask harder ones; or raise num_generations or temperature",
  },
  {
    code: "parse_failures",
    metric: "actions/parse_failure_rate",
    holds: (metrics) => (metrics["actions/parse_failure_rate"] ?? 0) > 0.5,
    message: (metrics) => `${percent(metrics["actions/parse_failure_rate"])} of what the model wrote was no action`,
    remedy: "warm it up on transcripts (`sqlenv warmup`), so that it knows the format",
  },
  {
    code: "empty_turns",
    metric: "actions/empty_rate",
    holds: (metrics) => (metrics["actions/empty_rate"] ?? 0) > 0.05,
    message: (metrics) =>
      `${percent(metrics["actions/empty_rate"])} of the turns were empty: the model stops acting instead of answering`,
    remedy:
      "lower the learning rate, or resume from an earlier checkpoint; reward questions that it was not fine-tuned on",
  },
  {
    code: "repeats",
    metric: "actions/repeat_rate",
    holds: (metrics) => (metrics["actions/repeat_rate"] ?? 0) > 0.3,
    message: (metrics) =>
      `${percent(metrics["actions/repeat_rate"])} of the actions repeat an earlier one: the model uses up its budget on what failed before`,
    remedy:
      "turn on error_hints and set end_after_failures to 3, set reward.repeat lower than -0.03, or fine-tune on episodes that repair an error",
  },
  {
    code: "entropy_collapsed",
    metric: "sampling/surprise",
    holds: (metrics) =>
      (metrics["sampling/surprise"] ?? 1) < 0.01 && (metrics["rewards/reward_correctness/mean"] ?? 1) < 0.9,
    message: (metrics) =>
      `the model hardly varies any more (${metrics["sampling/surprise"]!.toPrecision(2)} nats a token) while only ${percent(metrics["rewards/reward_correctness/mean"])} of the episodes are right`,
    remedy:
      "lower the learning rate, set entropy_coef to 0.001 or beta to 0.02, or start over from an earlier checkpoint",
  },
  {
    code: "unscorable",
    metric: "episodes/unscorable",
    holds: (metrics) => (metrics["episodes/unscorable"] ?? 0) > 0,
    message: (metrics) =>
      `${Math.ceil(metrics["episodes/unscorable"] ?? 0)} episodes could not be scored and were left out`,
    remedy: "episodes.jsonl has their errors",
  },
  {
    code: "nan",
    metric: "steps/skipped",
    holds: (metrics) => metrics["steps/skipped"] === 1,
    message: () => "the loss or its gradient was not a number: the step was left out and the weights are as they were",
    remedy: "if it happens again, lower the learning rate or max_grad_norm",
  },
];

/**
 * What is wrong at this step and was not before.
 * @returns the new warnings, and the codes of all that hold
 */
export function warningsAt(
  step: number,
  metrics: Metrics,
  config: GRPOConfig,
  warned: readonly string[],
): { readonly warnings: readonly Warning[]; readonly holding: readonly string[] } {
  const holding = SIGNS.filter(({ code, metric, holds }) =>
    metric in metrics ? holds(metrics, config) : warned.includes(code),
  );
  const warnings = holding
    .filter(({ code }) => !warned.includes(code))
    .map(({ code, message, remedy }) => ({ step, code, message: message(metrics, config), remedy }));
  return { warnings, holding: holding.map(({ code }) => code) };
}
