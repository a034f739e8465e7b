// Players: for each episode, a player returns a policy, a function from observations to decisions.

import type { ActionParseError } from "../../errors.ts";
import type { QuestionRecord } from "../data/index.ts";
import type { EnvironmentRules, SQLAction, SQLObservation } from "../env/index.ts";

/** What a player gets when an episode starts. */
export interface EpisodeContext {
  /** Seed of the episode's random numbers, passed to `random()`: equal seeds play equal episodes. */
  readonly seed: string | number;
  /** The question with its gold query. Only the oracle and the teacher read it; other players use the observations. */
  readonly question: QuestionRecord;
  /** The environment's rules, such as whether `@last` is allowed. @default DEFAULT_RULES */
  readonly rules?: EnvironmentRules | undefined;
  /** Aborted when the episode is cancelled. */
  readonly signal?: AbortSignal | undefined;
}

/** One decision: the action and, for players that write text, the text. */
export interface Decision {
  readonly action: SQLAction;
  readonly text?: string;
  /** Set if the text contained no action and was sent unchanged as a QUERY. */
  readonly parse_error?: ActionParseError | null;
  /** Number of tokens generated for this decision, and of new prompt tokens, if the player counts them. */
  readonly tokens?: number;
  readonly prompt_tokens?: number;
}

/**
 * Decides on an action. Called with the first observation and then with the one after each action. Null ends the
 * episode.
 */
export type Policy = (observation: SQLObservation) => Decision | null | Promise<Decision | null>;

/** Plays any number of episodes at once: each episode's state is in the policy that `start` returns. */
export interface Player {
  readonly name: string;
  /** Id of its prompt, such as `instruct-1/1-shot`; absent for players without a prompt. */
  readonly prompt_id?: string | undefined;
  start(episode: EpisodeContext): Policy;
}

/** @deprecated use `Decision` */
export type Move = Decision;

/** @deprecated use `Policy` */
export type Turn = Policy;
