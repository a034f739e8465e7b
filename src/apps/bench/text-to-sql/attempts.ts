// Attempts at a benchmark's questions: what a player's episode came to, reduced to the query and the answer that count.

import type { DataSet, Difficulty } from "../../../gym/data/index.ts";
import type { EnvironmentRules } from "../../../gym/env/index.ts";
import {
  evaluate,
  formatTranscript,
  lastQuery,
  type PlayableEnvironment,
  type Progress,
} from "../../../gym/evaluation/index.ts";
import type { Player } from "../../../gym/players/index.ts";

/** One try at one question. */
export interface Attempt {
  /** The query that counts; null where none ran. */
  readonly sql: string | null;
  /** Whether the environment took the answer for right; null in protocols without an answer. */
  readonly answer: boolean | null;
  /** Tokens written, and tokens shown; null where nobody counted. */
  readonly tokens: number | null;
  readonly prompt_tokens: number | null;
  /** What broke the attempt, which then counts as wrong. */
  readonly error: string | null;
  /** Whether the clock stopped one of its statements. */
  readonly stopped?: boolean;
  /** What was done or written, for people; not kept in results. */
  readonly shown?: string;
  /** Why there is no query, where it is not the player's fault. */
  readonly why?: string;
}

/** The attempts at each question, by its id. */
export type Attempts = ReadonlyMap<string, readonly Attempt[]>;

export interface AttemptOptions {
  readonly seed: number;
  /** Attempts at each question. */
  readonly tries: number;
  readonly concurrency: number;
  /** Only questions on these databases, of these difficulties, and so many of them. */
  readonly databases: readonly string[];
  readonly difficulty?: readonly Difficulty[] | undefined;
  readonly questions?: number | undefined;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface EpisodeAttemptOptions extends AttemptOptions {
  readonly step_budget: number;
  readonly rules: EnvironmentRules;
  /** @default in this thread */
  readonly environment?: () => PlayableEnvironment;
}

/** Lets a player explore databases it is told nothing about; undefined when interrupted. */
export async function playAttempts(
  data: DataSet,
  player: Player,
  options: EpisodeAttemptOptions,
): Promise<Attempts | undefined> {
  const counts = new Map<string, Counts>();
  const attempts = new Map<string, Attempt[]>();
  const report = await evaluate(data, counting(player, counts), {
    ...options,
    split: "eval",
    onEpisode: (record) => {
      const before = attempts.get(record.question_id) ?? [];
      const { tokens = null, prompt_tokens = null } =
        counts.get(`${options.seed}/${record.question_id}/${before.length}`) ?? {};
      const { error, correctness } = record;
      attempts.set(record.question_id, [
        ...before,
        {
          ...{ sql: lastQuery(record), answer: correctness === 1, tokens, prompt_tokens, error },
          ...(record.steps.some(({ observation }) => observation.error_class === "timeout") && { stopped: true }),
          ...(before.length === 0 && { shown: formatTranscript(record) }),
        },
      ]);
    },
  });
  return report.interrupted ? undefined : attempts;
}

interface Counts {
  tokens?: number;
  prompt_tokens?: number;
}

/** The player, with the tokens of each episode counted under its seed. */
function counting(player: Player, counts: Map<string, Counts>): Player {
  return {
    ...player,
    start: (episode) => {
      const turn = player.start(episode);
      const counted: Counts = {};
      counts.set(String(episode.seed), counted);
      return async (observation) => {
        const move = await turn(observation);
        if (move?.tokens !== undefined) counted.tokens = (counted.tokens ?? 0) + move.tokens;
        if (move?.prompt_tokens !== undefined)
          counted.prompt_tokens = (counted.prompt_tokens ?? 0) + move.prompt_tokens;
        return move;
      };
    },
  };
}
