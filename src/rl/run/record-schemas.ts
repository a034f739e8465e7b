// Schemas of a run folder's files, for all readers: the fields they rely on; others are ignored, for older and newer runs.
import { z } from "zod";

const step = z.number();
export const metricSchema = z.looseObject({ step });
export const timingSchema = z.looseObject({ step, step_time: z.number() });
export const warningSchema = z.looseObject({ step, code: z.string(), message: z.string(), remedy: z.string() });
const rate = z.number().nullable();
const summarySchema = z.looseObject({
  episodes: z.number(),
  scored: z.number(),
  success_rate: rate,
  success_ci: z.tuple([z.number(), z.number()]).nullable(),
  mean_steps: rate,
});
const decodingsSchema = z.looseObject({ greedy: summarySchema, sampled: summarySchema });
const evaluationSchema = z.looseObject({ seen: decodingsSchema, unseen: decodingsSchema });
const scoreSchema = z.object({ right: z.number(), rate: z.number(), ci: z.tuple([z.number(), z.number()]) }).nullable();
const splitAccuracySchema = z.looseObject({ answer: scoreSchema, spider: scoreSchema, bird: scoreSchema });
const accuracySchema = z.looseObject({ seen: splitAccuracySchema, unseen: splitAccuracySchema });
const stagePairSchema = z.looseObject({
  from: z.string(),
  to: z.string(),
  place: z.enum(["unseen", "seen"]),
  mark: z.enum(["answer", "spider", "bird"]),
  databases: z.number(),
  difference: z.number(),
  difference_ci: z.array(z.number()).length(2).nullable(),
  mcnemar_p: z.number(),
  permutation_p: z.number(),
});
export const resultSchema = z.looseObject({
  run: z.string(),
  model_name: z.string(),
  seconds: z.number(),
  steps: z.number(),
  episodes: z.number(),
  random: evaluationSchema,
  before: evaluationSchema,
  after: evaluationSchema,
  base: evaluationSchema.optional(),
  accuracy: z.partialRecord(z.enum(["base", "before", "after"]), accuracySchema).optional(),
  paired: z.array(stagePairSchema).optional(),
});
const playedEpisodeSchema = z.looseObject({
  player: z.string(),
  steps: z.array(
    z.looseObject({
      action: z.looseObject({ action_type: z.string(), argument: z.string() }),
      text: z.string().nullable(),
      parse_error: z.string().nullable(),
      observation: z.looseObject({
        result: z.string(),
        error: z.string().nullable(),
        reward: z.number().nullable(),
        reward_breakdown: z.record(z.string(), z.number()),
      }),
    }),
  ),
  correctness: rate,
  reward: rate,
  step_count: z.number(),
  done_reason: z.string().nullable(),
  error: z.string().nullable(),
});
export const episodeSchema = z.looseObject({
  step,
  steps: z.array(z.looseObject({ action: z.looseObject({ action_type: z.string() }) })),
  invalid: z.number(),
  repeats: z.number(),
  parse_failures: z.number(),
});
export const comparisonSchema = z.looseObject({
  players: z.array(z.string()),
  questions: z.array(
    z.looseObject({
      question_id: z.string(),
      question: z.string(),
      database_name: z.string(),
      seen: z.boolean(),
      episodes: z.array(playedEpisodeSchema),
    }),
  ),
});

/** random.json and before.json: a player's evaluation, and its episodes on the compared questions. */
export const baselineFileSchema = z.looseObject({
  standing: evaluationSchema,
  compared: z.array(
    z.looseObject({
      question_id: z.string(),
      question: z.string(),
      database_name: z.string(),
      seen: z.boolean(),
      ...playedEpisodeSchema.shape,
    }),
  ),
});
