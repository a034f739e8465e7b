// Metrics of a batch of episodes that every environment has.
import type { Episode } from "./run/records.ts";

/** TRL's completions/… metrics and rates of bad actions. */
export function episodeMetrics(episodes: readonly Episode[]): Record<string, number> {
  const lengths = episodes.map(({ completion_tokens }) => completion_tokens);
  const terminated = episodes.filter(({ truncated }) => !truncated).map(({ completion_tokens }) => completion_tokens);
  const actions = sum(episodes.map(({ step_count }) => step_count));
  const share = (count: number) => (actions === 0 ? 0 : count / actions);
  return {
    ...lengthMetrics("length", lengths),
    "completions/clipped_ratio": 1 - terminated.length / episodes.length,
    ...lengthMetrics("terminated_length", terminated),
    "actions/per_episode": actions / episodes.length,
    "actions/parse_failure_rate": share(sum(episodes.map(({ parse_failures }) => parse_failures))),
    "actions/repeat_rate": share(sum(episodes.map(({ repeats }) => repeats))),
    "actions/empty_rate": share(sum(episodes.map(({ steps }) => steps.filter(isEmptyTurn).length))),
    "actions/invalid_rate": share(sum(episodes.map(({ invalid }) => invalid))),
    "episodes/unscorable": episodes.filter(({ correctness }) => correctness === null).length,
    "sampling/surprise": surprise(episodes),
    "episodes/segments": sum(episodes.map(({ segments }) => segments.length)) / episodes.length,
  };
}

/** Whether a turn had no action at all; `@last` before any query has worked is a bad action but not an empty one. */
function isEmptyTurn({ action, observation }: Episode["steps"][number]): boolean {
  return observation.error_class === "bad_action" && action.argument.trim() === "";
}

/** Mean of −log π over the tokens of all episodes: an entropy estimate that includes groups without gradient. */
function surprise(episodes: readonly Episode[]): number {
  let [total, count] = [0, 0];
  for (const { segments } of episodes)
    for (const { logprobs, mask } of segments)
      for (let i = 0; i < mask.length; i++) {
        if (mask[i] === 0) continue;
        total += logprobs[i]!;
        count++;
      }
  return count === 0 ? 0 : -total / count;
}

function lengthMetrics(name: string, values: readonly number[]): Record<string, number> {
  const some = values.length > 0 ? values : [0];
  return {
    [`completions/mean_${name}`]: sum(some) / some.length,
    [`completions/min_${name}`]: Math.min(...some),
    [`completions/max_${name}`]: Math.max(...some),
  };
}

/** Shares of groups whose scored episodes are all right or all wrong: correctness gives no advantage there. */
export function groupMetrics(episodes: readonly Episode[], size: number): Record<string, number> {
  const groups = Array.from({ length: Math.floor(episodes.length / size) }, (_, g) =>
    episodes
      .slice(g * size, (g + 1) * size)
      .flatMap(({ correctness }) => (correctness === null ? [] : [correctness as number])),
  ).filter((verdicts) => verdicts.length > 0);
  if (groups.length === 0) return {};
  const share = (verdict: number) => groups.filter((all) => all.every((one) => one === verdict)).length / groups.length;
  return { "groups/all_right": share(1), "groups/all_wrong": share(0) };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
