// Collects attempts at a benchmark's questions: episodes reduced to the final query and the answer.

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

/** One attempt at a question. */
export interface Attempt {
  /** The final query; null if none ran. */
  readonly sql: string | null;
  /** Whether the environment accepted the answer; null in protocols without an answer. */
  readonly answer: boolean | null;
  /** Number of new tokens; `prompt_tokens` counts prompt tokens. Null if the player does not count them. */
  readonly tokens: number | null;
  readonly prompt_tokens: number | null;
  /** Error of a failed attempt, which counts as wrong. */
  readonly error: string | null;
  /** Whether one of its statements hit the time limit. */
  readonly stopped?: boolean;
  /** A transcript for people; not part of results. */
  readonly shown?: string;
  /** Why there is no query, if not by the player's fault. */
  readonly why?: string;
}

/** The attempts at each question, by its id. */
export type Attempts = ReadonlyMap<string, readonly Attempt[]>;

export interface AttemptOptions {
  readonly seed: number;
  /** Number of attempts per question. */
  readonly tries: number;
  readonly concurrency: number;
  /** Filters: only questions on these databases, of these difficulties, and at most `questions` of them. */
  readonly databases: readonly string[];
  readonly difficulty?: readonly Difficulty[] | undefined;
  readonly questions?: number | undefined;
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface EpisodeAttemptOptions extends AttemptOptions {
  readonly step_budget: number;
  readonly rules: EnvironmentRules;
  /** @default an environment in this thread */
  readonly environment?: () => PlayableEnvironment;
}

/** Lets a player explore unknown databases; resolves with undefined if interrupted. */
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
          sql: lastQuery(record),
          answer: correctness === 1,
          tokens,
          prompt_tokens,
          error,
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

/** Wraps a player to count the tokens of each episode, keyed by the episode's seed. */
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
