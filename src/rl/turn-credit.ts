// Turn-level credit: besides the advantage of its outcome, an episode has a second one for how near it came to its goal.
// It is added to the turns up to the one that came nearest, and not to what the model did afterwards.

import type { Segment } from "../gym/players/index.ts";
import { computeAdvantages } from "./advantages.ts";
import type { GRPOConfig } from "./config.ts";

/** An advantage for the first turns of an episode. */
export interface TurnCredit {
  /** Added to the advantage of their tokens; weighted already. */
  readonly advantage: number;
  /** Number of turns, from the first. */
  readonly turns: number;
}

/** The turn of an episode that came nearest to the goal; in SQL, the best query. */
export interface Milestone {
  /** Φ, how near, from 0 to 1; null if the episode could not be scored. */
  readonly phi: number | null;
  /** Turns up to and including it; infinite if Φ is 0 throughout. */
  readonly turns: number;
}

/** The credit of each episode: Φ compared within its group and scaled as rewards are. */
export function turnCredits(
  milestones: readonly Milestone[],
  { turn_credit, num_generations, scale_rewards }: GRPOConfig,
): { readonly credits: TurnCredit[]; readonly metrics: Record<string, number> } {
  const rows = milestones.map(({ phi }) => [phi]);
  const { advantages, metrics } = computeAdvantages(rows, { num_generations, scale_rewards });
  return {
    credits: milestones.map(({ turns }, i) => ({ advantage: turn_credit * advantages[i]!, turns })),
    metrics: { "turn_credit/progress": metrics.reward!, "turn_credit/zero_std": metrics.frac_reward_zero_std! },
  };
}

/** The advantage of each segment: a single number if all of the model's tokens have the same, else one per token. */
export function creditedAdvantages(
  segments: readonly Pick<Segment, "mask">[],
  advantage: number,
  credit: TurnCredit | undefined,
): (number | number[])[] {
  if (!credit || credit.advantage === 0) return segments.map(() => advantage);
  let turn = 0; // a run of the model's tokens is a turn: an observation separates two of them
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
