// What every number in metrics.jsonl means. TRL's names where it has them; {name} stands for a reward function.

/** Name patterns and their meanings, in the order they are explained. */
export const METRIC_MEANINGS: Readonly<Record<string, string>> = {
  step: "optimizer steps done",
  epoch: "times every question has come up",
  num_tokens: "tokens of prompts and of what the model wrote, since the beginning",
  loss: "near 0 by construction while each step learns from fresh episodes: watch the reward instead",
  grad_norm: "of the gradient, before it is clipped to max_grad_norm",
  learning_rate: "of this step",
  reward: "mean over the episodes of the weighted sum of all reward functions",
  reward_std: "its spread over all episodes",
  frac_reward_zero_std: "share of episodes in groups that all did equally well: nothing can be learned from those",
  "rewards/{name}/mean": "mean of one reward function; of reward_correctness, the share of right answers",
  "rewards/{name}/std": "its spread",
  "completions/{mean,min,max}_length": "tokens the model wrote in an episode",
  "completions/clipped_ratio": "share of episodes that ended before the model had closed its turn",
  "completions/{mean,min,max}_terminated_length": "tokens of the other episodes",
  entropy: "how undecided the model is about its next token, in nats; over the tokens that were learned from",
  kl: "how far the model has moved from the one it began as; only when beta is not 0",
  "clip_ratio/{low,high,region}_mean":
    "share of tokens whose ratio to the model that played was clipped, below, above, either",
  "clip_ratio/{low_min,high_max}": "the least and the most of any episode",
  "{policy_loss,entropy_coef}": "with an entropy bonus: the loss without it, and its weight",
  cispo_clip_ratio: "cispo: share of tokens whose ratio was capped",
  "vespo/phi_seq_mean": "vespo: mean weight of an episode",
  "sampling/sampling_logp_difference/{mean,max}":
    "between log-probs as sampled and as learned from; 0 on the CPU, and a warning sign anywhere else when it grows",
  "sampling/surprise":
    "mean of −log π over everything the model said: the entropy in the mean, groups without spread included",
  "groups/skipped": "share of groups not computed, because all did equally well",
  "groups/asked": "dynamic_sampling: questions asked for a generation, one group each",
  "groups/kept": "dynamic_sampling: of them, groups with right and wrong episodes, which are learned from",
  "groups/refilled": "dynamic_sampling: of them, those asked to replace others",
  "questions/skipped": "skip_solved: questions of the queue that were passed over for a generation",
  "turn_credit/progress": "turn_credit: mean progress of an episode's best query",
  "turn_credit/zero_std": "turn_credit: share of episodes in groups whose best queries came equally near",
  "distillation/groups":
    "share of groups with advantages by self-distillation: wrong throughout, and with errors to show",
  "distillation/kl": "of the model to the same model that is shown the errors, in nats per token, on those groups",
  "steps/skipped": "1 when the gradient was not a number and the weights were left as they were",
  "actions/per_episode": "how many actions an episode took",
  "actions/{parse_failure,repeat,invalid}_rate": "share of actions that were not understood, done before, or failed",
  "actions/empty_rate": "share of turns without an action: no text, or no argument",
  "actions/early_last_rate": "share of actions that answer with @last before any query has worked",
  "episodes/describes_everything":
    "share of episodes that spend most of their actions on describing most tables of a database with four or more",
  "episodes/repeats_to_the_end": "share of episodes that end without an answer after repeating actions",
  "episodes/answer_cut_off": "share of episodes whose answer was ended by max_new_tokens or max_completion_length",
  "episodes/answer_miscopied": "share of episodes that answer wrong although a query returned the right values",
  "groups/{all_right,all_wrong}": "share of groups whose episodes are all right, or all wrong",
  "episodes/unscorable": "episodes left out because the environment could not score them",
  "episodes/segments": "stretches an episode's history was cut into; 1 when nothing was cut",
  "eval_{seen,unseen}/{greedy,sampled}/success_rate":
    "share of evaluation questions answered right, on databases training has questions on or not, taking the likeliest token or sampling",
  "eval_{seen,unseen}/{greedy,sampled}/{success_ci_low,success_ci_high}": "its 95 % interval",
  "eval_{seen,unseen}/{greedy,sampled}/{reward,steps,episodes}":
    "mean reward of the environment, mean actions, number of episodes",
};

/** What a metric means; undefined for one that is not explained, such as one a reward function logged. */
export function meaningOf(metric: string): string | undefined {
  return Object.entries(METRIC_MEANINGS).find(([pattern]) => patternOf(pattern).test(metric))?.[1];
}

function patternOf(name: string): RegExp {
  const source = name
    .replace(/\{name\}/g, "[^/]+")
    .replace(/\{([^}]+)\}/g, (_, choices: string) => `(?:${choices.split(",").join("|")})`);
  return new RegExp(`^${source}$`);
}
