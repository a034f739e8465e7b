// Everything that can be set about a training, once: this schema gives the type, the defaults, the command's flags, the
// YAML's keys, the messages and the table in the docs.
//
// Names and defaults are the project's first design's where that set them ("seed"), else those of TRL 1.13 ("trl"), so
// that habits and configs carry over. Where ours differs from TRL's, the table in docs/reference.md shows both.
import { z } from "zod";
import { nearest, UsageError } from "../errors.ts";
import { DIFFICULTIES } from "../gym/data/index.ts";
import {
  type EnvironmentOptions,
  type EnvironmentRules,
  rewardSchema,
  rulesOf,
  rulesSchema,
} from "../gym/env/index.ts";
import { PROMPT_NAMES, SHOT_COUNTS } from "../gym/players/index.ts";
import { MAX_INSTRUCTIONS } from "../gym/sql/index.ts";
import { LORA_MODULES } from "../lm/model/lora.ts";

/** What a field is for, and what others set it to. */
interface Note {
  /** The first design's default. */
  readonly seed?: unknown;
  /** TRL 1.13's default. */
  readonly trl?: unknown;
}

const note = <T extends z.ZodType>(type: T, description: string, others: Note = {}): T =>
  type.meta({ description, ...others }) as T;

const positive = z.number().positive();
const share = z.number().min(0).max(1);
const count = z.int().min(1);
const rules = rulesSchema.unwrap().shape;

/** Questions are drawn for the most that a step may ask, and passed over one by one: larger numbers only take time and memory. */
const MAX_REFILL = 100;
const MAX_SKIPPED_EPOCHS = 1_000;

export const configSchema = z
  .object({
    // What is trained, on what
    model_name: note(
      z.string().min(1).default("Qwen/Qwen3-1.7B"),
      'a model folder, a GGUF file, ollama:NAME, or a name on the Hub; "starter" is ours',
      { seed: "Qwen/Qwen3-1.7B" },
    ),
    questions_path: note(
      z.string().min(1).default("bundled"),
      "data set: bundled, practice, starter, spider10[:path], an imported name, a folder or a question file",
      { seed: "data/questions/questions_train.json" },
    ),
    db_dir: note(z.string().min(1).default("bundled"), "databases of a question file; bundled: beside it", {
      seed: "data/databases",
    }),
    difficulty_filter: note(
      z.array(z.enum(DIFFICULTIES)).min(1).default(["easy", "medium"]),
      "questions to train and evaluate on",
      { seed: ["easy", "medium"] },
    ),
    step_budget: note(count.default(10), "actions an episode may take", { seed: 10 }),
    eval_step_budget: note(
      count.nullable().default(null),
      "actions an evaluation episode may take, each of up to max_new_tokens; null: step_budget, within max_completion_length",
    ),
    max_instructions: note(
      z.int().min(1).max(MAX_INSTRUCTIONS).nullable().default(null),
      "SQLite VM instructions one query may take in training, or ten times its gold query's where that is more; null: 30,000,000, as in evaluations",
    ),
    // Rules of the environment that may change the game
    error_hints: rules.error_hints,
    end_after_failures: rules.end_after_failures,
    answer_last: rules.answer_last,
    describe_many: rules.describe_many,
    reward: note(
      rewardSchema.prefault({}),
      "what the environment pays for each step; training reads its looking and repeating parts, correctness as 0 or 1 and progress as Φ",
    ),
    seed: note(z.int().default(42), "of everything drawn at random", { seed: 42, trl: 42 }),
    output_dir: note(
      z.string().min(1).nullable().default(null),
      "the run's folder; null: the next free one under runs/",
      { seed: "outputs/grpo_run" },
    ),

    // How much
    num_train_epochs: note(positive.default(1), "times every question comes up", { seed: 1, trl: 3 }),
    max_steps: note(
      z
        .int()
        .min(-1)
        .refine((steps) => steps !== 0, "give -1 or a number from 1")
        .default(-1),
      "optimizer steps; -1: as many as the epochs have",
      { trl: -1 },
    ),
    per_device_train_batch_size: note(count.default(2), "episodes in one accumulated batch", { seed: 2, trl: 8 }),
    gradient_accumulation_steps: note(count.default(4), "batches that make one optimizer step", { seed: 4, trl: 1 }),
    num_generations: note(z.int().min(2).default(4), "episodes played for each question: a group", { seed: 4, trl: 8 }),
    generation_batch_size: note(
      count.nullable().default(null),
      "episodes played together; null: batch size × steps_per_generation",
      { trl: null },
    ),
    steps_per_generation: note(
      count.nullable().default(null),
      "batches one generation is cut into; null: gradient_accumulation_steps",
      { trl: null },
    ),
    num_iterations: note(count.default(1), "times each generation is learned from", { trl: 1 }),
    easy_steps: note(z.int().min(0).default(0), "steps at the beginning that ask only the easy ones of the questions"),
    // SFT before GRPO
    sft_steps: note(
      z.int().min(0).default(0),
      "optimizer steps of supervised fine-tuning (SFT) on right episodes before GRPO; 0: none",
    ),
    sft_batch_tokens: note(count.default(16_384), "SFT: tokens per step, context included"),
    sft_learning_rate: note(positive.default(4e-4), "SFT: peak learning rate"),
    sft_max_context_tokens: note(count.default(1_536), "SFT: longer episodes are left out"),
    sft_database_share: note(
      share.default(1 / 3),
      "SFT: share of the training databases, drawn by seed, whose gold SQL is imitated and which GRPO does not ask about; 0: no gold SQL of the data set is imitated",
    ),
    sft_data_share: note(
      share.default(0.4),
      "SFT: share of its episodes that are on those databases; the others are on practice worlds",
    ),
    sft_overlap: note(
      z.boolean().default(false),
      "let GRPO reward questions that SFT imitated; their groups are mostly all right or all wrong and teach nothing",
    ),
    dynamic_sampling: note(
      z.number().min(0).max(MAX_REFILL).default(0),
      "replace groups that are all right or all wrong with new questions, at most this many times the questions of a step; 0: off",
    ),
    skip_solved: note(
      z.int().min(0).max(MAX_SKIPPED_EPOCHS).default(0),
      "epochs for which a question is not asked again when all its episodes were right; half as many when all were wrong; 0: off",
    ),
    shuffle_dataset: note(z.boolean().default(true), "questions in a new random order each epoch", { trl: true }),

    // How the model is asked, and speaks
    prompt: note(
      z.enum(PROMPT_NAMES).default("compact"),
      "what the model is told: compact is the starter's; instruct and tools (calls in the model's own format) are for models that others trained",
    ),
    shots: note(
      z.literal(SHOT_COUNTS).default(0),
      "example episodes before the question, as earlier turns of the chat",
    ),
    max_new_tokens: note(count.default(256), "of one turn", { seed: 256 }),
    max_completion_length: note(count.default(2560), "tokens the model may write in a whole episode", { trl: 512 }),
    max_context_tokens: note(count.default(4096), "a longer history is cut to the question and the last three turns"),
    temperature: note(positive.default(1), "of sampling in training and in sampled evaluations", { trl: 1 }),
    top_p: note(positive.max(1).default(1), "sample from the likeliest tokens that have this share together", {
      trl: 1,
    }),
    top_k: note(z.int().min(0).default(0), "sample from this many likeliest tokens; 0: from all", { trl: 0 }),
    min_p: note(share.nullable().default(null), "sample from tokens at least this likely, relative to the likeliest", {
      trl: null,
    }),

    // How rewards become advantages
    reward_funcs: note(
      z.string().min(1).nullable().default(null),
      "more reward functions: a TypeScript or JavaScript file that exports them",
    ),
    reward_timeout: note(
      z.number().positive().nullable().default(600),
      "seconds a reward function may take for the episodes of a generation; null: no limit",
    ),
    reward_weights: note(z.array(z.number()).nullable().default(null), "one for each reward function; null: ones", {
      trl: null,
    }),
    scale_rewards: note(
      z.union([z.enum(["group", "batch", "none"]), z.boolean()]).default("group"),
      "divide advantages by the spread of the group, of the batch, or not",
      { trl: "group" },
    ),
    multi_objective_aggregation: note(
      z.enum(["sum_then_normalize", "normalize_then_sum"]).default("sum_then_normalize"),
      "add rewards first, or compare each by itself first",
      { trl: "sum_then_normalize" },
    ),

    turn_credit: note(
      z.number().min(0).default(0),
      "weight of a second advantage, by the best query's progress, for the turns up to that query; 0: off",
    ),

    // The loss
    loss_type: note(
      z.enum(["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"]).default("dapo"),
      "which policy loss",
      { trl: "dapo" },
    ),
    beta: note(z.number().min(0).default(0), "weight of the KL term to the model it began as", { trl: 0 }),
    use_bias_correction_kl: note(z.boolean().default(true), "weigh the KL by the importance ratio", { trl: true }),
    epsilon: note(positive.default(0.2), "ratios below 1 − ε are not pushed further down", { trl: 0.2 }),
    epsilon_high: note(
      positive.nullable().default(null),
      "ratios above 1 + ε are not pushed further up; null: epsilon; cispo: the cap itself",
      { trl: null },
    ),
    delta: note(positive.nullable().default(null), "upper bound of ratios of bad episodes", { trl: null }),
    importance_sampling_level: note(
      z.enum(["token", "sequence"]).default("token"),
      "a ratio for each token (GRPO) or each episode (GSPO)",
      { trl: "token" },
    ),
    entropy_coef: note(z.number().min(0).default(0), "reward for staying undecided", { trl: 0 }),
    top_entropy_quantile: note(positive.max(1).default(1), "learn from this share of tokens, the most undecided", {
      trl: 1,
    }),
    off_policy_mask_threshold: note(
      positive.nullable().default(null),
      "leave out bad episodes the model has moved away from by more",
      { trl: null },
    ),
    mask_truncated_completions: note(z.boolean().default(false), "do not learn from episodes that were cut off", {
      trl: false,
    }),
    self_distillation: note(
      z.number().min(0).default(0),
      "weight of self-distillation in groups that are wrong throughout: the model is drawn towards what it says when it is shown their errors first; 0: off",
    ),
    sapo_temperature_pos: note(positive.default(1), "sapo, good episodes", { trl: 1 }),
    sapo_temperature_neg: note(positive.default(1.05), "sapo, bad episodes", { trl: 1.05 }),
    vespo_k_pos: note(positive.default(2), "vespo, good episodes", { trl: 2 }),
    vespo_lambda_pos: note(positive.default(3), "vespo, good episodes", { trl: 3 }),
    vespo_k_neg: note(positive.default(3), "vespo, bad episodes", { trl: 3 }),
    vespo_lambda_neg: note(positive.default(2), "vespo, bad episodes", { trl: 2 }),

    // Self-taught rounds: SFT on the model's own right episodes, after SFT and before GRPO
    self_taught_rounds: note(
      z.int().min(0).default(0),
      "self-taught: rounds before GRPO in which the model samples episodes on the training questions and is fine-tuned on its right ones; 0: none",
    ),
    self_taught_samples: note(count.default(8), "self-taught: episodes sampled for each question of a round"),
    self_taught_questions: note(
      count.nullable().default(1024),
      "self-taught: training questions of a round, drawn by seed anew each round; null: all",
    ),
    self_taught_learning_rate: note(positive.default(1e-4), "self-taught: peak learning rate"),

    // What is learned: all weights, or adapters in front of them
    use_peft: note(
      z.boolean().default(false),
      "learn LoRA adapters; the weights stay as they are, and are the KL term's reference",
      {
        trl: false,
      },
    ),
    lora_r: note(count.default(16), "rank of the adapters", { trl: 16 }),
    lora_alpha: note(positive.default(32), "adapters count lora_alpha / lora_r times", { trl: 32 }),
    lora_target_modules: note(
      z.array(z.enum(LORA_MODULES)).min(1).nullable().default(null),
      "modules of every layer that get one; null: q, k, v, o, gate, up and down_proj",
      { trl: null },
    ),

    // The optimizer
    learning_rate: note(positive.default(5e-6), "at its highest", { seed: 5e-6, trl: 1e-6 }),
    lr_scheduler_type: note(z.enum(["linear", "cosine", "constant"]).default("linear"), "how it falls to 0", {
      trl: "linear",
    }),
    warmup_steps: note(z.int().min(0).default(0), "steps in which it rises", { trl: 0 }),
    weight_decay: note(z.number().min(0).default(0), "AdamW", { trl: 0 }),
    adam_beta1: note(share.default(0.9), "AdamW", { trl: 0.9 }),
    adam_beta2: note(share.default(0.999), "AdamW", { trl: 0.999 }),
    adam_epsilon: note(positive.default(1e-8), "AdamW", { trl: 1e-8 }),
    max_grad_norm: note(positive.default(1), "the gradient is scaled down to this norm", { trl: 1 }),

    // What is watched and kept
    logging_steps: note(count.default(10), "steps between lines of metrics.jsonl", { seed: 10, trl: 10 }),
    eval_steps: note(z.int().min(0).default(100), "steps between evaluations; 0: only before and after", { trl: 500 }),
    eval_episodes: note(
      count.default(32),
      "episodes of an evaluation on the way, on seen and on unseen databases each",
    ),
    final_eval_episodes: note(
      count.nullable().default(null),
      "episodes of the evaluations before and after, likewise; null: every question once",
    ),
    final_eval_sampled_episodes: note(
      z.int().min(0).nullable().default(null),
      "sampled episodes of the evaluations before and after; null: as many as greedy ones; 0: none",
    ),
    pass_k: note(
      z
        .int()
        .min(0)
        .refine((tries) => tries !== 1, "give 0 or a number from 2")
        .default(0),
      "before training: how often each of some training questions is tried, to know what reward can reach; 0: not at all",
    ),
    pass_questions: note(count.default(64), "how many training questions that are"),
    comparison_episodes: note(z.int().min(0).default(6), "questions in the side-by-side comparison"),
    save_steps: note(count.default(50), "steps between checkpoints", { trl: 500 }),
    save_total_limit: note(count.default(2), "checkpoints kept", { trl: null }),

    // Where it runs
    device: note(
      z.enum(["auto", "cpu", "cuda"]).default("auto"),
      "where the arithmetic runs; auto: a CUDA card that can be used, else the CPU",
    ),
    precision: note(
      z.enum(["auto", "bf16", "fp32"]).default("auto"),
      "of a GPU's activations; auto: bf16 where the card has it; the CPU has fp32",
    ),
    threads: note(count.nullable().default(null), "of the CPU; null: as many as it has; results do not depend on it"),
    environment_threads: note(
      z.int().min(0).max(64).nullable().default(null),
      "worker threads that run the environments; 0: the main thread; null: with a GPU one per core but two, at most 8, else 0; results do not depend on it",
    ),
    max_gpu_memory: note(positive.nullable().default(null), "gigabytes of a GPU's memory to use; null: all it has"),
    gradient_checkpointing: note(
      z.boolean().default(false),
      "compute activations again instead of keeping them: slower, less memory",
      { trl: true },
    ),
  })
  .strict()
  .readonly();

/** Every setting of a training. */
export type GRPOConfig = z.output<typeof configSchema>;
/** Settings that differ from the defaults. */
export type GRPOConfigInput = z.input<typeof configSchema>;

export const CONFIG_KEYS = Object.keys(configSchema.unwrap().shape) as (keyof GRPOConfig)[];

/**
 * Fills in the defaults and checks; throws UsageError naming the key, its value and a remedy.
 *
 * @example
 * const config = resolveConfig({ max_steps: 100, learning_rate: 1e-5, loss_type: "dapo" });
 */
export function resolveConfig(given: Readonly<Record<string, unknown>> = {}): GRPOConfig {
  const parsed = configSchema.safeParse(given);
  if (parsed.success) {
    checkTogether(parsed.data);
    return parsed.data;
  }
  const issue = parsed.error.issues[0]!;
  if (issue.code === "unrecognized_keys") throw unknownKey([...issue.path.map(String), issue.keys[0]!].join("."));
  const key = issue.path.join(".");
  const value = issue.path.reduce<unknown>((at, part) => (at as Record<PropertyKey, unknown>)?.[part], given);
  throw new UsageError({
    what: `${key} cannot be`,
    value: JSON.stringify(value),
    remedy: `${issue.message.replace(/^Invalid (input|option): /, "")} (${describeKey(key)})`,
  });
}

/** The error for a key there is not. */
export function unknownKey(key: string): UsageError {
  if (key.startsWith("imitation_"))
    return new UsageError({
      what: "no such setting any more",
      value: key,
      remedy: "supervised fine-tuning before GRPO has sft_steps, sft_learning_rate and the other sft_ settings",
    });
  const guess = nearest(key, [...CONFIG_KEYS, ...Object.keys(rewardSchema.unwrap().shape).map((k) => `reward.${k}`)]);
  return new UsageError({
    what: "no such setting",
    value: key,
    remedy: guess ? `did you mean ${guess}?` : "see `sqlenv train --help`",
  });
}

function describeKey(key: string): string {
  const shape = configSchema.unwrap().shape as Record<string, z.ZodType>;
  return shape[key.split(".")[0]!]?.meta()?.description ?? key;
}

/** How batches, generations and optimizer steps fit together. */
export interface Batching {
  /** Episodes played together. */
  readonly generation_batch_size: number;
  /** Questions asked in a generation. */
  readonly questions: number;
  /** Optimizer steps that one pass over a generation makes; 1 when several generations make one step. */
  readonly slices: number;
  /** Generations that are added up for one optimizer step; 1 when one makes several. */
  readonly accumulations: number;
}

/** @throws UsageError when they do not */
export function batchingOf(config: GRPOConfig): Batching {
  const { per_device_train_batch_size: batch, gradient_accumulation_steps: accumulated, num_generations } = config;
  if (config.generation_batch_size !== null && config.steps_per_generation !== null)
    throw new UsageError({
      what: "generation_batch_size and steps_per_generation are both given",
      value: `${config.generation_batch_size} and ${config.steps_per_generation}`,
      remedy: "leave one of them out: the one follows from the other",
    });
  if (config.generation_batch_size !== null && config.generation_batch_size % batch !== 0)
    throw new UsageError({
      what: `generation_batch_size must be a multiple of per_device_train_batch_size (${batch})`,
      value: config.generation_batch_size,
    });
  const perGeneration =
    config.generation_batch_size !== null
      ? config.generation_batch_size / batch
      : (config.steps_per_generation ?? accumulated);
  const size = batch * perGeneration;
  if (size % num_generations !== 0)
    throw new UsageError({
      what: `a generation of ${size} episodes (per_device_train_batch_size ${batch} × ${perGeneration}) does not make groups of num_generations`,
      value: num_generations,
      remedy: `choose num_generations among the divisors of ${size}, or change the batch size`,
    });
  if (perGeneration % accumulated !== 0 && accumulated % perGeneration !== 0)
    throw new UsageError({
      what: `steps_per_generation and gradient_accumulation_steps (${accumulated}) must divide one another`,
      value: perGeneration,
    });
  return {
    generation_batch_size: size,
    questions: size / num_generations,
    slices: Math.max(1, perGeneration / accumulated),
    accumulations: Math.max(1, accumulated / perGeneration),
  };
}

/** Whether steps take as many questions from a queue as they need, instead of a fixed number. */
export function usesQueue({ dynamic_sampling, skip_solved }: GRPOConfig): boolean {
  return dynamic_sampling > 0 || skip_solved > 0;
}

/** The environment a config describes. */
export function environmentOptionsOf(
  config: Pick<GRPOConfig, "step_budget" | "reward"> & Partial<EnvironmentRules>,
): EnvironmentOptions {
  return { step_budget: config.step_budget, rewards: config.reward, ...rulesOf(config) };
}

/** The same for episodes that are learned from, whose statements may be given less. */
export function trainingEnvironmentOptions(config: GRPOConfig): EnvironmentOptions {
  const { max_instructions } = config;
  return { ...environmentOptionsOf(config), ...(max_instructions !== null && { max_instructions }) };
}

/** Optimizer steps a training on this many questions has. */
export function stepsOf(config: GRPOConfig, questions: number): number {
  const { max_steps, num_train_epochs, num_iterations } = config;
  const { questions: asked, slices, accumulations } = batchingOf(config);
  const generations = Math.floor(questions / asked);
  if (generations === 0)
    throw new UsageError({
      what: `a generation asks ${asked} questions, and there are only`,
      value: questions,
      remedy: "lower per_device_train_batch_size, gradient_accumulation_steps or generation_batch_size",
    });
  if (max_steps > 0) return max_steps;
  return Math.max(1, Math.floor((num_train_epochs * generations * num_iterations * slices) / accumulations));
}

function checkTogether(config: GRPOConfig): void {
  batchingOf(config);
  const { max_new_tokens, max_context_tokens, max_completion_length, num_iterations } = config;
  if (max_new_tokens >= max_context_tokens)
    throw new UsageError({
      what: `max_new_tokens must be below max_context_tokens (${max_context_tokens})`,
      value: max_new_tokens,
      remedy: "a turn must leave room for what it answers to",
    });
  if (max_completion_length < max_new_tokens)
    throw new UsageError({
      what: `max_completion_length (a whole episode) must be at least max_new_tokens (a turn, ${max_new_tokens})`,
      value: max_completion_length,
      remedy: "raise it, or lower max_new_tokens",
    });
  if (usesQueue(config) && config.max_steps < 0)
    throw new UsageError({
      what: "dynamic_sampling and skip_solved need max_steps, which is",
      value: config.max_steps,
      remedy: "give the number of steps: how many questions each will ask is not known beforehand",
    });
  if (config.turn_credit > 0 && config.reward.progress === 0)
    throw new UsageError({
      what: "turn_credit needs reward.progress above 0; it is",
      value: config.reward.progress,
      remedy: "turns are credited for progress: give it a reward, or leave turn_credit out",
    });
  if (config.turn_credit > 0 && config.importance_sampling_level === "sequence")
    throw new UsageError({
      what: "turn_credit does not go with importance_sampling_level",
      value: "sequence",
      remedy: "one ratio for a whole episode gives all its turns the same credit; use token",
    });
  if (config.self_distillation > 0 && config.importance_sampling_level === "sequence")
    throw new UsageError({
      what: "self_distillation does not go with importance_sampling_level",
      value: "sequence",
      remedy: "it gives each token an advantage of its own; use token",
    });
  if (config.self_distillation > 0 && config.dynamic_sampling > 0)
    throw new UsageError({
      what: "self_distillation learns from groups that dynamic_sampling replaces; its weight is",
      value: config.self_distillation,
      remedy: "set one of them to 0",
    });
  if (config.off_policy_mask_threshold !== null && num_iterations === 1 && batchingOf(config).slices === 1)
    throw new UsageError({
      what: "off_policy_mask_threshold has nothing to mask: every step learns from fresh episodes",
      value: config.off_policy_mask_threshold,
      remedy: "raise num_iterations or steps_per_generation, or leave it out",
    });
}

/** The learning rate of an optimizer step, from 1. */
export function learningRateAt(step: number, total: number, config: GRPOConfig): number {
  const { learning_rate, lr_scheduler_type, warmup_steps } = config;
  const done = step - 1; // the first step has the rate of step 0, as in transformers
  if (done < warmup_steps) return (learning_rate * done) / Math.max(1, warmup_steps);
  const progress = (done - warmup_steps) / Math.max(1, total - warmup_steps);
  if (lr_scheduler_type === "constant") return learning_rate;
  if (lr_scheduler_type === "cosine") return learning_rate * 0.5 * (1 + Math.cos(Math.PI * Math.min(1, progress)));
  return learning_rate * Math.max(0, 1 - progress);
}
