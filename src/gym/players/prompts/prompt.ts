// Prompts as plain data: the system prompt, example episodes, how an observation becomes a turn, and where a reply
// ends. Every result contains the prompt's id; a prompt whose text changes gets a new id.

import { UsageError } from "../../../errors.ts";
import type { StopRule } from "../../../stop-rule.ts";
import {
  DEFAULT_RULES,
  type EnvironmentRules,
  type ParsedAction,
  parseAction,
  type SQLAction,
} from "../../env/index.ts";
import { INSTRUCT_ID, INSTRUCT_STOP, INSTRUCT_STOP_STRINGS, instructObservation, instructSystem } from "./instruct.ts";
import { SHOT_COUNTS, type ShotCount, shotsFor, shotTurns } from "./shots.ts";
import { cut, type Shown } from "./shown.ts";
import {
  type ActionTool,
  actionTools,
  callText,
  parseCall,
  TOOLS_ID,
  TOOLS_STOP,
  TOOLS_STOP_STRINGS,
  toolsObservation,
  toolsSystem,
} from "./tools.ts";

export const PROMPT_NAMES = ["compact", "instruct", "tools"] as const;
export type PromptName = (typeof PROMPT_NAMES)[number];

/** Names a prompt and its number of examples. */
export interface PromptChoice {
  /** @default "compact" */
  readonly prompt?: PromptName;
  /** @default 0 */
  readonly shots?: ShotCount;
  /** A custom prompt from a file; `prompt` then only sets how observations are formatted and where replies end. */
  readonly custom?: CustomPrompt | undefined;
}

/** One exchange of an example: the user's turn and the model's reply. */
export interface Exchange {
  readonly user: string;
  readonly assistant: string;
  /** Whether it starts an episode. In prompts with tools, later observations are tool results. @default false */
  readonly isFirst?: boolean;
}

export interface CustomPrompt {
  readonly id: string;
  readonly system: string;
  /** Examples that replace the built-in ones. */
  readonly shots?: readonly Exchange[] | undefined;
}

export interface Prompt {
  /** For example `compact-1` or `instruct-1/1-shot`. */
  readonly id: string;
  /** The system prompt. */
  readonly system: string;
  /** Example episodes, as turns before the question. */
  readonly examples: readonly Exchange[];
  /** Formats an observation as the user's turn; depends on nothing else. */
  readonly format: (observation: Shown) => string;
  /** The stop rule of replies; null if only the model ends them. */
  readonly stop: StopRule | null;
  /** Stop strings for endpoints, which allow at most four and match from the reply's first character. */
  readonly stopStrings: readonly string[];
  /** The actions as tools in the model's own call format; null if actions are written as text. */
  readonly tools: readonly ActionTool[] | null;
  /** Formats an action as the model should write it. */
  readonly write: (action: SQLAction) => string;
  /** Parses the action in a reply; never throws. */
  readonly parse: (text: string) => ParsedAction;
}

const IDS: Readonly<Record<PromptName, string>> = { compact: "compact-1", instruct: INSTRUCT_ID, tools: TOOLS_ID };
// Its length costs time in every episode of the starter, and the starter was trained on exactly this text.
const COMPACT_SYSTEM = `Answer a question about a SQLite database. Each turn, write one action on one line:
DESCRIBE: table (its columns)
SAMPLE: table (its first rows)
QUERY: one SELECT statement
ANSWER: the answer, which ends the episode
First look at the tables, then query, then answer with nothing but the values: one value; a list a, b, c; or one row a line, cells between " | ".`;
const COMPACT_LAST = "\nANSWER: @last answers with the whole result of the last query.";

/** The parts in which prompts differ. */
type Kind = Pick<Prompt, "system" | "format" | "stop" | "stopStrings" | "tools" | "write" | "parse">;

function kindOf(name: PromptName, rules: EnvironmentRules, hasExamples: boolean): Kind {
  switch (name) {
    case "compact":
      return {
        system: COMPACT_SYSTEM + (rules.answer_last ? COMPACT_LAST : ""),
        format: formatObservation,
        stop: null,
        stopStrings: [],
        tools: null,
        write: wordsOf,
        parse: parseAction,
      };
    case "instruct":
      return {
        system: instructSystem(rules),
        format: (seen) => instructObservation(seen, hasExamples),
        stop: INSTRUCT_STOP,
        stopStrings: INSTRUCT_STOP_STRINGS,
        tools: null,
        write: wordsOf,
        parse: parseAction,
      };
    case "tools":
      return {
        system: toolsSystem(rules),
        format: toolsObservation,
        stop: TOOLS_STOP,
        stopStrings: TOOLS_STOP_STRINGS,
        tools: actionTools(rules),
        write: callText,
        parse: parseCall,
      };
  }
}

/** Builds the chosen prompt for an environment with these rules. */
export function promptFor(
  { prompt = "compact", shots = 0, custom }: PromptChoice = {},
  rules: EnvironmentRules = DEFAULT_RULES,
): Prompt {
  checkShots(shots);
  const kind = kindOf(prompt, rules, (custom?.shots?.length ?? shots) > 0);
  const { format, write } = kind;
  const examples =
    custom?.shots ??
    shotsFor(shots, rules).flatMap((shot) =>
      shotTurns(shot).map(({ seen, action }) => ({
        user: anew(format)(seen),
        assistant: write(action),
        isFirst: seen.step_count === 0,
      })),
    );
  return {
    ...kind,
    id: promptId({ prompt, shots, custom }),
    system: custom?.system ?? kind.system,
    examples,
    format: examples.length > 0 ? anew(format) : format,
  };
}

/** Makes a first observation say that the example before it is over. */
function anew(format: Prompt["format"]): Prompt["format"] {
  return (seen) => (seen.step_count === 0 ? `A new task, on another database.\n${format(seen)}` : format(seen));
}

/** The id of a choice, as results state it. */
export function promptId({ prompt = "compact", shots = 0, custom }: PromptChoice = {}): string {
  const id = custom?.id ?? IDS[prompt];
  return shots === 0 || custom?.shots ? id : `${id}/${shots}-shot`;
}

/** Formats an action as a model writes it. */
export function wordsOf({ action_type, argument }: SQLAction): string {
  return `${action_type}: ${argument}`;
}

/**
 * The starter's system prompt.
 *
 * @example
 * const prompt = model.turns.start(getSystemPrompt(), formatObservation(env.reset()));
 */
export function getSystemPrompt(): string {
  return COMPACT_SYSTEM;
}

/**
 * Formats an observation for the starter. A turn contains only what is new: the first one the question and the table
 * names, later ones the result or the error. The schema is not repeated, since DESCRIBE's result already shows what is
 * new in it.
 *
 * @example
 * const text = formatObservation(env.reset({ seed: 1 })); // the first user turn
 */
export function formatObservation(observation: Shown): string {
  const { question, schema_info, result, error, step_count, budget_remaining, done } = observation;
  const lines: string[] = [];
  if (step_count === 0) lines.push(`Question: ${question}`, `Tables: ${schema_info}`);
  if (error !== null) lines.push(`Error: ${cut(error)}`);
  if (result !== "") lines.push(`Result:\n${cut(result)}`);
  lines.push(done ? "The episode is over." : `Steps left: ${budget_remaining}`);
  return lines.join("\n");
}

/**
 * Parses the action from a model's text. Never throws: text without an action becomes a QUERY (see `parseAction`).
 *
 * @example
 * env.step(parseModelOutput("QUERY: SELECT count(*) FROM customers"));
 */
export function parseModelOutput(text: string): SQLAction {
  return parseAction(text).action;
}

function checkShots(shots: number): void {
  if ((SHOT_COUNTS as readonly number[]).includes(shots)) return;
  throw new UsageError({ what: "there are no examples in this number", value: shots, remedy: "0, 1 or 3" });
}
