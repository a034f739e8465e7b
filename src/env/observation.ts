// What a player gets to see. No gold value, path or other database ever appears in it.
import type { SqlFaultClass } from "../sql/index.ts";
import type { RewardBreakdown } from "./reward.ts";

/** Failures of the player's own: of its SQL, or of the action itself. */
export type ErrorClass =
  | SqlFaultClass
  | "repeat" // done before; the same result is shown again
  | "bad_action" // unknown type, empty or oversized argument
  | "episode_done"; // a step after the end, which changes nothing

export interface SQLObservation {
  readonly question: string;
  /** Table names; for described tables their columns too. */
  readonly schema_info: string;
  /** What the last action showed; empty after an error. */
  readonly result: string;
  readonly error: string | null;
  readonly error_class: ErrorClass | null;
  readonly step_count: number;
  readonly budget_remaining: number;
  /** One line an action, `TYPE: argument`, with ` -> error_class` where it failed. */
  readonly action_history: readonly string[];
  /** What the last step earned, part by part. */
  readonly reward_breakdown: RewardBreakdown;
  readonly done: boolean;
  /** Sum of the breakdown; null before the first step, and for a step that cannot be scored. */
  readonly reward: number | null;
}
