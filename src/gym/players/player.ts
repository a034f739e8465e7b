// Who acts: a player starts an episode and gets back a function that answers each observation with a move.

import type { ActionParseError } from "../../errors.ts";
import type { QuestionRecord } from "../data/index.ts";
import type { EnvironmentRules, SQLAction, SQLObservation } from "../env/index.ts";

/** What a player is told when an episode starts. */
export interface EpisodeContext {
  /** Key for `random()`: the same key plays the same episode. */
  readonly seed: string | number;
  /** The question with its gold. Only the oracle looks at it; everyone else has the observations. */
  readonly question: QuestionRecord;
  /** The environment's rules: whether `@last` may be answered, for one. @default DEFAULT_RULES */
  readonly rules?: EnvironmentRules | undefined;
  /** Aborted when the episode is not wanted any more. */
  readonly signal?: AbortSignal | undefined;
}

/** One decision: the action, and for players that write text what they wrote. */
export interface Decision {
  readonly action: SQLAction;
  readonly text?: string;
  /** Set when the text was not an action and went to the environment as a QUERY as it stands. */
  readonly parse_error?: ActionParseError | null;
  /** Tokens the player wrote for this move, and tokens it was shown that it had not seen before, where it counts them. */
  readonly tokens?: number;
  readonly prompt_tokens?: number;
}

/** Decides one move; called with the first observation, then with what each action led to. Null ends the episode as it stands. */
export type Policy = (observation: SQLObservation) => Decision | null | Promise<Decision | null>;

/** Plays any number of episodes at once: what belongs to an episode lives in the function `start` returns. */
export interface Player {
  readonly name: string;
  /** Which prompt it was asked with, such as `instruct-1/1-shot`; absent for players that are not asked in words. */
  readonly prompt_id?: string | undefined;
  start(episode: EpisodeContext): Policy;
}
