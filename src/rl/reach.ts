// What a model can do before it is trained: right at once, and right at least once in several tries. Reward can only make
// likelier what the model already does now and then.

import type { DataSet } from "../gym/data/index.ts";
import { type EnvironmentSource, evaluate, localEnvironments } from "../gym/evaluation/index.ts";
import { modelPlayer } from "../gym/players/index.ts";
import { environmentOptionsOf, type GRPOConfig } from "./config.ts";
import { samplingOf } from "./rollout.ts";
import type { Reach, Warning } from "./run/records.ts";
import { rewardedQuestions } from "./run/split.ts";
import { concurrencyOf, type SpeakingModel } from "./standing.ts";

/** A smaller share of questions that are ever solved leaves most groups without any reward to compare. */
const LEAST_SOLVED = 0.05;

export interface ReachOptions {
  readonly signal?: AbortSignal | undefined;
  /** @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
  readonly onProgress?: (done: number, total: number) => void;
}

/** Plays training questions greedily and `pass_k` times as training samples; the training's own random numbers are others. */
export async function reachOf(
  data: DataSet,
  { engine, tokenizer, turns }: SpeakingModel,
  config: GRPOConfig,
  { signal, environments = localEnvironments(data), onProgress }: ReachOptions = {},
): Promise<Reach> {
  const { pass_k: tries, pass_questions, difficulty_filter: difficulty, seed } = config;
  const asked = rewardedQuestions(data, config);
  const databases = [...new Set(asked.map(({ database_name }) => database_name))];
  const questions = Math.min(pass_questions, asked.length);
  const environment = () => environments.open(environmentOptionsOf(config));
  let done = 0;
  const play = async (manner: "greedy" | "sampled") => {
    const sampling = samplingOf(config, tokenizer);
    const temperature = manner === "greedy" ? 0 : sampling.temperature!;
    const player = modelPlayer({ ...sampling, temperature, engine, turns, key: [seed, "reach", manner] });
    const report = await evaluate(data, player, {
      ...{
        split: "train",
        difficulty,
        databases,
        questions,
        seed,
        signal,
        environment,
        concurrency: concurrencyOf(config),
      },
      tries: manner === "greedy" ? 1 : tries,
      onProgress: () => onProgress?.(++done, questions * (1 + tries)),
    });
    signal?.throwIfAborted();
    return report;
  };
  const [greedy, sampled] = [await play("greedy"), await play("sampled")];
  return {
    ...{ questions, tries, greedy: greedy.success_rate },
    ...{ sampled: sampled.success_rate, solved_in_tries: sampled.solved_in_tries },
  };
}

/** Said before training where reward will find next to nothing. */
export function reachWarning({ solved_in_tries, tries, questions }: Reach): Warning | null {
  if (solved_in_tries === null || solved_in_tries >= LEAST_SOLVED) return null;
  const share = `${(100 * solved_in_tries).toFixed(1)} %`;
  return {
    step: 0,
    code: "out_of_reach",
    message: `the model was right at least once in ${tries} tries on ${share} of ${questions} training questions: reward has almost nothing to make likelier`,
    remedy:
      "fine-tune on episodes first (sft_steps, `sqlenv warmup`), try --prompt instruct with --shots 3, or ask easier questions",
  };
}
