// A custom reward function for brevity. `sqlenv train --reward-funcs examples/reward/brevity.ts --reward-weights 1,0.15,1,0.1`
import type { RewardFunction } from "sqlenv";

/** From 1 for an episode of few characters down to 0 for one of 200 and more; null (no score) without an answer. */
export const brevity: RewardFunction = (completions, { episodes, log_metric }) => {
  const lengths = completions.map((messages) =>
    messages.filter(({ role }) => role === "assistant").reduce((sum, { content }) => sum + content.length, 0),
  );
  log_metric("characters", lengths.reduce((sum, length) => sum + length, 0) / lengths.length);
  return lengths.map((length, i) => (episodes[i]?.done_reason === "answered" ? Math.max(0, 1 - length / 200) : null));
};
