// Self-taught rounds (rejection sampling, STaR, RFT): the model samples episodes on training questions and is
// fine-tuned on the right ones; the next round samples with the fine-tuned model.
//
// Which right episodes are kept is drawn by seed, so that they are distributed as the model samples them. Keeping the
// shortest would favour guesses that skip exploring the schema and do not transfer to other databases. A right answer
// without a successful query is luck and is left out. Duplicates count once and each question has at most
// KEPT_PER_QUESTION, so that easy questions do not crowd out the others.

import { UsageError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { normalizeAction } from "../../gym/env/index.ts";
import type { EnvironmentSource } from "../../gym/evaluation/index.ts";
import type { Datum } from "../../lm/engine/index.ts";
import { random } from "../../random.ts";
import { batchingOf, type GRPOConfig } from "../config.ts";
import type { Episode, SelfTaughtReport } from "../run/records.ts";
import { loadQuestionPrompts } from "../sql/questions.ts";
import { rolloutFunc } from "../sql/rollout-func.ts";
import { repeated } from "../task-order.ts";
import type { TrainableModel } from "../trainable-model.ts";
import { type SftOptions, type SftReport, trainSft } from "./sft.ts";

/** Correct episodes kept per question: a second one shows another solution, further ones add little. */
export const KEPT_PER_QUESTION = 2;
/** Epochs over the kept episodes. */
const EPOCHS = 2;
/** Minimum optimizer steps of a round; batches shrink below sft_batch_tokens to reach them. */
const LEAST_STEPS = 16;
/** Episodes played at once, unless a training step plays more: enough to fill a batch. */
const EPISODES_AT_ONCE = 64;

/** Names a round's folder and report. */
export const selfTaughtName = (round: number) => `self-taught-${round}`;

export interface SelfTaughtOptions extends Pick<SftOptions, "onStep" | "signal"> {
  /** Where the episodes are played. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
  /** Called with the number of episodes sampled so far, and the total. */
  readonly onEpisode?: (done: number, all: number) => void;
}

/** One round: sample, select, fine-tune. Null if aborted. The same model and config give the same weights. */
export async function selfTaughtRound(
  model: TrainableModel,
  data: DataSet,
  config: GRPOConfig,
  round: number,
  { onEpisode, environments, ...learning }: SelfTaughtOptions = {},
): Promise<Omit<SelfTaughtReport, "seconds"> | null> {
  const { self_taught_samples: samples, self_taught_questions: most, seed } = config;
  const prompts = random("self-taught questions", seed, round).shuffle(loadQuestionPrompts(data, config));
  const asked = prompts.slice(0, most ?? undefined);
  const all = asked.length * samples;
  const atOnce = Math.max(1, Math.ceil(Math.max(EPISODES_AT_ONCE, batchingOf(config).generation_batch_size) / samples));
  const { engine, tokenizer, turns } = model;
  const right: Episode[] = [];
  for (let first = 0; first < asked.length; first += atOnce) {
    if (learning.signal?.aborted) return null;
    const episodes = await rolloutFunc(
      repeated(asked.slice(first, first + atOnce), samples),
      engine,
      tokenizer,
      config,
      {
        data,
        turns,
        environments,
        signal: learning.signal,
        key: [seed, "self-taught", round, first],
        onEpisode: (done) => onEpisode?.(first * samples + done, all),
      },
    );
    right.push(...episodes.filter(({ correctness }) => correctness === 1)); // the others are not held in memory
  }
  const kept = selectEpisodes(right, [seed, round]);
  if (kept.length === 0)
    throw new UsageError({
      what: `self_taught_rounds: no episode of round ${round} was right after a query that worked; episodes sampled`,
      value: all,
      remedy:
        "fine-tune on right episodes first (sft_steps), raise self_taught_samples, ask easier questions (difficulty_filter), or set self_taught_rounds to 0",
    });
  const report = await learn(model, kept, config, learning);
  const { interrupted, ...learned } = report;
  if (interrupted) return null;
  const solved = new Set(right.map(({ question_id }) => question_id)).size;
  return { ...learned, questions: asked.length, solved, episodes: all, right: right.length, kept: kept.length };
}

/**
 * Selects right episodes to learn from, in random order: no two with the same actions on a question, and at most
 * KEPT_PER_QUESTION of each question.
 */
export function selectEpisodes(
  episodes: readonly Episode[],
  key: readonly (string | number)[],
  perQuestion = KEPT_PER_QUESTION,
): Episode[] {
  const known = new Set<string>();
  const counts = new Map<string, number>();
  return random("self-taught episodes", ...key)
    .shuffle(episodes.filter(isExample))
    .filter(({ question_id, steps }) => {
      const text = JSON.stringify([question_id, ...steps.map(({ action }) => normalizeAction(action))]);
      const count = counts.get(question_id) ?? 0;
      if (known.has(text) || count >= perQuestion) return false;
      known.add(text);
      counts.set(question_id, count + 1);
      return true;
    });
}

/** Whether an episode is right, was not cut off, and did not guess. */
function isExample({ correctness, truncated, steps }: Episode): boolean {
  const hasQueried = steps.some(
    ({ action, observation }) => action.action_type === "QUERY" && observation.error === null,
  );
  return correctness === 1 && !truncated && hasQueried;
}

/**
 * Encodes an episode as it was sampled. The model's own tokens have weight 1, and so has the closing token of a turn
 * that a stop rule ended, so that the model learns to end such a reply itself.
 */
export function encodeEpisode({ segments }: Pick<Episode, "segments">, stopIds: readonly number[]): Datum[] {
  const closes = new Set(stopIds);
  return segments.map(({ tokens, mask }) => ({
    tokens,
    weights: mask.map((mine, i) => (mine === 1 || (mask[i - 1] === 1 && closes.has(tokens[i]!)) ? 1 : 0)),
  }));
}

/** Fine-tunes on episodes, in a new random order each epoch. */
function learn(
  { engine, turns }: TrainableModel,
  episodes: readonly Episode[],
  { seed, self_taught_learning_rate: learning_rate, sft_batch_tokens, max_context_tokens }: GRPOConfig,
  learning: Pick<SftOptions, "onStep" | "signal">,
): Promise<SftReport> {
  const epochs = Array.from({ length: EPOCHS }, (_, epoch) =>
    random("self-taught order", seed, epoch).shuffle(episodes),
  );
  const data = epochs.flat().flatMap((episode) => encodeEpisode(episode, turns.stopIds));
  const lengths = data.map(({ tokens }) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  // A batch ends with the episode that reaches batch_tokens, so it may exceed that by almost the longest episode.
  const most = Math.ceil(total / LEAST_STEPS) - Math.max(...lengths);
  const batch_tokens = Math.max(1, Math.min(sft_batch_tokens, most));
  const steps = stepsOf(lengths, batch_tokens);
  return trainSft(engine, data, { steps, batch_tokens, learning_rate, max_context_tokens, ...learning });
}

/** Number of steps that `trainSft` takes on episodes of these lengths; the learning rate decays until the last step. */
function stepsOf(lengths: readonly number[], batch_tokens: number): number {
  let [steps, inBatch] = [0, 0];
  for (const length of lengths) {
    if (inBatch === 0) steps++;
    inBatch += length;
    if (inBatch >= batch_tokens) inBatch = 0;
  }
  return steps;
}
