// A hash of question ids, with which results say which questions they are about.
import type { QuestionRecord } from "./question.ts";

/** SHA-256, in hexadecimal digits, of the evaluation questions' ids: equal when two results are about the same questions. */
export function evalIdsSha256(questions: readonly QuestionRecord[]): Promise<string> {
  return idsSha256(questions.filter(({ split }) => split === "eval").map(({ question_id }) => question_id));
}

/** SHA-256, in hexadecimal digits, of ids, sorted and joined by line ends. */
export async function idsSha256(ids: readonly string[]): Promise<string> {
  const bytes = new TextEncoder().encode([...ids].sort().join("\n"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
