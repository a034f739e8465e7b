// What the two evaluation splits are called: SQL's are about databases, those of other environments about tasks.
import type { EnvironmentDescription, EvaluationSplit } from "../../rl/run/records.ts";

/** Whose words to use: the description of an environment, null or undefined for SQL. */
export type Described = EnvironmentDescription | null | undefined;

/** "unseen databases", "held-out tasks" */
export function splitLabel(split: EvaluationSplit, environment: Described): string {
  if (!environment) return `${split} databases`;
  return split === "unseen" ? "held-out tasks" : "held-out tasks of training groups";
}
