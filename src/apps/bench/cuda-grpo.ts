// Measures a whole GRPO step of a large model with random weights on a GPU, including the environment. Episodes follow
// a script as in apps/bench/grpo.ts, with every turn padded to the same length; they are returned so that a peer can
// replay them.

import type { DataSet } from "../../gym/data/index.ts";
import type { LocalEngine } from "../../lm/engine/index.ts";
import { CHATML_TEMPLATE, createTurnEncoder, Tokenizer } from "../../lm/model/index.ts";
import { freshModel } from "../../rl/index.ts";
import {
  benchGRPO,
  type EpisodeTokens,
  type GRPOShape,
  grpoConfig,
  type StepSeconds,
  scriptedSteps,
  someTranscripts,
} from "./grpo.ts";
import { STEP_PARTS } from "./grpo-comparison.ts";
import { median } from "./median.ts";

/**
 * Eight questions with eight episodes each; turns have 64 tokens (or the action's length if longer), as with a sentence
 * or two before the action.
 */
export const CUDA_GRPO: GRPOShape = {
  questions: 8,
  generations: 8,
  script: "early",
  peer_batch: 32,
  turn_tokens: 64,
};

export interface CudaGRPO {
  readonly episodes: number;
  readonly turns: number;
  readonly sampled_tokens: number;
  readonly tokens: number;
  readonly computed_tokens: number;
  readonly steps: number;
  /** Median seconds per phase. */
  readonly seconds: StepSeconds;
}

/** Runs steps of this shape; the first one is warmup. `played` holds the episodes that the last step trained on. */
export async function measureGRPO(
  engine: LocalEngine,
  data: DataSet,
  steps: number,
  shape: GRPOShape = CUDA_GRPO,
): Promise<{ readonly result: CudaGRPO; readonly played: readonly EpisodeTokens[] }> {
  const { tokenizerFiles } = freshModel(await someTranscripts(), { vocab_size: VOCABULARY });
  const tokenizer = new Tokenizer(tokenizerFiles);
  const turns = createTurnEncoder(tokenizer, CHATML_TEMPLATE, { eosIds: [2] });
  const config = grpoConfig(shape, steps + 1);
  const model = { engine, tokenizer, turns };
  const seconds: StepSeconds[] = [];
  let [played, facts]: [readonly EpisodeTokens[], Omit<CudaGRPO, "seconds" | "steps">] = [[], NOTHING];
  await benchGRPO(model, data, config, scriptedSteps(data, model, config, shape), (record) => {
    seconds.push(record.seconds);
    played = record.episodes!;
    const { episodes, sampled_tokens, tokens } = record.played;
    const spoken = played.reduce((sum, { sampled }) => sum + sampled.length, 0);
    facts = { episodes, turns: spoken, sampled_tokens, tokens, computed_tokens: record.computed_tokens! };
  });
  const counted = seconds.slice(1);
  const medians = STEP_PARTS.map((part) => [part, median(counted.map((step) => step[part]))]);
  return { result: { ...facts, steps, seconds: Object.fromEntries(medians) as StepSeconds }, played };
}

const VOCABULARY = 1_536;
const NOTHING = { episodes: 0, turns: 0, sampled_tokens: 0, tokens: 0, computed_tokens: 0 };
