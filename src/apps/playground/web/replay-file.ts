// Episodes from a file: lines of episodes.jsonl, one JSON object of `sqlenv play --json`, a comparison, or chats.

import { UsageError } from "../../../errors.ts";
import { type ActionType, DONE_REASONS, NO_REWARD, parseAction, type SQLObservation } from "../../../gym/env/index.ts";
import type { EpisodeRecord, StepRecord } from "../../../gym/evaluation/index.ts";
import type { Replay } from "./worker-protocol.ts";

/** Maximum number of episodes read from one file; a longer list is not usable. */
const MAX_EPISODES = 5_000;

/** The episodes of a file; throws UsageError if there are none. */
export function readReplays(name: string, text: string): Replay[] {
  const replays = valuesIn(text).flatMap(recordsIn).slice(0, MAX_EPISODES);
  if (replays.length > 0) return replays.map((record, i) => ({ title: titleOf(record, i), record }));
  throw new UsageError({
    what: "no episode in the file",
    value: name,
    remedy: "drop an episodes.jsonl, what `sqlenv play --json` prints, or lines of {messages: […]}",
  });
}

/** The whole text as JSON, or each of its lines. */
function valuesIn(text: string): unknown[] {
  const whole = parsed(text);
  if (whole !== undefined) return Array.isArray(whole) ? whole : [whole];
  return text.split("\n").flatMap((line) => {
    const value = line.trim() === "" ? undefined : parsed(line);
    return value === undefined ? [] : [value];
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

type Loose = Readonly<Record<string, unknown>>;

function isLoose(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function recordsIn(value: unknown): EpisodeRecord[] {
  if (!isLoose(value)) return [];
  if (Array.isArray(value.questions)) {
    return value.questions.flatMap((question) =>
      isLoose(question) && Array.isArray(question.episodes) ? question.episodes.flatMap(recordsIn) : [],
    );
  }
  if (Array.isArray(value.steps)) return [recordOf(value, value.steps.flatMap(stepIn))];
  if (Array.isArray(value.messages)) return [recordOf(value, stepsOfChat(value.messages))];
  return [];
}

/** Files are untrusted: every field is coerced to the type the page expects. */
function recordOf(value: Loose, steps: readonly StepRecord[]): EpisodeRecord {
  const text = (key: string, fallback: string) => (typeof value[key] === "string" ? (value[key] as string) : fallback);
  const number = (key: string) => (typeof value[key] === "number" ? (value[key] as number) : null);
  const start = isLoose(value.start) ? observationOf(value.start) : null;
  const { correctness } = value;
  const done = value.done_reason;
  return {
    player: text("player", "unknown player"),
    question_id: text("question_id", ""),
    question: text("question", start?.question ?? steps[0]?.observation.question ?? ""),
    database_name: text("database_name", ""),
    difficulty: text("difficulty", "") as EpisodeRecord["difficulty"],
    answer_type: text("answer_type", "") as EpisodeRecord["answer_type"],
    split: text("split", "") as EpisodeRecord["split"],
    seen: value.seen === true,
    start,
    steps,
    correctness: correctness === 0 || correctness === 1 ? correctness : null,
    progress: number("progress"),
    operational: number("operational"),
    reward: number("reward"),
    step_count: steps.length,
    done_reason: DONE_REASONS.find((reason) => reason === done) ?? null,
    ...(typeof value.rules === "string" && { rules: value.rules }),
    parse_failures: steps.filter(({ parse_error }) => parse_error !== null).length,
    repeats: 0,
    invalid: 0,
    error: typeof value.error === "string" ? value.error : null,
  };
}

function stepIn(value: unknown): StepRecord[] {
  if (!isLoose(value) || !isLoose(value.action) || !isLoose(value.observation)) return [];
  const observation = observationOf(value.observation);
  const action = {
    action_type: String(value.action.action_type) as ActionType,
    argument: String(value.action.argument),
  };
  const text = typeof value.text === "string" ? value.text : null;
  const parse_error = typeof value.parse_error === "string" ? value.parse_error : null;
  return [{ action, text, parse_error, observation, reward_breakdown: observation.reward_breakdown }];
}

function observationOf(value: Loose): SQLObservation {
  const text = (key: string) => (typeof value[key] === "string" ? (value[key] as string) : "");
  const whole = (key: string) => (Number.isInteger(value[key]) ? (value[key] as number) : 0);
  const parts: Loose = isLoose(value.reward_breakdown) ? value.reward_breakdown : {};
  const part = (key: string) => (typeof parts[key] === "number" ? parts[key] : 0);
  const breakdown = Object.fromEntries(Object.keys(NO_REWARD).map((key) => [key, part(key)]));
  return {
    question: text("question"),
    schema_info: text("schema_info"),
    result: text("result"),
    error: typeof value.error === "string" ? value.error : null,
    error_class: (typeof value.error_class === "string" ? value.error_class : null) as SQLObservation["error_class"],
    step_count: whole("step_count"),
    budget_remaining: whole("budget_remaining"),
    action_history: [],
    reward_breakdown: breakdown as unknown as SQLObservation["reward_breakdown"],
    done: value.done === true,
    reward: typeof value.reward === "number" ? value.reward : null,
  };
}

/** A chat: assistant messages are actions, the user messages after them results. */
function stepsOfChat(messages: readonly unknown[]): StepRecord[] {
  const chat = messages.flatMap((message) =>
    isLoose(message) && typeof message.role === "string" && typeof message.content === "string"
      ? [{ role: message.role, content: message.content }]
      : [],
  );
  const question = /^Question: (.*)$/m.exec(chat.find(({ role }) => role === "user")?.content ?? "")?.[1] ?? "";
  const steps: StepRecord[] = [];
  for (const [i, { role, content }] of chat.entries()) {
    if (role !== "assistant") continue;
    const { action, error } = parseAction(content);
    const answer = chat[i + 1]?.role === "user" ? chat[i + 1]!.content : "";
    const result = answer.replace(/^Result:\n/, "").replace(/\n?(?:Steps left: \d+|The episode is over\.)$/, "");
    const observation = { ...observationOf({ question, result, step_count: steps.length + 1 }), reward: null };
    const { reward_breakdown } = observation;
    steps.push({ action, text: content, parse_error: error?.message ?? null, observation, reward_breakdown });
  }
  return steps;
}

function titleOf({ player, question, correctness, steps }: EpisodeRecord, index: number): string {
  const verdict = correctness === null ? "not scored" : correctness === 1 ? "right" : "wrong";
  const asked = question.length > 80 ? `${question.slice(0, 79)}…` : question;
  return `${index + 1}. ${player}, ${verdict}, ${steps.length} ${steps.length === 1 ? "step" : "steps"}: ${asked}`;
}
