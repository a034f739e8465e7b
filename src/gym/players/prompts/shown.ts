// What of an observation a model is shown, and how much of it.
import type { SQLObservation } from "../../env/index.ts";

/** Characters of a result shown to a model; what is cut off is said. */
export const MAX_SHOWN_RESULT = 2_000;

/** What an observation must have to be shown. */
export type Shown = Pick<
  SQLObservation,
  "question" | "schema_info" | "result" | "error" | "error_class" | "step_count" | "budget_remaining" | "done"
>;

/** A text as long as may be shown, with a note where it is cut. */
export function cut(text: string): string {
  if (text.length <= MAX_SHOWN_RESULT) return text;
  const shown = text.slice(0, MAX_SHOWN_RESULT).replace(/[\ud800-\udbff]$/, ""); // no half characters
  return `${shown}\n… (cut: ${MAX_SHOWN_RESULT} of ${text.length} characters shown)`;
}
