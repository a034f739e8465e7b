// Credit by turn: beside the advantage of its outcome, an episode has a second one for how near its best query came to the
// gold. It counts for the turns up to that query, and not for what the model made of the result afterwards.

import type { Segment } from "../gym/players/index.ts";
import { computeAdvantages } from "./advantages.ts";
import type { GRPOConfig } from "./config.ts";
import type { Episode } from "./run/records.ts";

/** What some turns of an episode are credited with. */
export interface TurnCredit {
  /** Added to the advantage of their tokens; the weight is in it. */
  readonly advantage: number;
  /** How many turns, from the first. */
  readonly turns: number;
}

/** The best query of an episode. */
export interface Milestone {
  /** Φ of its result; null where the episode could not be scored. */
  readonly phi: number | null;
  /** Turns up to and including it; all where no query came nearer than none. */
  readonly turns: number;
}

/** @param reward what the environment pays for coming from Φ = 0 to Φ = 1 */
export function milestoneOf({ steps, correctness }: Pick<Episode, "steps" | "correctness">, reward: number): Milestone {
  let [phi, turns] = [0, 0];
  for (const [i, { action, reward_breakdown }] of steps.entries()) {
    if (action.action_type === "ANSWER" || reward_breakdown.progress === 0) continue; // a right answer pays the rest of Φ
    phi += reward_breakdown.progress / reward;
    turns = i + 1;
  }
  return { phi: correctness === null ? null : Math.round(phi * 4) / 4, turns: turns || Number.POSITIVE_INFINITY };
}

/** The credit of each episode, compared within its group and scaled as outcomes are. */
export function turnCredits(
  episodes: readonly Episode[],
  { turn_credit, reward, num_generations, scale_rewards }: GRPOConfig,
): { readonly credits: TurnCredit[]; readonly metrics: Record<string, number> } {
  const milestones = episodes.map((episode) => milestoneOf(episode, reward.progress));
  const rows = milestones.map(({ phi }) => [phi]);
  const { advantages, metrics } = computeAdvantages(rows, { num_generations, scale_rewards });
  return {
    credits: milestones.map(({ turns }, i) => ({ advantage: turn_credit * advantages[i]!, turns })),
    metrics: { "turn_credit/progress": metrics.reward!, "turn_credit/zero_std": metrics.frac_reward_zero_std! },
  };
}

/** The advantage of each segment: a number where it is the same for all of the model's tokens, else one for each token. */
export function creditedAdvantages(
  segments: readonly Pick<Segment, "mask">[],
  advantage: number,
  credit: TurnCredit | undefined,
): (number | number[])[] {
  if (!credit || credit.advantage === 0) return segments.map(() => advantage);
  let turn = 0; // the model's tokens in a row are a turn: an observation is between two of them
  return segments.map(({ mask }) => {
    const first = turn;
    const byToken = mask.map((mine, t) => {
      if (mine === 1 && mask[t - 1] !== 1) turn++;
      return mine === 0 ? 0 : turn <= credit.turns ? advantage + credit.advantage : advantage;
    });
    if (turn <= credit.turns) return advantage + credit.advantage;
    return first >= credit.turns ? advantage : byToken;
  });
}
