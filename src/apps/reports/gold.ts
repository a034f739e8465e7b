// Finds a question's gold among a run's records.
import type { GoldAnswer, GoldAnswers } from "../../rl/run/records.ts";

/** A question's gold; null if the run has none for it. */
export function findGold(gold: GoldAnswers | null, question_id: string): GoldAnswer | null {
  return gold && Object.hasOwn(gold, question_id) ? gold[question_id]! : null;
}
