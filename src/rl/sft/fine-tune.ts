// The SFT stage before GRPO: right episodes on practice worlds and, where gold SQL may be used, on some of the training
// databases. The same config and data give the same weights.

import { UsageError } from "../../errors.ts";
import type { DataSet, QuestionRecord } from "../../gym/data/index.ts";
import { rulesOf, SQLEnvironment } from "../../gym/env/index.ts";
import type { PromptChoice } from "../../gym/players/index.ts";
import type { Datum } from "../../lm/engine/index.ts";
import type { TurnEncoder } from "../../lm/model/index.ts";
import type { GRPOConfig } from "../config.ts";
import { sftQuestions, splitUnit } from "../run/split.ts";
import type { TrainableModel } from "../trainable-model.ts";
import { dataDemonstration, demonstrations, type Mixture, mixtureSchema, teacherOf } from "./demonstrations.ts";
import { mixed } from "./mixing.ts";
import { type SftOptions, type SftReport, trainSft } from "./sft.ts";
import { encodeTranscript } from "./transcripts.ts";

/** Step budget of a demonstration: enough for the teacher to explore the schema and repair an error. */
const STEP_BUDGET = 10;

/**
 * How often the teacher's query fails at first, for a wrong column or for a table it has not described. A fine-tuned model
 * that fails must have seen what to do next; the failing queries themselves are not learned.
 */
const MISTAKES = { stumbles: 0.3, omissions: 0.25, learn_mistakes: false };

/** SFT fails if this many episodes, the first that it draws, are all too long for the context. */
const TOO_LONG = 64;

export interface FineTuneOptions extends Pick<SftOptions, "onStep" | "signal"> {
  /**
   * Makes the episodes on practice worlds, for example on other threads. @default made in this thread, from
   * `practiceMixture`
   */
  readonly practice?: (mixture: Mixture) => AsyncGenerator<Datum, void>;
}

/** Who demonstrates on practice worlds: mostly the teacher, who explores first and repairs errors, and the oracle. */
export function practiceMixture(config: GRPOConfig): Mixture {
  const { seed, difficulty_filter: difficulties, prompt, shots } = config;
  return mixtureSchema.parse({
    seed,
    difficulties,
    prompt,
    shots,
    ...rulesOf(config),
    players: [
      { player: "teacher", share: 0.7 },
      { player: "oracle", share: 0.3 },
    ],
    questions_per_world: 4,
    step_budget: STEP_BUDGET,
    observed_weight: 0.1,
    ...MISTAKES,
  });
}

/**
 * Takes `sft_steps` steps. `loadSqlite()` must have been awaited.
 *
 * @example
 * const report = await fineTune(model, data, resolveConfig({ sft_steps: 100 }));
 */
export async function fineTune(
  { engine, turns }: TrainableModel,
  data: DataSet,
  config: GRPOConfig,
  { practice, onStep, signal }: FineTuneOptions = {},
): Promise<SftReport> {
  const { sft_steps: steps, sft_batch_tokens: batch_tokens, sft_learning_rate: learning_rate } = config;
  const { sft_max_context_tokens: max_context_tokens } = config;
  const source = episodesFor(turns, data, config, practice);
  return trainSft(engine, fitting(source, max_context_tokens), {
    steps,
    batch_tokens,
    learning_rate,
    max_context_tokens,
    ...(onStep && { onStep }),
    ...(signal && { signal }),
  });
}

/** Throws where `fineTune` would find no episode that fits; normally the first one does. */
export async function checkSftContext({ turns }: TrainableModel, data: DataSet, config: GRPOConfig): Promise<void> {
  const { sft_max_context_tokens: most } = config;
  for await (const { tokens } of fitting(episodesFor(turns, data, config), most)) if (tokens.length <= most) return;
}

/** Encoded episodes on practice worlds and on the training databases of SFT, in their shares. */
function episodesFor(
  turns: TurnEncoder,
  data: DataSet,
  config: GRPOConfig,
  practice?: FineTuneOptions["practice"],
): AsyncGenerator<Datum, void> {
  const mixture = practiceMixture(config);
  const questions = sftQuestions(data, config);
  const others =
    questions.length > 0 && config.sft_data_share === 1
      ? undefined
      : (practice?.(mixture) ?? encodedDemonstrations(mixture, turns));
  const { sft_data_share: share, seed } = config;
  return mixed(others, questions, encoderOf(data, config, mixture, turns), { share, seed });
}

async function* encodedDemonstrations(mixture: Mixture, turns: TurnEncoder): AsyncGenerator<Datum, void> {
  for await (const transcript of demonstrations(mixture)) yield encodeTranscript(transcript, turns);
}

/** Plays a question by the run's rules, as the teacher does, and encodes the episode. */
function encoderOf(data: DataSet, config: GRPOConfig, mixture: Mixture, turns: TurnEncoder) {
  const env = new SQLEnvironment(data, { step_budget: STEP_BUDGET, ...rulesOf(config) });
  const prompt: PromptChoice = { prompt: config.prompt, shots: config.shots };
  // Where GRPO and the evaluation ask about the same databases, the model learns which table is meant: no need to search.
  const searches = splitUnit(data, config) === "database";
  const teacher = { ...teacherOf(mixture), searches };
  const options = { prompt, seed: config.seed, teacher, learnMistakes: mixture.learn_mistakes };
  return async (question: QuestionRecord): Promise<Datum | null> => {
    const transcript = await dataDemonstration(env, question, options);
    return transcript && encodeTranscript(transcript, turns);
  };
}

/**
 * Passes the data on. Throws if the first episodes are all too long, since an endless source might never yield one that
 * fits.
 */
async function* fitting(source: AsyncGenerator<Datum, void>, most: number): AsyncGenerator<Datum, void> {
  let [seen, shortest] = [0, Number.POSITIVE_INFINITY];
  for await (const datum of source) {
    shortest = Math.min(shortest, datum.tokens.length);
    if (++seen >= TOO_LONG && shortest > most)
      throw new UsageError({
        what: "no SFT episode fits sft_max_context_tokens",
        value: most,
        remedy: `the shortest of ${seen} has ${shortest} tokens: raise it, or use fewer shots`,
      });
    yield datum;
  }
}
