// The records of a run folder: one schema per file, the types inferred from them, used by the writer and by all readers.
// Fields that earlier versions did not write are optional; fields that a version does not know are kept.
import { z } from "zod";
import type { EpisodeRecord, PairedComparison, Summary } from "../../gym/evaluation/index.ts";
import type { Message, Segment } from "../../gym/players/index.ts";
import { acceptOldKeys } from "./old-keys.ts";

const record = <S extends z.ZodRawShape>(shape: S) =>
  z.looseObject(shape).readonly() as unknown as z.ZodReadonly<z.ZodObject<S>>; // the type lists only the known fields
const list = <T extends z.ZodType>(item: T) => z.array(item).readonly();

/**
 * A record that the gym defines: only the fields that readers rely on are checked. The value is returned as it is,
 * because a resumed run writes it again and its bytes must not depend on the resume: `z.looseObject` would put the
 * fields of the shape first.
 */
function gymRecord<T>(shape: z.ZodRawShape): z.ZodType<T> {
  const fields = z.looseObject(shape);
  return z.unknown().transform((value, context): T => {
    const { error } = fields.safeParse(value);
    for (const { path, message } of error?.issues ?? []) context.addIssue({ code: "custom", path, message });
    return value as T;
  });
}

const count = z.number();
const rate = z.number().nullable();
const interval = z.tuple([z.number(), z.number()]).readonly();
/** A number that JSON writes as null if it is not finite. */
const measured = z.custom<number>((value) => value === null || typeof value === "number");

/** The fields from which reports count an episode's actions. */
const episodeShape = {
  steps: z.array(z.looseObject({ action: z.looseObject({ action_type: z.string() }) })),
  invalid: count,
  repeats: count,
  parse_failures: count,
};

/** An episode as it is shown turn by turn. */
const shownEpisodeSchema = gymRecord<EpisodeRecord>({
  player: z.string(),
  steps: z.array(
    z.looseObject({
      action: z.looseObject({ action_type: z.string(), argument: z.string() }),
      text: z.string().nullable(),
      parse_error: z.string().nullable(),
      observation: z.looseObject({
        result: z.string(),
        error: z.string().nullable(),
        reward: rate,
        reward_breakdown: z.record(z.string(), z.number()),
      }),
    }),
  ),
  correctness: rate,
  reward: rate,
  step_count: count,
  done_reason: z.string().nullable(),
  error: z.string().nullable(),
});

const summarySchema = gymRecord<Summary>({
  episodes: count,
  scored: count,
  success_rate: rate,
  success_ci: interval.nullable(),
  mean_steps: rate,
});

/**
 * An episode of the model in training: the gym's record, the messages, and the tokens to learn from. Not written to
 * disk.
 */
export interface Episode extends EpisodeRecord {
  readonly messages: readonly Message[];
  readonly segments: readonly Segment[];
  /** Tokens the model wrote. */
  readonly completion_tokens: number;
  /** Whether its last turn ended before the model had closed it, or the episode ran out of tokens. */
  readonly truncated: boolean;
}

const episodeLineShape = {
  /** Optimizer step it was played for, from 1. */
  step: count,
  /** Index of its question within the step; `generation` is its index among that question's episodes. */
  group: count,
  generation: count,
  /** By reward function; null if the function does not score it. */
  rewards: z.record(z.string(), rate).readonly(),
  /** Weighted sum; null if no function scores it. */
  total_reward: rate,
  advantage: measured,
  /** Set if self-distillation replaced the advantage by one per token. */
  distilled: z.literal(true).exactOptional(),
  /** Added to the advantage of the first `turns` turns, or of all (null); only with turn_credit. */
  turn_credit: record({ advantage: measured, turns: count.nullable() }).exactOptional(),
  /**
   * Set if dynamic_sampling dropped its group, whose answers are all right or all wrong; nothing was learned from it.
   */
  dropped: z.literal(true).exactOptional(),
  completion_tokens: count,
  prompt_tokens: count,
  segments: count,
  truncated: z.boolean(),
};
/** A line of episodes.jsonl: an episode without its tokens, with its rewards and advantage in training. */
export type EpisodeLine = EpisodeRecord & Readonly<z.infer<z.ZodObject<typeof episodeLineShape>>>;
export const episodeLineSchema = gymRecord<EpisodeLine>({ ...episodeShape, ...episodeLineShape });

/**
 * A line of metrics.jsonl: numbers by name, TRL's names if it has the same metric, and no times, so that equal trainings
 * write equal bytes. Lines of the training have `loss`, and `reward` if episodes were played; lines of an evaluation have
 * `eval_{seen,unseen}/{greedy,sampled}/{success_rate,success_ci_low,success_ci_high,reward,steps,episodes}`.
 */
export type MetricLine = z.infer<typeof metricLineSchema>;
export const metricLineSchema = z.object({ step: count }).catchall(measured).readonly();

/** A line of timings.jsonl: where the seconds of a step went. */
export type TimingLine = z.infer<typeof timingLineSchema>;
export const timingLineSchema = record({
  step: count,
  step_time: count,
  sampling: count,
  /**
   * Seconds without sampling because of environments: all of their time in the main thread, or the wait for other
   * threads.
   */
  environment: count,
  /** Seconds of work by environments, summed over their threads. */
  environment_work: count.exactOptional(),
  rewards: count,
  training: count,
  /** Groups that were started and stopped because the batch was full without them; only with dynamic_sampling. */
  stopped_groups: count.exactOptional(),
  tokens_per_s: measured,
  /** Seconds of all steps so far, without evaluations and pauses between resumes. */
  elapsed: count,
});

/** A line of warnings.jsonl. */
export type Warning = z.infer<typeof warningSchema>;
export const warningSchema = record({
  step: count,
  /** Such as "truncated", "no_spread", "parse_failures", "entropy_collapsed", "nan". */
  code: z.string(),
  message: z.string(),
  remedy: z.string(),
});

const evaluationSplitSchema = z.enum(["seen", "unseen"]);
/** Evaluation tasks on databases that training has questions on, and on others. */
export type EvaluationSplit = z.infer<typeof evaluationSplitSchema>;
export type Decoding = "greedy" | "sampled";

const decodingsSchema = record({ greedy: summarySchema, sampled: summarySchema });
/** Success on each split with each decoding. */
export type Evaluation = z.infer<typeof evaluationSchema>;
export const evaluationSchema = record({ seen: decodingsSchema, unseen: decodingsSchema });

/** pass_at_k.json: pass@k on training questions before training. RL can only reinforce answers that the model sometimes samples. */
export type PassAtK = z.infer<typeof passAtKSchema>;
export const passAtKSchema = record({
  questions: count,
  tries: count,
  /** Shares of right answers: greedy, sampled as in training, and of questions solved at least once. */
  greedy: rate,
  sampled: rate,
  solved_in_tries: rate,
});

const scoringRuleSchema = z.enum(["answer", "spider", "bird"]);
/** What counts as right: the answer as the environment judges it, or the last query by Spider's or BIRD's rule. */
export type ScoringRule = z.infer<typeof scoringRuleSchema>;

/** A greedy evaluation episode, and whether it was right by each rule. */
export type JudgedEpisode = z.infer<typeof judgedEpisodeSchema>;
const judgedEpisodeSchema = record({
  question_id: z.string(),
  database: z.string(),
  seen: z.boolean(),
  answer: z.boolean(),
  spider: z.boolean(),
  bird: z.boolean(),
});

/** A success rate, 0–1, with its 95 % interval, which is over databases if they are unseen in training. */
export type Score = z.infer<typeof scoreSchema>;
const scoreSchema = record({ right: count, rate: count, ci: interval });

export type SplitAccuracy = z.infer<typeof splitAccuracySchema>;
const splitAccuracySchema = record({
  questions: count,
  answer: scoreSchema.nullable(),
  spider: scoreSchema.nullable(),
  bird: scoreSchema.nullable(),
});

/** Greedy accuracy of one stage; null if there are no questions. */
export type Accuracy = z.infer<typeof accuracySchema>;
const accuracySchema = record({ seen: splitAccuracySchema, unseen: splitAccuracySchema });

const stagePairShape = { from: z.string(), to: z.string(), place: evaluationSplitSchema, mark: scoringRuleSchema };
/** Two stages on the same questions; the difference is `to` − `from`. */
export type StagePair = PairedComparison & Readonly<z.infer<z.ZodObject<typeof stagePairShape>>>;
const stagePairSchema = gymRecord<StagePair>({
  ...stagePairShape,
  databases: count,
  difference: count,
  difference_ci: interval.nullable(),
  mcnemar_p: count,
  permutation_p: count,
});

/** outcomes.json: whether each question was right at each stage, as bits by question id; no text of the data set. */
export type Outcomes = z.infer<typeof outcomesSchema>;
export const outcomesSchema = record({
  format: z.literal("sqlenv-outcomes-1"),
  /** What was evaluated, and how: greedily, with the schema unknown. */
  model_name: z.string(),
  seed: count,
  data: z.string(),
  prompt: z.string(),
  rules: z.string(),
  step_budget: count,
  max_new_tokens: count,
  /** SHA-256 of the questions' ids; absent in pages without crypto.subtle. */
  ids_sha256: z.string().exactOptional(),
  stages: list(z.string()),
  /** The rule that each bit stands for, lowest bit first. */
  bits: list(scoringRuleSchema),
  /** By database and question id, one number per stage; null if it was not asked. */
  questions: z.record(z.string(), z.record(z.string(), list(z.int().min(0).nullable())).readonly()).readonly(),
});

const stageReportShape = {
  steps: count,
  tokens: count,
  transcripts: count,
  /** Transcripts that were longer than the context. */
  too_long: count,
  first_loss: measured,
  /** Mean of the last tenth of the steps. */
  last_loss: measured,
  seconds: count,
};
/** NAME.json of a stage before GRPO, such as sft.json: what it learned from. */
export type StageReport = z.infer<typeof stageReportSchema>;
export const stageReportSchema = record(stageReportShape);

/** self-taught-N.json: a round of SFT on the model's own right episodes. */
export type SelfTaughtReport = z.infer<typeof selfTaughtReportSchema>;
export const selfTaughtReportSchema = record({
  ...stageReportShape,
  /** Number of questions tried, and of questions solved at least once. */
  questions: count,
  solved: count,
  /** Numbers of episodes: sampled, right, and learned from. */
  episodes: count,
  right: count,
  kept: count,
});

/** Some databases of a data set, and the questions on them that pass the difficulty filter. */
export type SplitPart = z.infer<typeof splitPartSchema>;
const splitPartSchema = record({
  databases: list(z.string()),
  questions: count,
  /** SHA-256 of the questions' ids; absent in pages without crypto.subtle. */
  ids_sha256: z.string().exactOptional(),
});

/** split.json: what each part of a training has questions on. */
export type TrainingSplit = z.infer<typeof trainingSplitSchema>;
export const trainingSplitSchema = record({
  seed: count,
  /** Whether SFT and GRPO have different databases or different questions; absent without SFT on the data set, and in earlier versions. */
  unit: z.enum(["database", "question"]).exactOptional(),
  /** Share of the training databases, or of their questions, that SFT uses, and of SFT's episodes that are on them. */
  shares: record({ databases: count, episodes: count }),
  /** Questions that SFT demonstrates; empty if it uses no gold SQL. */
  sft: splitPartSchema,
  /** Questions that GRPO asks. */
  grpo: splitPartSchema,
  eval: splitPartSchema,
  /** Whether GRPO may ask questions that SFT demonstrated. */
  overlap: z.boolean(),
});

/** random.json, base.json and before.json: success rates, and the greedy episodes of the tasks that are compared. */
export type StageEvaluation = z.infer<typeof stageEvaluationSchema>;
export const stageEvaluationSchema = acceptOldKeys(
  record({
    /** Name of the stage. */
    player: z.string(),
    evaluation: evaluationSchema,
    compared: list(shownEpisodeSchema),
    /** Greedy episodes, judged; absent for the random baseline. */
    judged: list(judgedEpisodeSchema).exactOptional(),
    /** All greedy episodes; written to evaluation-NAME.jsonl instead of NAME.json. */
    episodes: list(shownEpisodeSchema).exactOptional(),
  }),
  { standing: "evaluation", marks: "judged" },
);

/** environment.json: the environment of a run that is not about SQL. */
export type EnvironmentDescription = z.infer<typeof environmentDescriptionSchema>;
export const environmentDescriptionSchema = record({
  name: z.string(),
  /** Id of the prompt. */
  prompt: z.string(),
  /** Number of tasks. */
  tasks: record({ train: count, eval: count }),
});

/** results.json: the result of a training. */
export type TrainingResult = z.infer<typeof trainingResultSchema>;
export const trainingResultSchema = acceptOldKeys(
  record({
    run: z.string(),
    model_name: z.string(),
    /** Id of the prompt. */
    prompt: z.string().exactOptional(),
    /** Absent for SQL. */
    environment: environmentDescriptionSchema.exactOptional(),
    /** Id of the rules of the SQL environment. */
    rules: z.string().exactOptional(),
    /** SHA-256 of the evaluation questions' ids: results that share it are about the same questions. */
    eval_ids_sha256: z.string().exactOptional(),
    seconds: count,
    steps: count,
    episodes: count,
    tokens: count,
    random: evaluationSchema,
    /** Evaluation before SFT and self-taught rounds; absent if there were none. */
    base: evaluationSchema.exactOptional(),
    /** Evaluation of the model that GRPO started from. */
    before: evaluationSchema,
    after: evaluationSchema,
    /** pass@k before training; present if `pass_k` was set. */
    pass_at_k: passAtKSchema.exactOptional(),
    /** Greedy accuracy by stage: of answers, and of last queries by the rules of Spider and BIRD. */
    accuracy: z
      .partialRecord(z.enum(["base", "before", "after"]), accuracySchema)
      .readonly()
      .exactOptional(),
    /** Each stage compared with the one before it. */
    paired: list(stagePairSchema).exactOptional(),
    /** What SFT before GRPO learned from. */
    sft: stageReportSchema.exactOptional(),
    /** What each self-taught round before GRPO learned from. */
    self_taught: list(selfTaughtReportSchema).exactOptional(),
    /** Which databases each part had questions on. */
    split: trainingSplitSchema.exactOptional(),
    warnings: count,
  }),
  { reach: "pass_at_k" },
);

export type ComparedQuestion = z.infer<typeof comparedQuestionSchema>;
const comparedQuestionSchema = record({
  question_id: z.string(),
  question: z.string(),
  database_name: z.string(),
  seen: z.boolean(),
  /** One per player, in the order of `players`. */
  episodes: list(shownEpisodeSchema),
});

/** A question's gold query and answer. */
export type GoldAnswer = z.infer<typeof goldAnswerSchema>;
const goldAnswerSchema = record({
  /** Null if the data set has only answers. */
  query: z.string().nullable(),
  /** In the form that the verifier parses; long answers are truncated. */
  answer: z.string(),
});

/** gold.json, by question id. */
export type GoldAnswers = z.infer<typeof goldAnswersSchema>;
export const goldAnswersSchema = z.record(z.string(), goldAnswerSchema).readonly();

/** A line of evaluation-before.jsonl and evaluation-after.jsonl: a greedy episode. */
export const evaluationEpisodeSchema = shownEpisodeSchema;
/** The greedy episodes of the evaluations before and after training. */
export type EvaluationEpisodes = Readonly<Record<"before" | "after", readonly EpisodeRecord[]>>;

/** comparison.json: the same questions answered by each player of a training: random, base, before and after. */
export type Comparison = z.infer<typeof comparisonSchema>;
export const comparisonSchema = record({ players: list(z.string()), questions: list(comparedQuestionSchema) });

const sums = z.record(z.string(), z.string()).readonly();
/** inputs.json: what a run was begun with, as SHA-256 sums. */
export type RunInputs = z.infer<typeof runInputsSchema>;
export const runInputsSchema = record({
  /** Version of the package. */
  version: z.string(),
  questions: z.string(),
  /** Sums by database name. */
  databases: sums,
  /** Sums by file, of the folders or GGUF files the model is made of. */
  model: sums,
  /**
   * The sum of the file with reward functions, by its name; empty without one. Files that it imports are not included.
   */
  reward_funcs: sums,
  /** An environment on a server: its name, and the settings that the server's schemas decided. */
  environment: sums.exactOptional(),
});
