// The part of an observation that a model is shown, and its length limit.
import type { SQLObservation } from "../../env/index.ts";

/** Maximum characters of a result shown to a model; a note says what was truncated. */
export const MAX_SHOWN_RESULT = 2_000;

/** The fields of an observation that prompts show. */
export type Shown = Pick<
  SQLObservation,
  "question" | "schema_info" | "result" | "error" | "error_class" | "step_count" | "budget_remaining" | "done"
>;

/** Truncates a text to the limit, with a note. */
export function cut(text: string): string {
  if (text.length <= MAX_SHOWN_RESULT) return text;
  const shown = text.slice(0, MAX_SHOWN_RESULT).replace(/[\ud800-\udbff]$/, ""); // drop half of a surrogate pair
  return `${shown}\n… (cut: ${MAX_SHOWN_RESULT} of ${text.length} characters shown)`;
}
