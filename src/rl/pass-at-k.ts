// Success of a model before training: greedy, and at least once in k samples (pass@k). RL can
// only reinforce what the model already does sometimes.

import { playConcurrently, sampleRounds, summarize } from "../gym/evaluation/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { Environment } from "./environment.ts";
import { evaluationConcurrency, modelWorker } from "./evaluate-model.ts";
import type { PassAtK, Warning } from "./run/records.ts";
import type { SamplingModel } from "./trainable-model.ts";

/** With a lower pass@k, most groups are all wrong. */
const MIN_SOLVED = 0.05;

export interface PassAtKOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Plays training tasks greedily, and `pass_k` times as training samples, with random numbers that training does not use. */
export async function measurePassAtK(
  environment: Environment,
  model: SamplingModel,
  config: GRPOConfig,
  { signal, onProgress }: PassAtKOptions = {},
): Promise<PassAtK> {
  const { pass_k: tries, pass_questions, seed } = config;
  const tasks = environment.tasks("train");
  const questions = Math.min(pass_questions, tasks.length);
  let done = 0;
  const play = async (decoding: "greedy" | "sampled") => {
    const sample = sampleRounds(tasks, { drawn: questions, tries: decoding === "greedy" ? 1 : tries, seed });
    const open = modelWorker({
      environment,
      model,
      config: { ...config, eval_step_budget: null }, // as training plays
      purpose: "preview",
      split: "train",
      decoding,
      key: [seed, "reach", decoding],
      seed,
      signal,
    });
    const records = await playConcurrently(sample, open, {
      concurrency: evaluationConcurrency(config),
      signal,
      onProgress: () => onProgress?.(++done, questions * (1 + tries)),
    });
    signal?.throwIfAborted();
    return summarize(records);
  };
  const [greedy, sampled] = [await play("greedy"), await play("sampled")];
  return {
    questions,
    tries,
    greedy: greedy.success_rate,
    sampled: sampled.success_rate,
    solved_in_tries: sampled.solved_in_tries,
  };
}

/** The warning before a training with hardly any correct episodes. */
export function passAtKWarning({ solved_in_tries, tries, questions }: PassAtK): Warning | null {
  if (solved_in_tries === null || solved_in_tries >= MIN_SOLVED) return null;
  const share = `${(100 * solved_in_tries).toFixed(1)} %`;
  return {
    step: 0,
    code: "out_of_reach",
    message: `the model was right at least once in ${tries} tries on ${share} of ${questions} training questions: reward has almost nothing to make likelier`,
    remedy:
      "fine-tune on episodes first (sft_steps, `sqlenv sft`), try --prompt instruct with --shots 3, or ask easier questions",
  };
}
