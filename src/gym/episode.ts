// Plays one episode from reset to the end and records it, without the gold.

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
import { EpisodeBoundary } from "./episode-boundary.ts";
import type { Player } from "./players/index.ts";

/** What an episode needs from an environment. A local one is synchronous, a remote one is not. */
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
  /** Why the text could not be parsed; null if it could. */
  readonly parse_error: string | null;
  readonly observation: SQLObservation;
  readonly reward_breakdown: RewardBreakdown;
}

/** An episode as written to episodes.jsonl. */
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
  /** Id of the environment's rules; absent in records from before rules existed. */
  readonly rules?: string;
  /** Whether the training split has questions on this database. */
  readonly seen: boolean;
  /** The first observation; null if `reset` failed. */
  readonly start: SQLObservation | null;
  readonly steps: readonly StepRecord[];
  readonly correctness: 0 | 1 | null;
  readonly progress: number | null;
  readonly operational: number | null;
  /** Sum of the step rewards; null if the episode cannot be scored. */
  readonly reward: number | null;
  readonly step_count: number;
  readonly done_reason: DoneReason | null;
  readonly parse_failures: number;
  readonly repeats: number;
  /** Number of failed actions; repeating a successful action is not a failure. */
  readonly invalid: number;
  /** Why the episode was aborted (endpoint down, environment lost); such an episode is not scored. */
  readonly error: string | null;
  /** Numbers that the environment reported, by name: means over the steps that had one. Absent for SQL. */
  readonly metrics?: Readonly<Record<string, number>>;
}

export interface PlayOptions {
  readonly question: QuestionRecord;
  /** Seed of the player's random numbers. @default the question's id */
  readonly seed?: string | number;
  /** Whether the training split has questions on this database. @default false */
  readonly seen?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called with the first observation. */
  readonly onStart?: (observation: SQLObservation) => void | Promise<void>;
  /** Called after each step. */
  readonly onStep?: (step: StepRecord) => void | Promise<void>;
}

/**
 * Plays one question. An error from the environment, or a `PlayerError` from the player, is stored in the record's
 * `error` and the episode is not scored. Everything else is rethrown: engine failures, bugs, errors in `onStart` and
 * `onStep`, and abort reasons.
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
  const boundary = new EpisodeBoundary(signal);
  try {
    start = await boundary.call(() => boundary.wait(env.reset({ question_id: question.question_id })));
    await onStart?.(start);
    rules = (await boundary.call(() => boundary.wait(env.rules))) ?? DEFAULT_RULES;
    const policy = player.start({ seed, question, rules, signal });
    let observation = start;
    // The loop stops at the budget, whatever a remote environment reports.
    for (let left = start.budget_remaining; !observation.done && left > 0; left--) {
      const decision = await boundary.wait(policy(observation));
      if (!decision) break;
      const { action, text = null, parse_error = null } = decision;
      observation = await boundary.call(() => boundary.wait(env.step(action)));
      const { reward_breakdown } = observation;
      const step = { action, text, parse_error: parse_error?.message ?? null, observation, reward_breakdown };
      steps.push(step);
      await onStep?.(step);
    }
    outcome = await boundary.call(() => env.outcome);
  } catch (thrown) {
    error = boundary.errorOf(thrown);
  } finally {
    boundary.end();
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

/** The facts of an episode that its record is made from. */
export interface PlayedEpisode extends Pick<EpisodeRecord, "player" | "seen" | "start" | "steps" | "error"> {
  readonly prompt?: string | undefined;
  readonly rules: EnvironmentRules;
  /** `UNSCORED` if the episode was aborted. */
  readonly outcome: Outcome;
}

/** Makes the record of a finished episode. */
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

/** Whether a step repeated an earlier action. Empty turns cost the same but are not repeats. */
export function isRepeat({ observation, reward_breakdown }: StepRecord): boolean {
  if (observation.error_class === "bad_action") return false;
  return observation.error_class === "repeat" || reward_breakdown.repeat !== 0;
}

/** The outcome of an episode that cannot be scored. */
export const UNSCORED: Outcome = { correctness: null, progress: null, operational: null, done_reason: null };

function rewardOf(steps: readonly StepRecord[]): number {
  const sum = steps.reduce((total, { observation }) => total + (observation.reward ?? 0), 0);
  return Math.round(sum * 1e9) / 1e9;
}
