// How near the best query of an episode came to the gold result.
import type { Episode } from "../run/records.ts";
import type { Milestone } from "../turn-credit.ts";

/** @param reward what the environment pays for raising Φ from 0 to 1 */
export function milestoneOf({ steps, correctness }: Pick<Episode, "steps" | "correctness">, reward: number): Milestone {
  let [phi, turns] = [0, 0];
  for (const [i, { action, reward_breakdown }] of steps.entries()) {
    if (action.action_type === "ANSWER" || reward_breakdown.progress === 0) continue; // a right answer pays the rest of Φ
    phi += reward_breakdown.progress / reward;
    turns = i + 1;
  }
  return { phi: correctness === null ? null : Math.round(phi * 4) / 4, turns: turns || Number.POSITIVE_INFINITY };
}
