// The state of the running episode and its outcome.

import type { QuestionRecord } from "../data/index.ts";
import { type RewardConfig, RewardMeter } from "./reward.ts";

export const DONE_REASONS = ["answered", "budget", "stuck"] as const;

/** Why an episode ended; `stuck` means that the rule `end_after_failures` ended it. */
export type DoneReason = (typeof DONE_REASONS)[number];

/** An episode's rewards so far, the three that GRPO uses; null if a crash or timeout made the episode unscorable, or if there is no gold. */
export interface Outcome {
  readonly correctness: 0 | 1 | null;
  readonly progress: number | null;
  readonly operational: number | null;
  readonly done_reason: DoneReason | null;
}

/** Everything an environment remembers of the running episode. */
export interface EpisodeState {
  readonly id: string;
  readonly question: QuestionRecord;
  readonly meter: RewardMeter;
  /** Tables whose columns the player has seen in the schema. */
  readonly described: Set<string>;
  /** Tables and results already shown, for the `new_info` reward. */
  readonly seen: Set<string>;
  /** Normalized actions taken so far, to detect repeats. */
  readonly actions: Set<string>;
  /** How often each action failed. */
  readonly failures: Map<string, number>;
  /** The last successful query, and whether its result is the right answer; null if the result was truncated or there is no gold. */
  last: { readonly sql: string; readonly right: boolean | null } | undefined;
  readonly history: string[];
  step_count: number;
  operational: number;
  correct: boolean;
  doneReason: DoneReason | null;
  unscorable: boolean;
}

export function startEpisode(id: string, question: QuestionRecord, rewards: RewardConfig): EpisodeState {
  return {
    id,
    question,
    meter: new RewardMeter(rewards),
    described: new Set(),
    seen: new Set(),
    actions: new Set(),
    failures: new Map(),
    last: undefined,
    history: [],
    step_count: 0,
    operational: 0,
    correct: false,
    doneReason: null,
    unscorable: false,
  };
}

/** The episode's rewards so far. */
export function outcomeOf({ correct, meter, operational, doneReason, unscorable }: EpisodeState): Outcome {
  return {
    correctness: unscorable ? null : correct ? 1 : 0,
    progress: unscorable ? null : meter.phi,
    operational: unscorable ? null : Math.round(operational * 1e9) / 1e9,
    done_reason: doneReason,
  };
}
