// What a player sees. It never contains a gold answer, a path or another database.
import { z } from "zod";
import { SQL_ERROR_CLASSES } from "../sql/index.ts";
import { rewardBreakdownSchema } from "./reward.ts";

/** Error classes for the player's SQL and actions. */
export const ERROR_CLASSES = [
  ...SQL_ERROR_CLASSES,
  "repeat", // an earlier action again; the same result is shown
  "bad_action", // unknown type, or an empty or oversized argument
  "episode_done", // a step after the end; it changes nothing
] as const;

export const observationSchema = z
  .object({
    question: z.string().describe("the question, in words"),
    schema_info: z.string().describe("table names; for described tables their columns too"),
    result: z
      .string()
      .describe("what the last action showed; empty after an error, except `repeat`, which shows it again"),
    error: z.string().nullable().describe("what went wrong, in SQLite's own words where it has any"),
    error_class: z.enum(ERROR_CLASSES).nullable().describe("the kind of error, for programs"),
    step_count: z.int().min(0).describe("actions taken"),
    budget_remaining: z.int().min(0).describe("actions left"),
    action_history: z.array(z.string()).readonly().describe("one line an action, ` -> error_class` where it failed"),
    reward_breakdown: rewardBreakdownSchema.describe("what the last step earned, part by part"),
    done: z.boolean().describe("whether the episode is over"),
    reward: z.number().nullable().describe("sum of the breakdown; null before the first step and where unscorable"),
  })
  .readonly();

export type ErrorClass = (typeof ERROR_CLASSES)[number];
export type SQLObservation = z.infer<typeof observationSchema>;
