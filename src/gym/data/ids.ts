// Hashes question ids, so that results can state which questions they cover.
import type { QuestionRecord } from "./question.ts";

/** SHA-256 (hexadecimal) of the evaluation questions' ids: equal if two results cover the same questions. */
export function evalIdsSha256(questions: readonly QuestionRecord[]): Promise<string> {
  return idsSha256(questions.filter(({ split }) => split === "eval").map(({ question_id }) => question_id));
}

/** SHA-256 (hexadecimal) of the ids, sorted and joined by line breaks. */
export async function idsSha256(ids: readonly string[]): Promise<string> {
  const bytes = new TextEncoder().encode([...ids].sort().join("\n"));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
