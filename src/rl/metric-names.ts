// The meaning of every number in metrics.jsonl. Names are TRL's if it has the same metric; {name} is a reward function.

/** Name patterns and their meanings, in the order of the reference. */
export const METRIC_MEANINGS: Readonly<Record<string, string>> = {
  step: "optimizer steps done",
  epoch: "passes over the training questions",
  num_tokens: "tokens of prompts and completions since the beginning",
  loss: "near 0 by construction while each step learns from fresh episodes: watch the reward instead",
  grad_norm: "norm of the gradient before it is clipped to max_grad_norm",
  learning_rate: "learning rate of this step",
  reward: "mean over the episodes of the weighted sum of all reward functions",
  reward_std: "standard deviation of the reward over all episodes",
  frac_reward_zero_std: "share of episodes in groups with equal rewards, which have no gradient",
  "rewards/{name}/mean": "mean of one reward function; for reward_correctness, the share of right answers",
  "rewards/{name}/std": "standard deviation of one reward function",
  "completions/{mean,min,max}_length": "tokens that the model wrote per episode",
  "completions/clipped_ratio": "share of episodes that ended before the model closed its turn",
  "completions/{mean,min,max}_terminated_length": "the same over episodes that the model closed",
  entropy: "entropy of the next-token distribution in nats, over the tokens that were learned from",
  kl: "KL divergence from the reference: the initial model, moved by sync_ref_model; only when beta is not 0",
  "clip_ratio/{low,high,region}_mean": "share of tokens whose importance ratio was clipped: below, above, either",
  "clip_ratio/{low_min,high_max}": "minimum and maximum over the episodes",
  "{policy_loss,entropy_coef}":
    "with an entropy bonus: the loss without it, and its coefficient; use_adaptive_entropy: the one after the step",
  cispo_clip_ratio: "cispo: share of tokens whose ratio was capped",
  "vespo/phi_seq_mean": "vespo: mean weight of an episode",
  "sampling/sampling_logp_difference/{mean,max}":
    "difference between log-probs when sampled and when learned from; 0 on the CPU, elsewhere a warning sign when it grows",
  "sampling/surprise":
    "mean of −log π over all tokens that the model wrote: an entropy estimate that includes groups without spread",
  "groups/skipped": "share of groups not computed, since their rewards are equal",
  "groups/asked": "dynamic_sampling: questions played for a batch, one group each",
  "groups/kept": "dynamic_sampling: groups with right and wrong episodes, which are learned from",
  "groups/refilled": "dynamic_sampling: groups played to replace others",
  "questions/skipped": "skip_solved: questions of the queue that were skipped for a batch",
  "turn_credit/progress": "turn_credit: mean progress of an episode's best query",
  "turn_credit/zero_std": "turn_credit: share of episodes in groups whose best queries have equal progress",
  "distillation/groups": "share of groups with advantages by self-distillation: all wrong, with errors to show",
  "distillation/kl": "KL divergence from the same model that is shown the errors, in nats per token, on those groups",
  "steps/skipped": "1 when the gradient was not finite and the weights did not change",
  "actions/per_episode": "actions per episode",
  "actions/{parse_failure,repeat,invalid}_rate": "share of actions that could not be parsed, were repeats, or failed",
  "actions/empty_rate": "share of turns without an action: no text, or no argument",
  "actions/early_last_rate": "share of actions that answer with @last before any query has worked",
  "episodes/describes_everything":
    "share of episodes that mostly describe tables: most tables of a database with four or more",
  "episodes/repeats_to_the_end": "share of episodes that end without an answer after repeating actions",
  "episodes/answer_cut_off": "share of episodes whose answer was ended by max_new_tokens or max_completion_length",
  "episodes/answer_miscopied": "share of episodes that answer wrong although a query returned the right values",
  "groups/{all_right,all_wrong}": "share of groups whose episodes are all right, or all wrong",
  "episodes/unscorable": "number of episodes that the environment could not score, which are left out",
  "episodes/segments": "segments per episode; 1 when no history was truncated or altered",
  "environment/solved": "environments of your own: share of scored episodes that solved their task",
  "environment/new_segments": "agents: share of calls that begin a segment, the first call of an episode left out",
  "environment/altered_history": "agents: share of calls whose history has replies that the model did not give there",
  "environment/{name}": "environments of your own: a number that the environment reports, mean over its episodes",
  "environment/reward/{name}": "environments of your own: a component of the reward, mean over episodes",
  "eval_{seen,unseen}/{greedy,sampled}/success_rate":
    "success rate on evaluation questions, on databases with training questions (seen) or without, greedy or sampled",
  "eval_{seen,unseen}/{greedy,sampled}/{success_ci_low,success_ci_high}": "95 % interval of the success rate",
  "eval_{seen,unseen}/{greedy,sampled}/{reward,steps,episodes}":
    "mean reward of the environment, mean actions, number of episodes",
};

/** The meaning of a metric; undefined for others, such as those that reward functions log. */
export function meaningOf(metric: string): string | undefined {
  return Object.entries(METRIC_MEANINGS).find(([pattern]) => patternOf(pattern).test(metric))?.[1];
}

function patternOf(name: string): RegExp {
  const source = name
    .replace(/\{name\}/g, "[^/]+")
    .replace(/\{([^}]+)\}/g, (_, choices: string) => `(?:${choices.split(",").join("|")})`);
  return new RegExp(`^${source}$`);
}
