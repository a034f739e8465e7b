// Which questions an evaluation is about, as one number that results can quote.
import type { QuestionRecord } from "./record.ts";

/** SHA-256, in hexadecimal digits, of the evaluation questions' ids, sorted and joined by line ends: equal when two results are about the same questions. */
export async function evalIdsSha256(questions: readonly QuestionRecord[]): Promise<string> {
  const ids = questions.filter(({ split }) => split === "eval").map(({ question_id }) => question_id);
  const bytes = new TextEncoder().encode(ids.sort().join("\n"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
