// How a player did on the evaluation questions, and the same questions by several players side by side.

import type { DataSet } from "../gym/data/index.ts";
import { type EpisodeRecord, sampleQuestions } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import { marksOf } from "./run/outcomes.ts";
import type { ComparedQuestion, Comparison, Place, QuestionMarks, Standing } from "./run/records.ts";
import { placesOf, randomStanding, type SpeakingModel, type StandingOptions, standingOf } from "./standing.ts";

/** Where a player stands, and its greedy episodes on the questions that are compared. */
export interface Played {
  readonly player: string;
  readonly standing: Standing;
  readonly compared: readonly EpisodeRecord[];
  /** Greedy episodes judged; absent for random play. */
  readonly marks?: readonly QuestionMarks[];
}

export interface PlayedOptions extends Pick<StandingOptions, "signal" | "environments" | "onProgress"> {
  /** The player's name in comparisons, such as "before". */
  readonly player: string;
}

/**
 * Plays final_eval_episodes on each kind of database with a model.
 *
 * @example
 * const before = await playedBy(model, data, config, { player: "before" });
 */
export function playedBy(
  model: SpeakingModel,
  data: DataSet,
  config: GRPOConfig,
  options: PlayedOptions,
): Promise<Played> {
  return played((watch) => standingOf(data, model, config, watch), data, config, { ...options, judged: true });
}

/**
 * Plays them at random: the floor.
 *
 * @example
 * const baseline = await playedAtRandom(data, config);
 */
export function playedAtRandom(
  data: DataSet,
  config: GRPOConfig,
  options: PlayedOptions = { player: "random" },
): Promise<Played> {
  return played((watch) => randomStanding(data, config, watch), data, config, options);
}

async function played(
  play: (watch: StandingOptions) => Promise<Standing>,
  data: DataSet,
  config: GRPOConfig,
  { player, signal, environments, onProgress, judged = false }: PlayedOptions & { readonly judged?: boolean },
): Promise<Played> {
  const greedy = new Map<string, EpisodeRecord>();
  const standing = await play({
    episodes: config.final_eval_episodes,
    sampled: config.final_eval_sampled_episodes,
    ...{ signal, environments },
    onEpisode: (record, manner) => {
      if (manner === "greedy") greedy.set(record.question_id, { ...record, player });
    },
    ...(onProgress && { onProgress }),
  });
  const compared = comparedQuestions(data, config).flatMap((id) => greedy.get(id) ?? []);
  return { player, standing, compared, ...(judged && { marks: await marksOf([...greedy.values()], data) }) };
}

/** Evaluation questions to show side by side, those of unseen databases first: the first that every evaluation plays. */
function comparedQuestions(data: DataSet, config: GRPOConfig): string[] {
  const { difficulty_filter: difficulty, comparison_episodes: wanted, final_eval_episodes: episodes, seed } = config;
  const places = placesOf(data, config);
  const asked = (place: Place) => {
    if (places[place].length === 0) return [];
    const sample = sampleQuestions(data.questions, { split: "eval", difficulty, databases: places[place], seed });
    return sample.slice(0, episodes ?? sample.length).map(({ question }) => question.question_id);
  };
  const [unseen, seen] = [asked("unseen"), asked("seen")];
  const fromUnseen = Math.min(unseen.length, Math.max(Math.ceil(wanted / 2), wanted - seen.length));
  return [...unseen.slice(0, fromUnseen), ...seen.slice(0, wanted - fromUnseen)];
}

/**
 * The questions that every one of them played.
 *
 * @example
 * const random = await playedAtRandom(data, config);
 * const trained = await playedBy(model, data, config, { player: "after" });
 * const comparison = comparisonOf([random, trained]);
 */
export function comparisonOf(all: readonly Played[]): Comparison {
  const [first, ...others] = all;
  const questions = (first?.compared ?? []).flatMap((episode): ComparedQuestion[] => {
    const { question_id, question, database_name, seen } = episode;
    const same = others.map(({ compared }) => compared.find((other) => other.question_id === question_id));
    if (!same.every((other) => other !== undefined)) return [];
    return [{ question_id, question, database_name, seen, episodes: [episode, ...same] }];
  });
  return { players: all.map(({ player }) => player), questions };
}
