// How good a player is: success on databases that training has questions on and on those it has none, greedy and sampled.

import { type DataSet, filterQuestions } from "../gym/data/index.ts";
import {
  type EnvironmentSource,
  type EpisodeRecord,
  evaluate,
  localEnvironments,
  summarize,
} from "../gym/evaluation/index.ts";
import { modelPlayer, type Player, randomPlayer, type TokenSampler } from "../gym/players/index.ts";
import type { Tokenizer, TurnEncoder } from "../lm/model/index.ts";
import { batchingOf, environmentOptionsOf, type GRPOConfig } from "./config.ts";
import { samplingOf } from "./rollout.ts";
import type { Manner, Place, Standing } from "./run/records.ts";

/** A model that can be asked. */
export interface SpeakingModel {
  readonly engine: TokenSampler;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
}

/** Enough to fill a batch. */
const LEAST_CONCURRENCY = 64;

/** Evaluation episodes played at once: as many as training plays, for which there is room, and not too few for a batch. */
export function concurrencyOf(config: GRPOConfig): number {
  return Math.max(LEAST_CONCURRENCY, batchingOf(config).generation_batch_size);
}

export const PLACES: readonly Place[] = ["seen", "unseen"];
export const MANNERS: readonly Manner[] = ["greedy", "sampled"];

export interface StandingOptions {
  /** On each place; null plays each question once. */
  readonly episodes: number | null;
  /** Sampled episodes on each place, where they are to be others than greedy ones; 0: none. @default as `episodes` */
  readonly sampled?: number | null;
  readonly signal?: AbortSignal | undefined;
  /** @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
  readonly onEpisode?: (record: EpisodeRecord, manner: Manner) => void;
  /** Called as episodes end, with how many there will be. */
  readonly onProgress?: (done: number, total: number) => void;
}

/** The model as a player that takes the likeliest action, or samples as in training. */
export function playerOf(model: SpeakingModel, manner: Manner, config: GRPOConfig, name = "model"): Player {
  const { engine, tokenizer, turns } = model;
  const sampling = samplingOf(evaluationConfig(config), tokenizer);
  const temperature = manner === "greedy" ? 0 : sampling.temperature!;
  return modelPlayer({ ...sampling, temperature, engine, turns, name, key: [config.seed, "evaluation", manner] });
}

/** The settings that evaluation episodes are played with. */
function evaluationConfig(config: GRPOConfig): GRPOConfig {
  const { eval_step_budget: step_budget, max_new_tokens, max_completion_length } = config;
  if (step_budget === null) return config;
  const all = step_budget * max_new_tokens;
  return { ...config, step_budget, max_completion_length: Math.max(max_completion_length, all) };
}

/** Where a model stands. */
export async function standingOf(
  data: DataSet,
  model: SpeakingModel,
  config: GRPOConfig,
  options: StandingOptions,
): Promise<Standing> {
  return play(data, (manner) => playerOf(model, manner, config), config, options);
}

/** Where a player stands that acts at random: the floor. */
export async function randomStanding(data: DataSet, config: GRPOConfig, options: StandingOptions): Promise<Standing> {
  return play(data, () => randomPlayer(), config, options);
}

async function play(
  data: DataSet,
  player: (manner: Manner) => Player,
  config: GRPOConfig,
  { episodes: wanted, sampled, signal, environments = localEnvironments(data), onEpisode, onProgress }: StandingOptions,
): Promise<Standing> {
  const { difficulty_filter: difficulty, seed } = config;
  const environment = () => environments.open(environmentOptionsOf(evaluationConfig(config)));
  const concurrency = concurrencyOf(config);
  const places = placesOf(data, config);
  const countOf = (place: Place, manner: Manner) => {
    const asked = (manner === "sampled" ? (sampled ?? wanted) : wanted) ?? Number.POSITIVE_INFINITY;
    return places[place].length === 0 ? 0 : Math.min(asked, questionsOn(data, config, places[place]));
  };
  const total = PLACES.flatMap((place) => MANNERS.map((manner) => countOf(place, manner))).reduce((a, b) => a + b);
  let done = 0;
  const standing: Record<Place, Partial<Standing[Place]>> = { seen: {}, unseen: {} };
  for (const place of PLACES) {
    for (const manner of MANNERS) {
      const databases = places[place];
      const episodes = countOf(place, manner);
      if (episodes === 0) {
        standing[place] = { ...standing[place], [manner]: summarize([]) };
        continue;
      }
      const report = await evaluate(data, player(manner), {
        ...{ split: "eval", difficulty, databases, seed, signal, environment, concurrency },
        episodes,
        onEpisode: (record) => onEpisode?.(record, manner),
        onProgress: () => onProgress?.(++done, total),
      });
      signal?.throwIfAborted();
      standing[place] = { ...standing[place], [manner]: report[place] };
    }
  }
  return standing as Standing;
}

/** Databases with evaluation questions, by whether training has questions on them too. */
export function placesOf(data: DataSet, { difficulty_filter: difficulty }: GRPOConfig): Record<Place, string[]> {
  const named = (split: "train" | "eval") =>
    new Set(
      filterQuestions(data.questions, { split, ...(split === "eval" ? { difficulty } : {}) }).map(
        (q) => q.database_name,
      ),
    );
  const trained = named("train");
  const asked = [...named("eval")];
  return { seen: asked.filter((name) => trained.has(name)), unseen: asked.filter((name) => !trained.has(name)) };
}

function questionsOn(
  data: DataSet,
  { difficulty_filter: difficulty }: GRPOConfig,
  database: readonly string[],
): number {
  return filterQuestions(data.questions, { split: "eval", difficulty, database }).length;
}
