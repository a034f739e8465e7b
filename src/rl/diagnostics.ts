// Warnings about the most common failures of RL trainings, reported when they begin, each with a remedy.
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { Warning } from "./run/records.ts";

/** The metrics of a step. */
type Metrics = Readonly<Record<string, number>>;

interface Sign {
  readonly code: string;
  /** The metric that shows the failure; steps without it are ignored. Null if only the settings matter. */
  readonly metric: string | null;
  readonly holds: (metrics: Metrics, config: GRPOConfig) => boolean;
  /**
   * Number of consecutive steps in which the condition must hold: a single small batch may meet it by chance. @default
   * 1
   */
  readonly patience?: number;
  readonly message: (metrics: Metrics, config: GRPOConfig) => string;
  readonly remedy: (metrics: Metrics, config: GRPOConfig) => string;
  /** Added to the message: one of the episodes that it is about. */
  readonly example?: (episodes: readonly WarnedEpisode[]) => string | undefined;
}

/** What a warning says of an episode. */
export type WarnedEpisode = Pick<EpisodeRecord, "question_id" | "error" | "correctness" | "metrics">;

/**
 * Consecutive steps in which a condition must not hold before it can be reported again: numbers near a threshold cross
 * it often.
 */
export const QUIET_STEPS = 10;
/** Patience for conditions that a few steps may meet by chance. */
const A_FEW = 3;
const A_WHILE = 10;

const percent = (share: number | undefined) => `${Math.round(100 * (share ?? 0))} %`;
const of = (metrics: Metrics, name: string) => metrics[name] ?? 0;
const uniformShare = (metrics: Metrics) => of(metrics, "groups/all_right") + of(metrics, "groups/all_wrong");

const SIGNS: readonly Sign[] = [
  {
    code: "filtered_sampling",
    metric: null,
    holds: (_, { top_p, top_k, min_p }) => top_p < 1 || top_k > 0 || (min_p ?? 0) > 0,
    message: (_, config) =>
      `with ${filtersOf(config)}, episodes are sampled from another distribution than the one that is learned: importance ratios and log-probs are of all tokens, so the gradient is biased towards what the filter keeps`,
    remedy: () => "set top_p to 1, top_k to 0 and min_p to null for training; temperature is taken into account",
  },
  {
    code: "truncated",
    metric: "completions/clipped_ratio",
    holds: (metrics) => of(metrics, "completions/clipped_ratio") > 0.5,
    message: (metrics, { max_new_tokens, max_completion_length }) =>
      `${percent(metrics["completions/clipped_ratio"])} of the episodes were cut off at max_new_tokens ${max_new_tokens} or max_completion_length ${max_completion_length}: they cannot end with an answer`,
    remedy: () => "raise the limits, or fine-tune the model first (sft_steps) so that it closes its turns",
  },
  {
    code: "no_spread",
    metric: "frac_reward_zero_std",
    // Self-distillation learns from groups without spread; dynamic_sampling drops those that are all right or all wrong.
    holds: (metrics) =>
      metrics["groups/kept"] === 0 || (metrics.frac_reward_zero_std === 1 && of(metrics, "distillation/groups") === 0),
    message: (metrics) =>
      metrics["groups/kept"] === 0
        ? `no group had right and wrong episodes, of ${Math.round(of(metrics, "groups/asked"))} that were asked: nothing was learned from this step`
        : "in no group did the episodes differ in reward: nothing was learned from this step",
    remedy: () =>
      "if success is near 0, fine-tune the model first (sft_steps) or ask easier questions; if near 1, ask harder ones; or raise num_generations or temperature",
  },
  {
    code: "uniform_groups",
    metric: "groups/all_right",
    holds: (metrics) => uniformShare(metrics) > 0.8,
    patience: A_WHILE,
    message: (metrics, { dynamic_sampling }) =>
      `for ${A_WHILE} steps, more than 80 % of the groups had no spread in correctness; now ${percent(metrics["groups/all_right"])} are all right and ${percent(metrics["groups/all_wrong"])} all wrong: ${dynamic_sampling > 0 ? "most episodes are played for nothing" : "only shaping rewards distinguish their episodes"}`,
    remedy: (metrics, { dynamic_sampling, self_distillation }) =>
      [
        of(metrics, "groups/all_right") > of(metrics, "groups/all_wrong")
          ? "ask harder questions (difficulty_filter), set skip_solved to 2"
          : "fine-tune the model first (sft_steps, self_taught_rounds), ask easier questions (difficulty_filter, easy_steps)",
        ...(dynamic_sampling > 0 || self_distillation > 0 ? [] : ["set dynamic_sampling to 1"]),
        "or raise num_generations or temperature",
      ].join(", "),
  },
  {
    code: "parse_failures",
    metric: "actions/parse_failure_rate",
    holds: (metrics) => of(metrics, "actions/parse_failure_rate") > 0.5,
    message: (metrics) => `${percent(metrics["actions/parse_failure_rate"])} of what the model wrote was no action`,
    remedy: () => "fine-tune it first (sft_steps), or give it examples (shots), so that it knows the format",
  },
  {
    code: "empty_turns",
    metric: "actions/empty_rate",
    holds: (metrics) => of(metrics, "actions/empty_rate") > 0.05,
    message: (metrics) =>
      `${percent(metrics["actions/empty_rate"])} of the turns were empty: the model stops acting instead of answering`,
    remedy: () =>
      "lower learning_rate, or resume from an earlier checkpoint; reward questions that it was not fine-tuned on",
  },
  {
    code: "early_last",
    metric: "actions/early_last_rate",
    holds: (metrics) => of(metrics, "actions/early_last_rate") > 0.1,
    message: (metrics) =>
      `${percent(metrics["actions/early_last_rate"])} of the actions answer with @last before any query has worked: there is nothing to answer with`,
    remedy: () =>
      "this often ends within some steps; if not, show it whole episodes (shots, sft_steps), or turn answer_last off",
  },
  {
    code: "describes_everything",
    metric: "episodes/describes_everything",
    holds: (metrics) => of(metrics, "episodes/describes_everything") > 0.5,
    patience: A_FEW,
    message: (metrics, { step_budget }) =>
      `${percent(metrics["episodes/describes_everything"])} of the episodes spend most of their actions on describing most of the tables, out of a budget of ${step_budget}`,
    remedy: (_, { describe_many }) =>
      describe_many
        ? "lower reward.new_info, raise step_budget, or fine-tune on episodes that describe only what they query"
        : "turn on describe_many, lower reward.new_info, raise step_budget, or fine-tune on episodes that describe only what they query",
  },
  {
    code: "repeats",
    metric: "actions/repeat_rate",
    holds: (metrics) => of(metrics, "actions/repeat_rate") > 0.3 || of(metrics, "episodes/repeats_to_the_end") > 0.3,
    message: (metrics) =>
      `${percent(metrics["actions/repeat_rate"])} of the actions repeat an earlier one, and ${percent(metrics["episodes/repeats_to_the_end"])} of the episodes end that way: the model uses up its budget on what failed before`,
    remedy: (_, { error_hints, end_after_failures, reward }) =>
      [
        ...(error_hints ? [] : ["turn on error_hints"]),
        ...(end_after_failures === null ? ["set end_after_failures to 3"] : []),
        `set reward.repeat lower than ${reward.repeat}`,
        "or fine-tune on episodes that repair an error",
      ].join(", "),
  },
  {
    code: "answers_cut_off",
    metric: "episodes/answer_cut_off",
    holds: (metrics) => of(metrics, "episodes/answer_cut_off") > 0.1,
    patience: A_FEW, // one group with a long answer is enough to raise a step's share
    message: (metrics, { max_new_tokens, max_completion_length }) =>
      `${percent(metrics["episodes/answer_cut_off"])} of the episodes were cut off within their answer, at max_new_tokens ${max_new_tokens} or max_completion_length ${max_completion_length}`,
    remedy: (_, { answer_last }) =>
      answer_last
        ? "raise these limits, or leave out questions with long answers"
        : "turn on answer_last, which answers with a result instead of copying it; or raise these limits",
  },
  {
    code: "answers_miscopied",
    metric: "episodes/answer_miscopied",
    holds: (metrics) => of(metrics, "episodes/answer_miscopied") > 0.15,
    patience: A_FEW,
    message: (metrics) =>
      `${percent(metrics["episodes/answer_miscopied"])} of the episodes answer wrong although a query returned the right values: miscopied, cut off, in another order, or from another query`,
    remedy: (_, { answer_last }) =>
      answer_last
        ? "read some in episodes.jsonl; fine-tune on episodes that end with ANSWER: @last right after the right query"
        : "turn on answer_last, which answers with a result instead of copying it; or raise max_new_tokens",
  },
  {
    code: "entropy_collapsed",
    metric: "sampling/surprise",
    holds: (metrics) =>
      (metrics["sampling/surprise"] ?? 1) < 0.01 && (metrics["rewards/reward_correctness/mean"] ?? 1) < 0.9,
    message: (metrics) =>
      `entropy has collapsed to ${metrics["sampling/surprise"]!.toPrecision(2)} nats per token while only ${percent(metrics["rewards/reward_correctness/mean"])} of the episodes are right: the model hardly tries anything new`,
    remedy: () =>
      "lower learning_rate, set entropy_coef to 0.001 or beta to 0.02, or resume from an earlier checkpoint",
  },
  {
    code: "altered_history",
    metric: "environment/altered_history",
    holds: (metrics) => of(metrics, "environment/altered_history") > 0,
    message: (metrics) =>
      `${percent(metrics["environment/altered_history"])} of the agent's calls had replies in their history that the model did not give there: each began a new segment, and the model reads those replies as text`,
    remedy: () =>
      "send the model's messages back as they came, or ignore this if the agent shortens its history on purpose",
    example: (episodes) => episodes.find(({ metrics }) => (metrics?.altered_history ?? 0) > 0)?.question_id,
  },
  {
    code: "sampling_mismatch",
    metric: "sampling/sampling_logp_difference/max",
    // On this machine the arithmetic is known; on a server, sampler and trainer may be different programs.
    holds: (metrics, { engine }) => engine !== null && of(metrics, "sampling/sampling_logp_difference/max") > 0.02,
    message: (metrics) =>
      `the server's sampler and its trainer do not compute the same model: their log-probs differ by up to ${of(metrics, "sampling/sampling_logp_difference/max").toPrecision(2)}, so that episodes are learned from as if another model had played them`,
    remedy: () =>
      "look for LoRA dropout, top-k defaults, another precision or old weights in the server's sampler; compare docs/distributed.md",
  },
  {
    code: "unscorable",
    metric: "episodes/unscorable",
    holds: (metrics) => of(metrics, "episodes/unscorable") > 0,
    message: (metrics) =>
      `${Math.ceil(of(metrics, "episodes/unscorable"))} episodes could not be scored and were left out`,
    remedy: () => "episodes.jsonl has their errors",
    example: (episodes) => {
      const one = episodes.find(({ error }) => error !== null) ?? episodes.find(isUnscored);
      return one && `${one.question_id}: ${cut(one.error ?? "its reward is null")}`;
    },
  },
  {
    code: "nan",
    metric: "steps/skipped",
    holds: (metrics) => metrics["steps/skipped"] === 1,
    message: () => "the loss or its gradient was not a number: the step was left out and the weights are as they were",
    remedy: () => "if it happens again, lower learning_rate or max_grad_norm",
  },
];

/** Characters of an error in a warning. */
const MAX_ERROR = 300;

function cut(text: string): string {
  return text.length <= MAX_ERROR ? text : `${text.slice(0, MAX_ERROR)}…`;
}

function isUnscored({ correctness }: WarnedEpisode): boolean {
  return correctness === null;
}

/** The state of the warnings in a checkpoint. */
export interface Health {
  /** Codes of reported warnings whose condition has not been absent for QUIET_STEPS since. */
  readonly warned: readonly string[];
  /**
   * By code: the number of consecutive steps in which its condition held; negative for steps without it since it was
   * reported. @default none
   */
  readonly streaks?: Readonly<Record<string, number>> | undefined;
}

/**
 * New warnings at this step. Each is reported once, when it has held for its patience, and again only after QUIET_STEPS
 * without it. Before the first step there are no metrics, and only the settings are checked.
 */
export function warningsAt(
  step: number,
  metrics: Metrics,
  config: GRPOConfig,
  { warned, streaks = {} }: Health,
  episodes: readonly WarnedEpisode[] = [],
): Required<Health> & { readonly warnings: readonly Warning[] } {
  const reported = new Set(warned);
  const counts = { ...streaks };
  const warnings: Warning[] = [];
  for (const { code, metric, holds, patience = 1, message, remedy, example } of SIGNS) {
    if (metric !== null && !(metric in metrics)) continue;
    const held = counts[code] ?? 0;
    delete counts[code];
    if (holds(metrics, config)) {
      if (!reported.has(code)) counts[code] = Math.max(0, held) + 1;
      if (reported.has(code) || counts[code]! < patience) continue;
      delete counts[code];
      reported.add(code);
      const one = example?.(episodes);
      const said = message(metrics, config) + (one === undefined ? "" : `; the first is ${one}`);
      warnings.push({ step, code, message: said, remedy: remedy(metrics, config) });
    } else if (reported.has(code)) {
      if (held - 1 > -QUIET_STEPS) counts[code] = held - 1;
      else reported.delete(code);
    }
  }
  return { warnings, warned: [...reported], streaks: counts };
}

function filtersOf({ top_p, top_k, min_p }: GRPOConfig): string {
  return [
    ...(top_p < 1 ? [`top_p ${top_p}`] : []),
    ...(top_k > 0 ? [`top_k ${top_k}`] : []),
    ...(min_p ? [`min_p ${min_p}`] : []),
  ].join(" and ");
}
