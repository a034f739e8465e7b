// A few greedy episodes of a training's model, for callbacks that show how it plays.
import { type DataSet, filterQuestions } from "../gym/data/index.ts";
import { type EnvironmentSource, type EpisodeRecord, evaluate } from "../gym/evaluation/index.ts";
import { environmentOptionsOf, type GRPOConfig } from "./config.ts";
import { rewardedQuestions } from "./run/split.ts";
import { playerOf, type SpeakingModel } from "./standing.ts";

export interface PreviewOptions {
  readonly split: "train" | "eval";
  readonly episodes: number;
  readonly seed: number;
  readonly environments: EnvironmentSource;
}

/** Plays questions of a split; of the training questions only those that are rewarded. */
export async function previewEpisodes(
  data: DataSet,
  model: SpeakingModel,
  config: GRPOConfig,
  { split, episodes, seed, environments }: PreviewOptions,
): Promise<EpisodeRecord[]> {
  const { difficulty_filter: difficulty } = config;
  const records: EpisodeRecord[] = [];
  const pool =
    split === "train" ? rewardedQuestions(data, config) : filterQuestions(data.questions, { split, difficulty });
  if (pool.length === 0) return records;
  const databases = [...new Set(pool.map(({ database_name }) => database_name))];
  await evaluate(data, playerOf(model, "greedy", config), {
    split,
    episodes,
    difficulty,
    databases,
    seed,
    concurrency: episodes,
    environment: () => environments.open(environmentOptionsOf(config)),
    onEpisode: (record) => records.push(record),
  });
  return records;
}
