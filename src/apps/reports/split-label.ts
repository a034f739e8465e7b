// What the two evaluation splits are called: SQL's are about databases, those of other environments about tasks.
import type { EnvironmentDescription, EvaluationSplit } from "../../rl/run/records.ts";

/** The run's environment as it describes itself; null or undefined if it is the SQL environment. */
export type Described = EnvironmentDescription | null | undefined;

/** A split's name in texts: "unseen databases" for SQL, "held-out tasks" for other environments. */
export function splitLabel(split: EvaluationSplit, environment: Described): string {
  if (!environment) return `${split} databases`;
  return split === "unseen" ? "held-out tasks" : "held-out tasks of training groups";
}
