// The record of an episode in an environment that makes none itself, and the metrics of such episodes.
import type { EpisodeRecord, StepRecord } from "../gym/evaluation/index.ts";
import type { Ending, Environment, Task, TaskSplit, TextStep } from "./environment.ts";
import { added, meansOf } from "./metrics.ts";

/** A reply and what the environment returned for it. */
export interface PlayedStep {
  readonly reply: string;
  readonly step: TextStep;
}

export interface PlayedText extends Ending {
  readonly split: TaskSplit;
  /** Turns that the episode may have. */
  readonly turns: number;
  /** The text of `reset`; null if it failed. */
  readonly first: string | null;
  readonly steps: readonly PlayedStep[];
}

/**
 * The question of a task without text is the first text. Fields that only SQL has are null, empty or 0, except difficulty ("easy" unless the task has one that SQL has too) and
 * answer_type ("string"), which must have a value.
 */
export function textRecord(environment: Environment, given: Task, played: PlayedText): EpisodeRecord {
  const { player, error, split, turns, first, steps } = played;
  const task = given.text === "" ? { ...given, text: first ?? "" } : given;
  const last = steps.at(-1)?.step;
  const isScored = error === null && steps.every(({ step }) => step.reward !== null);
  const reward = isScored ? sum(steps.map(({ step }) => step.reward ?? 0)) : null;
  const isSolved = (last?.done ? last.solved : undefined) ?? isEnough(reward ?? 0, environment);
  const metrics = meansByName(steps.map(({ step }) => step.metrics ?? {}));
  const difficulty = DIFFICULTIES.find((one) => one === task.difficulty) ?? "easy";
  return {
    player,
    question_id: task.id,
    question: task.text,
    database_name: task.group ?? environment.name,
    difficulty,
    answer_type: "string",
    split,
    prompt: environment.prompt.id,
    seen: split === "train" || (task.seen ?? false),
    start: first === null ? null : observation(task, { text: first, reward: null, done: false }, 0, turns),
    steps: steps.map(({ reply, step }, i) => stepRecord(task, reply, step, i + 1, turns)),
    correctness: reward === null ? null : isSolved ? 1 : 0,
    progress: null,
    operational: null,
    reward,
    step_count: steps.length,
    done_reason: last?.done ? "answered" : null,
    parse_failures: 0,
    repeats: 0,
    invalid: 0,
    error,
    ...(Object.keys(metrics).length > 0 && { metrics }),
  };
}

/** Sums of thirds and tenths are not exact. */
const ROUNDING = 1e-9;

function isEnough(reward: number, { solvedReward }: Environment): boolean {
  return solvedReward === undefined ? reward > 0 : reward >= solvedReward - ROUNDING;
}

/** The action type of a reply. The type lists SQL's; readers of records accept any. */
const TEXT = "TEXT" as string as StepRecord["action"]["action_type"];

const DIFFICULTIES = ["easy", "medium", "hard"] as const;

function stepRecord(task: Task, reply: string, step: TextStep, count: number, turns: number): StepRecord {
  const shown = observation(task, step, count, turns);
  return {
    action: { action_type: TEXT, argument: reply },
    text: reply,
    parse_error: null,
    observation: shown,
    reward_breakdown: shown.reward_breakdown,
  };
}

/** What the environment returned, as the observation that transcripts show. Components of the reward have its own names. */
function observation(task: Task, step: TextStep, step_count: number, turns: number): StepRecord["observation"] {
  return {
    question: task.text,
    schema_info: "",
    result: step.text,
    error: null,
    error_class: null,
    step_count,
    budget_remaining: Math.max(0, turns - step_count),
    action_history: [],
    reward_breakdown: (step.rewards ?? {}) as StepRecord["reward_breakdown"],
    done: step.done,
    reward: step.reward,
  };
}

/** Metrics of a batch in a text environment: the share of solved episodes, and what it reports, as means over episodes. */
export function reportedMetrics(
  episodes: readonly Pick<EpisodeRecord, "metrics" | "steps" | "correctness">[],
): Record<string, number> {
  const scored = episodes.filter(({ correctness }) => correctness !== null);
  const reported = meansByName(episodes.map(({ metrics = {} }) => metrics));
  const rewards = meansByName(episodes.map(({ steps }) => sumsByName(steps.map((step) => step.reward_breakdown))));
  return {
    ...(scored.length > 0 && { "environment/solved": sum(scored.map((one) => one.correctness ?? 0)) / scored.length }),
    ...Object.fromEntries(Object.entries(reported).map(([name, value]) => [`environment/${name}`, value])),
    ...Object.fromEntries(Object.entries(rewards).map(([name, value]) => [`environment/reward/${name}`, value])),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function sumsByName(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  return Object.fromEntries(Object.entries(records.reduce(added, {})).map(([name, [total]]) => [name, total]));
}

/** Means over the records that have the name. */
function meansByName(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  return meansOf(records.reduce(added, {}));
}
