// Plays one episode from reset to the end and records it, without the gold.

import { AbortableWait } from "../abort.ts";
import { messageOf, PlayerError } from "../errors.ts";
import type { AnswerType, Difficulty, QuestionRecord, Split } from "./data/index.ts";
import {
  DEFAULT_RULES,
  type DoneReason,
  type EnvironmentRules,
  type Outcome,
  type ResetOptions,
  type RewardBreakdown,
  rulesId,
  type SQLAction,
  type SQLObservation,
} from "./env/index.ts";
import type { Player } from "./players/index.ts";

/** What an episode needs of an environment; ours is synchronous, a remote one is not. */
export interface PlayableEnvironment {
  reset(options: ResetOptions): SQLObservation | Promise<SQLObservation>;
  step(action: SQLAction): SQLObservation | Promise<SQLObservation>;
  readonly outcome: Outcome | Promise<Outcome>;
  /** @default DEFAULT_RULES */
  readonly rules?: EnvironmentRules | Promise<EnvironmentRules>;
  close?(): void | Promise<void>;
}

export interface StepRecord {
  readonly action: SQLAction;
  /** The player's text; null for players that write none. */
  readonly text: string | null;
  /** Why the text could not be parsed; null when it could. */
  readonly parse_error: string | null;
  readonly observation: SQLObservation;
  readonly reward_breakdown: RewardBreakdown;
}

/** An episode as it is written to episodes.jsonl. */
export interface EpisodeRecord {
  readonly player: string;
  readonly question_id: string;
  readonly question: string;
  readonly database_name: string;
  readonly difficulty: Difficulty;
  readonly answer_type: AnswerType;
  readonly split: Split;
  /** Id of the player's prompt; absent for players without a prompt. */
  readonly prompt?: string;
  /** Id of the environment's rules; absent in records of versions without rules. */
  readonly rules?: string;
  /** Whether training has questions on this database. */
  readonly seen: boolean;
  /** The first observation; null when the environment could not be reset. */
  readonly start: SQLObservation | null;
  readonly steps: readonly StepRecord[];
  readonly correctness: 0 | 1 | null;
  readonly progress: number | null;
  readonly operational: number | null;
  /** Sum of the steps' rewards; null where the episode cannot be scored. */
  readonly reward: number | null;
  readonly step_count: number;
  readonly done_reason: DoneReason | null;
  readonly parse_failures: number;
  readonly repeats: number;
  /** Actions that failed; repeating one that worked is no failure. */
  readonly invalid: number;
  /** Why the episode broke off (an endpoint was down, an environment was lost); such an episode is not scored. */
  readonly error: string | null;
}

export interface PlayOptions {
  readonly question: QuestionRecord;
  /** Key of the player's random numbers. @default the question's id */
  readonly seed?: string | number;
  /** Whether training has questions on this database. @default false */
  readonly seen?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called with the first observation. */
  readonly onStart?: (observation: SQLObservation) => void | Promise<void>;
  /** Called after each step. */
  readonly onStep?: (step: StepRecord) => void | Promise<void>;
}

/**
 * Plays one question. Whatever the environment throws and a `PlayerError` of the player end up in the record's `error`:
 * the episode is not scored. Everything else is thrown: an engine that fails, a bug, what `onStart` and `onStep` throw,
 * and the reason of an abort.
 *
 * @example
 * const env = new SQLEnvironment(data);
 * const record = await playEpisode(env, keywordPlayer(), { question: data.questions[0]! });
 * console.log(formatTranscript(record));
 */
export async function playEpisode(
  env: PlayableEnvironment,
  player: Player,
  { question, seed = question.question_id, seen = false, signal, onStart, onStep }: PlayOptions,
): Promise<EpisodeRecord> {
  let start: SQLObservation | null = null;
  let outcome: Outcome = UNSCORED;
  let rules = DEFAULT_RULES;
  let error: string | null = null;
  const steps: StepRecord[] = [];
  const waiter = new AbortableWait(signal);
  try {
    start = await called(() => waiter.wait(env.reset({ question_id: question.question_id })));
    await onStart?.(start);
    rules = (await called(() => waiter.wait(env.rules))) ?? DEFAULT_RULES;
    const policy = player.start({ seed, question, rules, signal });
    let observation = start;
    // The budget limits the loop whatever a remote environment does.
    for (let left = start.budget_remaining; !observation.done && left > 0; left--) {
      const decision = await waiter.wait(policy(observation));
      if (!decision) break;
      const { action, text = null, parse_error = null } = decision;
      observation = await called(() => waiter.wait(env.step(action)));
      const { reward_breakdown } = observation;
      const step = { action, text, parse_error: parse_error?.message ?? null, observation, reward_breakdown };
      steps.push(step);
      await onStep?.(step);
    }
    outcome = await called(() => env.outcome);
  } catch (thrown) {
    if (signal?.aborted) throw signal.reason;
    if (thrown instanceof EnvironmentFailure) error = messageOf(thrown.cause);
    else if (thrown instanceof PlayerError) error = thrown.message;
    else throw thrown;
  } finally {
    waiter.end();
  }
  return recordEpisode(question, {
    player: player.name,
    prompt: player.prompt_id,
    rules,
    seen,
    start,
    steps,
    outcome,
    error,
  });
}

/** What an episode was, for its record. */
export interface PlayedEpisode extends Pick<EpisodeRecord, "player" | "seen" | "start" | "steps" | "error"> {
  readonly prompt?: string | undefined;
  readonly rules: EnvironmentRules;
  /** `UNSCORED` where the episode broke off. */
  readonly outcome: Outcome;
}

/** The record of an episode that has ended. */
export function recordEpisode(question: QuestionRecord, played: PlayedEpisode): EpisodeRecord {
  const { player, prompt, rules, seen, start, steps, outcome, error } = played;
  const count = (test: (step: StepRecord) => boolean) => steps.filter(test).length;
  return {
    player,
    question_id: question.question_id,
    question: question.question_text,
    database_name: question.database_name,
    difficulty: question.difficulty,
    answer_type: question.answer_type,
    split: question.split,
    ...(prompt !== undefined && { prompt }),
    rules: rulesId(rules),
    seen,
    start,
    steps,
    correctness: outcome.correctness,
    progress: outcome.progress,
    operational: outcome.operational,
    reward: outcome.correctness === null ? null : rewardOf(steps),
    step_count: steps.length,
    done_reason: outcome.done_reason,
    parse_failures: count((step) => step.parse_error !== null),
    repeats: count(isRepeat),
    invalid: count(({ observation }) => observation.error_class !== null && observation.error_class !== "repeat"),
    error,
  };
}

/** Whether a step repeated an earlier action. Empty turns cost the same and are not repeats. */
export function isRepeat({ observation, reward_breakdown }: StepRecord): boolean {
  if (observation.error_class === "bad_action") return false;
  return observation.error_class === "repeat" || reward_breakdown.repeat !== 0;
}

/** Marks an error as the environment's. Its own type does not: remote environments and those on threads lose it. */
class EnvironmentFailure extends Error {}

async function called<T>(environment: () => T | Promise<T>): Promise<T> {
  try {
    return await environment();
  } catch (cause) {
    throw new EnvironmentFailure("the environment failed", { cause });
  }
}

/** The outcome of an episode that cannot be scored. */
export const UNSCORED: Outcome = { correctness: null, progress: null, operational: null, done_reason: null };

function rewardOf(steps: readonly StepRecord[]): number {
  const sum = steps.reduce((total, { observation }) => total + (observation.reward ?? 0), 0);
  return Math.round(sum * 1e9) / 1e9;
}
