// The actions of a player, and the parser of actions in a model's text.
import { z } from "zod";
import { ActionParseError } from "../../errors.ts";
import { MAX_ANSWER_LENGTH } from "../data/answer.ts";
import { normalizeSql } from "../sql/index.ts";

export const ACTION_TYPES = ["DESCRIBE", "SAMPLE", "QUERY", "ANSWER"] as const;

export const actionSchema = z
  .object({
    action_type: z
      .enum(ACTION_TYPES)
      .describe("DESCRIBE a table's columns, SAMPLE its first rows, QUERY with one SELECT, ANSWER and end"),
    argument: z.string().describe("a table name, one SELECT statement, or the answer"),
  })
  .readonly();

export type SQLAction = z.infer<typeof actionSchema>;
export type ActionType = SQLAction["action_type"];

/**
 * Maximum length of an argument, in characters, far above any sensible query or answer. Data sets leave out questions
 * with longer answers.
 */
export const MAX_ARGUMENT_LENGTH = MAX_ANSWER_LENGTH;

export interface ParsedAction {
  readonly action: SQLAction;
  /** Set if no action was found and the whole text became a QUERY. */
  readonly error: ActionParseError | null;
}

// Matches an action at the start of a line, possibly emphasized or after list marks, emphasis or "Action:".
// Before a colon any letter case will do; otherwise only capitals count, so that "answer the question" stays prose.
// MARKS is a separate pattern: emphasis may also be stars, and one combined pattern would take quadratic time.
const MARKS = /^[ \t>*#-]*/;
const HEAD =
  /^(?:action(?:_type)?[ \t]*[:：=][ \t]*)?[*_`"]*(?:(describe|sample|query|answer)[*_`"]*[ \t]*[:：][*_`]*|(DESCRIBE|SAMPLE|QUERY|ANSWER)[*_`"]*(?=\s|$))/i;
const CAPITALS = /DESCRIBE|SAMPLE|QUERY|ANSWER/;

/**
 * Parses an action from a model's text. Never throws: text without an action becomes a QUERY with the raw text.
 *
 * @example
 * const { action, error } = parseAction("DESCRIBE: customers");
 * console.log(action.action_type, action.argument, error); // DESCRIBE customers null
 */
export function parseAction(text: string): ParsedAction {
  const cleaned = withoutThinking(text.slice(0, MAX_ARGUMENT_LENGTH + 100))
    .replace(/[\u200b-\u200f\u2060\ufeff]/g, "")
    .trim();
  const action = parseJson(cleaned) ?? parseLines(cleaned);
  if (action) return { action, error: null };
  const error = new ActionParseError({
    what: "the output is not ACTION_TYPE: argument",
    value: text,
    remedy: `start a line with one of ${ACTION_TYPES.join(", ")} and a colon`,
  });
  return { action: { action_type: "QUERY", argument: fencedSql(cleaned) ?? withoutFences(cleaned) }, error };
}

/** Normalizes an action: actions that differ only in letter case, quotes and white space become equal. */
export function normalizeAction({ action_type, argument }: SQLAction): string {
  const key = action_type === "QUERY" ? normalizeSql(argument) : tableName(argument).toLowerCase();
  return `${action_type}: ${key}`;
}

/** Extracts a table name as players write it: quoted, in parentheses, with a full stop. */
export function tableName(argument: string): string {
  const text = argument.trim().replace(/^table\s+(?=\S)/i, "");
  let [start, end] = [0, text.length];
  while (start < end && `("'\`[ \t\n`.includes(text[start]!)) start++;
  while (end > start && `)"'\`];., \t\n`.includes(text[end - 1]!)) end--;
  return text.slice(start, end);
}

/** Extracts table names separated by commas, bars or "and"; drops duplicates. */
export function tableNames(argument: string): string[] {
  const names = argument
    .trim()
    .replace(/^tables?\s+(?=\S)/i, "")
    .split(/[|,;&\n]|\s+and\s+/i)
    .map(tableName);
  const known = new Set<string>();
  return names.filter((name) => name !== "" && !known.has(name.toLowerCase()) && known.add(name.toLowerCase()));
}

/** The answer that refers to the last result, if the rule `answer_last` is on. */
export const LAST_RESULT = "@last";

// Matches `@last` or "last result" alone on the first line, in any letter case, possibly in quotes or backticks.
const LAST =
  /^\s{0,20}(?:(?:the )?(?:final )?answer(?: is)?[ :=]{0,4})?[\s`"'*(<[]*(?:@ ?last(?:[ _](?:result|query))?|(?:the )?last result)[\s`"'*)>\].;]*(?:\n|$)/i;

/** Whether an answer refers to the last result instead of writing it out. */
export function isLastReference(answer: string): boolean {
  return LAST.test(answer);
}

function withoutThinking(text: string): string {
  const end = text.lastIndexOf("</think>");
  return end >= 0 ? text.slice(end + "</think>".length) : text.replace(/^\s*<think>/, "");
}

function withoutFences(text: string): string {
  return text
    .replace(/^\s*```[a-z]*[ \t]*\n?/i, "")
    .replace(/\n?```[\s\S]*$/, "")
    .trim();
}

function parseJson(text: string): SQLAction | undefined {
  const body = withoutFences(text);
  if (!body.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== "object" || value === null) return undefined;
    const { action_type, argument } = value as Record<string, unknown>;
    if (typeof action_type !== "string" || typeof argument !== "string") return undefined;
    const parsed = actionSchema.safeParse({ action_type: action_type.toUpperCase(), argument });
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

/** Extracts the statement from a code block that follows other text; undefined if there is none. */
function fencedSql(text: string): string | undefined {
  const start = text.indexOf("```", 1); // a fence at the beginning has already been removed
  if (start < 0 || STATEMENT.test(text.slice(0, start))) return undefined;
  const block = withoutFences(text.slice(start));
  return STATEMENT.test(block) ? block : undefined;
}

const STATEMENT = /^\s*(?:select|with)\b/i;

// Matches an explanation that models append to a statement. It begins with a word that cannot continue a statement.
const EXPLANATION =
  /(?:;[ \t]{0,8}|\n[ \t]{0,8})\n\s{0,8}(?:this|these|the|that|note|explanation|here|it|i|we|now|so|in this|please|after|once|if)\b[\s\S]*$/i;

/** Parses the first line that starts an action, and the lines up to the next action. */
function parseLines(text: string): SQLAction | undefined {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => headOf(line));
  if (first < 0) return undefined;
  const head = headOf(lines[first]!)!;
  const rest = lines.slice(first + 1);
  const next = rest.findIndex((line) => headOf(line));
  const body = [lines[first]!.slice(head.length), ...(next < 0 ? rest : rest.slice(0, next))].join("\n");
  const argument = trimArgument(head.type, body.replace(ARGUMENT, ""));
  return { action_type: head.type, argument };
}

// Matches the separator between "Action: DESCRIBE" on one line and "Argument: student" on the next.
const ARGUMENT = /^[ \t]*\n[ \t]*(?:argument|action[ _]input|input)[ \t]*[:=][ \t]*/i;

function headOf(line: string): { type: ActionType; length: number } | undefined {
  const marks = MARKS.exec(line)![0].length;
  const match = HEAD.exec(line.slice(marks));
  const word = match?.[1] ?? match?.[2];
  if (!match || !word || (match[2] && !CAPITALS.test(word))) return undefined;
  return { type: word.toUpperCase() as ActionType, length: marks + match[0].length };
}

function trimArgument(type: ActionType, body: string): string {
  if (type === "DESCRIBE" || type === "SAMPLE")
    return tableName(withoutFences(body).split(/\n|; (?=(?:DESCRIBE|SAMPLE|QUERY|ANSWER)\b)/i)[0]!);
  if (type === "QUERY") return unquote((fencedSql(body) ?? withoutFences(body)).replace(EXPLANATION, ""));
  return body.replace(/\n?```\s*$/, (fence) => (/```[\s\S]*```/.test(body) ? fence : "")).trim(); // the verifier strips the rest of the format
}

function unquote(sql: string): string {
  const quoted = /^(["`])([\s\S]*)\1$/.exec(sql);
  return quoted && !quoted[2]!.includes(quoted[1]!) ? quoted[2]!.trim() : sql;
}
