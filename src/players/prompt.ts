// The words between environment and model: one system prompt, an observation as a chat turn, and the way back.
// Every token here is paid for in every episode, so a turn holds only what the conversation does not hold yet:
//  - the first one the question and the tables' names;
//  - each later one the result or the error. The schema is not repeated: DESCRIBE's result is what was new in it.
// The number of steps left ends every turn.
import { parseAction, type SQLAction, type SQLObservation } from "../env/index.ts";

/** Characters of a result shown to a model; what is cut off is said. */
export const MAX_SHOWN_RESULT = 2_000;

const SYSTEM_PROMPT = `Answer a question about a SQLite database. Each turn, write one action on one line:
DESCRIBE: table (its columns)
SAMPLE: table (its first rows)
QUERY: one SELECT statement
ANSWER: the answer, which ends the episode
First look at the tables, then query, then answer with nothing but the values: one value; a list a, b, c; or one row a line, cells between " | ".`;

/** What a model is told before the first turn. */
export function getSystemPrompt(): string {
  return SYSTEM_PROMPT;
}

/** An observation as the user's turn of a chat; depends on nothing but the observation. */
export function formatObservation(observation: SQLObservation): string {
  const { question, schema_info, result, error, step_count, budget_remaining, done } = observation;
  const lines: string[] = [];
  if (step_count === 0) lines.push(`Question: ${question}`, `Tables: ${schema_info}`);
  if (error !== null) lines.push(`Error: ${cut(error)}`);
  if (result !== "") lines.push(`Result:\n${cut(result)}`);
  lines.push(done ? "The episode is over." : `Steps left: ${budget_remaining}`);
  return lines.join("\n");
}

/** The action in what a model wrote. Never throws: what is not understood becomes a QUERY (see `parseAction`). */
export function parseModelOutput(text: string): SQLAction {
  return parseAction(text).action;
}

function cut(text: string): string {
  if (text.length <= MAX_SHOWN_RESULT) return text;
  const shown = text.slice(0, MAX_SHOWN_RESULT).replace(/[\ud800-\udbff]$/, ""); // no half characters
  return `${shown}\n… (cut: ${MAX_SHOWN_RESULT} of ${text.length} characters shown)`;
}
