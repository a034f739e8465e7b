// The prompt for pretrained models: each rule prevents a mistake seen in practice. It is short, since every context
// contains it, and has no notation that could be copied into an action.

import type { StopRule } from "../../../stop-rule.ts";
import type { EnvironmentRules } from "../../env/index.ts";
import { cut, type Shown } from "./shown.ts";

export const INSTRUCT_ID = "instruct-1";

const describeAction = ({ describe_many }: EnvironmentRules) =>
  describe_many ? "DESCRIBE: table_a, table_b" : "DESCRIBE: table_name";

const describeMeaning = ({ describe_many }: EnvironmentRules) =>
  `DESCRIBE shows the columns and foreign keys of ${describe_many ? "the tables that you name" : "one table"}`;

const TEXT_ANSWER =
  "ANSWER gives the final answer and ends the task. Write only the values: one value, several values separated by commas, or, for several columns, the rows exactly as the last result shows them, one row per line.";

const LAST_ANSWER = "ANSWER: @last gives the whole result of your last query as the final answer and ends the task.";

/** Rules for every reply, whether written as text or as a tool call. */
export const replyRules = ({ describe_many }: EnvironmentRules) =>
  `First DESCRIBE every table that you need${describe_many ? "" : ", one at a time"}, also the tables that link them. Use only columns that you have seen. Then write one query for the whole question that returns only the columns it asks for, in that order. If the query fails, read the error and send a corrected query. Never repeat an action, and never write a result yourself. When the result answers the question, give the ANSWER.`;

/** The system prompt. */
export function instructSystem(rules: EnvironmentRules): string {
  const { answer_last } = rules;
  return `You answer questions about a SQLite database. At first you know only the names of its tables. Reply with exactly one action:

${describeAction(rules)}
SAMPLE: table_name
QUERY: SELECT ...
ANSWER: ${answer_last ? "@last" : "the values"}

${describeMeaning(rules)}, SAMPLE the first rows of one table, QUERY runs one SELECT statement. ${answer_last ? LAST_ANSWER : TEXT_ANSWER}

${replyRules(rules)}`;
}

/** Number of steps after which the question is repeated: by then it is far back in the context. */
const REMIND_AFTER = 4;

const SOMETHING_ELSE = "You have done this before, with the same result. Do something else now.";

// Without an example, a model describes the same tables again and again unless it is told what to do next.
const QUERY_NOW = "You have done this already. Now send a QUERY that uses the columns you have seen, or your ANSWER.";

/**
 * Formats an observation like the compact prompt, but repeats the question late in an episode and says what to do next
 * where models got stuck.
 */
export function instructObservation(observation: Shown, hasExamples = true): string {
  const { question, schema_info, result, error, error_class, step_count, budget_remaining, done } = observation;
  const isRepeat = error_class === "repeat";
  if (done) return "The task is over.";
  const lines: string[] = [];
  if (step_count === 0) lines.push(`Question: ${question}`, `Tables: ${schema_info}`);
  if (error !== null && !isRepeat) lines.push(`Error: ${cut(error)}`);
  if (result !== "") lines.push(`Result:\n${cut(result)}`);
  if (step_count >= REMIND_AFTER) lines.push(`Question: ${question}`);
  lines.push(`Steps left: ${budget_remaining}`);
  if (budget_remaining === 1) lines.push("This is the last step: give your ANSWER now.");
  else if (isRepeat) lines.push(hasExamples ? SOMETHING_ELSE : QUERY_NOW);
  else if (error !== null) lines.push("Read the error and write a corrected action.");
  return lines.join("\n");
}

// Matches the start of a line as models write it, possibly after list or emphasis marks; capitals are required unless a
// colon follows.
const MARKS = String.raw`^[ \t>*#-]{0,8}(?:[Aa][Cc][Tt][Ii][Oo][Nn][ \t]*:[ \t]*)?[*_\x60"]{0,3}`;
const COLON = String.raw`[*_\x60"]{0,3}[ \t]*:[*_\x60]{0,2}`;
const anyCase = (words: string) => words.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
const action = (words: string) =>
  new RegExp(`${MARKS}(?:(?:${anyCase(words)})${COLON}|(?:${words.toUpperCase()})(?=[ \\t]))`);

/** Ends a reply after one action, before text that only the environment writes. */
export const INSTRUCT_STOP: StopRule = {
  begin: action("describe|sample|query|answer"),
  before: new RegExp(
    `${MARKS}(?:${anyCase("results?|error|steps left|question|tables|output|observation|user|assistant|system")})${COLON}`,
  ),
  oneLine: action("describe|sample"),
  statement: action("query"),
};

/** Stop strings as the environment spells them; they are unlikely in a model's thinking before its action. */
export const INSTRUCT_STOP_STRINGS = ["\nResult:\n", "\nError: ", "\nSteps left: "] as const;
