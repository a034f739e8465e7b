// The first part of a training that has one: right episodes on training databases, made on the spot and imitated.
import type { Datum } from "../engine/index.ts";
import { rulesOf } from "../env/index.ts";
import { UsageError } from "../errors.ts";
import type { PromptChoice } from "../players/index.ts";
import type { DataSet } from "../questions/index.ts";
import type { GRPOConfig } from "./config.ts";
import { dataDemonstrations } from "./demonstrations.ts";
import type { TrainableModel } from "./trainer.ts";
import { encodeTranscript } from "./transcripts.ts";
import { type WarmupOptions, type WarmupReport, warmup } from "./warmup.ts";

/** Episodes a step learns from. */
const EPISODES_A_STEP = 8;

/** Teaches the model what `imitation_…` says; the same config and data give the same weights. */
export async function imitate(
  { engine, turns }: TrainableModel,
  data: DataSet,
  config: GRPOConfig,
  { onStep, signal }: Pick<WarmupOptions, "onStep" | "signal"> = {},
): Promise<WarmupReport> {
  const { imitation_episodes: episodes, imitation_epochs: epochs, imitation_learning_rate: learning_rate } = config;
  const { difficulty_filter: difficulties, step_budget, seed, max_context_tokens } = config;
  const examples: Datum[] = [];
  const rules = rulesOf(config);
  const prompt: PromptChoice = { prompt: config.prompt, shots: config.shots };
  for await (const transcript of dataDemonstrations(data, { episodes, difficulties, step_budget, rules, prompt, seed }))
    examples.push(encodeTranscript(transcript, turns));
  const fitting = examples.filter(({ tokens }) => tokens.length <= max_context_tokens);
  if (fitting.length === 0) {
    const shortest = examples.reduce((least, { tokens }) => Math.min(least, tokens.length), Number.POSITIVE_INFINITY);
    throw new UsageError({
      what: "no episode to imitate fits max_context_tokens",
      value: max_context_tokens,
      remedy:
        examples.length === 0
          ? "choose questions that the players answer right, or set imitation_episodes to 0"
          : `the shortest has ${shortest} tokens: raise max_context_tokens, or use fewer shots`,
    });
  }
  const total = fitting.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const batch_tokens = Math.ceil((total / Math.max(1, fitting.length)) * EPISODES_A_STEP);
  function* repeatedly(): Generator<Datum> {
    for (let epoch = 0; epoch < epochs; epoch++) yield* examples;
  }
  const steps = Math.max(1, Math.ceil((epochs * total) / batch_tokens));
  return warmup(engine, repeatedly(), {
    ...{ steps, batch_tokens, learning_rate, max_context_tokens, weight_decay: 0 },
    ...(onStep && { onStep }),
    ...(signal && { signal }),
  });
}
