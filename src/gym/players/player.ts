// Players: for each episode a player returns a policy, a function from observations to decisions.

import type { ActionParseError } from "../../errors.ts";
import type { QuestionRecord } from "../data/index.ts";
import type { EnvironmentRules, SQLAction, SQLObservation } from "../env/index.ts";

/** What a player gets when an episode starts. */
export interface EpisodeContext {
  /** Key of the episode's random numbers, an argument of `random()`: the same key plays the same episode. */
  readonly seed: string | number;
  /** The question with its gold. Only the oracle and the teacher read it; other players have the observations. */
  readonly question: QuestionRecord;
  /** The environment's rules, such as whether `@last` is an answer. @default DEFAULT_RULES */
  readonly rules?: EnvironmentRules | undefined;
  /** Aborted when the episode is cancelled. */
  readonly signal?: AbortSignal | undefined;
}

/** One decision: the action, and the text of players that write text. */
export interface Decision {
  readonly action: SQLAction;
  readonly text?: string;
  /** Set when the text was not an action and was sent to the environment as a QUERY unchanged. */
  readonly parse_error?: ActionParseError | null;
  /** Tokens that the player generated for this decision, and new prompt tokens, where it counts them. */
  readonly tokens?: number;
  readonly prompt_tokens?: number;
}

/** Decides on an action; called with the first observation, then with that after each action. Null ends the episode. */
export type Policy = (observation: SQLObservation) => Decision | null | Promise<Decision | null>;

/** Plays any number of episodes at once: the state of an episode belongs to the policy that `start` returns. */
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
