// An episode's outcome in a few words.
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import { signed } from "../../gym/evaluation/transcript.ts";
import { count, cut } from "./format.ts";

/** The outcome as text, and its tone for coloring. */
export function verdict(
  record: Pick<EpisodeRecord, "correctness" | "reward" | "step_count" | "error" | "done_reason">,
): { readonly tone: "good" | "bad" | "none"; readonly text: string } {
  const { correctness, reward, step_count, error, done_reason } = record;
  const steps = count(step_count, "step");
  if (error !== null) return { tone: "none", text: `broken after ${steps}: ${cut(error, 200)}` };
  if (correctness === null) return { tone: "none", text: `cannot be scored, ${steps}` };
  const word =
    correctness === 1
      ? "right"
      : done_reason === "answered"
        ? "wrong"
        : done_reason === "stuck"
          ? "stuck"
          : "no answer";
  return {
    tone: correctness === 1 ? "good" : "bad",
    text: `${word}, reward ${signed(reward ?? 0)}, ${steps}`,
  };
}

/** Whether an episode is of an environment that is not SQL. */
export function isText({ steps, start }: Pick<EpisodeRecord, "steps" | "start">): boolean {
  const type: string | undefined = steps[0]?.action.action_type;
  return type === "TEXT" || (type === undefined && start?.schema_info === "");
}
