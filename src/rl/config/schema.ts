// Every setting of a training: this schema gives the type, the defaults, the command's flags, the YAML's keys, the error
// texts and the table in the docs. A description is a phrase that stands alone, the field's term first.
//
// Names and defaults are those of the project's first design where that set them ("design"), else those of TRL 1.16
// ("trl"), so that habits and configs carry over. Where ours differs from TRL's, docs/reference.md shows both.
import { z } from "zod";
import { DIFFICULTIES } from "../../gym/data/index.ts";
import { rewardSchema, rulesSchema } from "../../gym/env/index.ts";
import { PROMPT_NAMES, SHOT_COUNTS } from "../../gym/players/index.ts";
import { MAX_INSTRUCTIONS } from "../../gym/sql/index.ts";
import { LORA_MODULES } from "../../lm/model/lora.ts";

/** Defaults of a setting in the first design and in TRL. */
interface Note {
  /** Default of the first design. */
  readonly design?: unknown;
  /** Default of TRL 1.16. */
  readonly trl?: unknown;
}

const note = <T extends z.ZodType>(type: T, description: string, others: Note = {}): T =>
  type.meta({ description, ...others }) as T;

const positive = z.number().positive();
const share = z.number().min(0).max(1);
const count = z.int().min(1);
const rules = rulesSchema.unwrap().shape;

/**
 * Upper limits of dynamic_sampling and skip_solved. A step draws in advance all questions that it may ask, and skips
 * them one by one, so larger values only cost time and memory.
 */
const MAX_REFILL = 100;
const MAX_SKIPPED_EPOCHS = 1_000;

export const configSchema = z
  .object({
    // Model and data
    model_name: note(
      z.string().min(1).default("Qwen/Qwen3-1.7B"),
      'model: a folder, a GGUF file, ollama:NAME, a name on the Hub, or "starter", which is bundled',
      { design: "Qwen/Qwen3-1.7B" },
    ),
    questions_path: note(
      z.string().min(1).default("bundled"),
      "data set: bundled, practice, starter, spider10[:path], an imported name, a folder or a question file",
      { design: "data/questions/questions_train.json" },
    ),
    db_dir: note(
      z.string().min(1).default("bundled"),
      "folder with the databases of a question file; bundled: beside the file",
      {
        design: "data/databases",
      },
    ),
    difficulty_filter: note(
      z.array(z.enum(DIFFICULTIES)).min(1).default(["easy", "medium"]),
      "difficulties of the questions to train and evaluate on",
      { design: ["easy", "medium"] },
    ),
    env: note(
      z.string().min(1).nullable().default(null),
      "train in the environment of an OpenEnv server, by its URL, in place of SQL; needs tasks",
    ),
    tasks: note(
      z.string().min(1).nullable().default(null),
      "env: file of tasks, JSON or JSON Lines: id, and optionally text, reset, group, answer, difficulty, split",
    ),
    system: note(z.string().nullable().default(null), "env: system prompt; null: none"),
    action_template: note(
      z.string().min(1).nullable().default(null),
      'env: action as JSON with the place of the reply, such as {"message": "{text}"}; also {word} (the first), {rest}, {number}, {json}; null: the server\'s only field',
    ),
    observation_field: note(
      z.string().min(1).nullable().default(null),
      "env: field of the observation that the model reads; null: its only text; where there are several, all of it as JSON",
    ),
    solved_reward: note(
      z.number().nullable().default(null),
      "env: rewards of an episode add up to this if its task was solved; null: to more than 0",
    ),
    invalid_action_reward: note(
      z.number().default(0),
      "env: reward of a reply that is no valid action; the episode continues",
    ),
    step_budget: note(count.default(10), "actions per episode, at most", { design: 10 }),
    eval_step_budget: note(
      count.nullable().default(null),
      "actions per evaluation episode, each of up to max_new_tokens; null: step_budget, within max_completion_length",
    ),
    max_instructions: note(
      z.int().min(1).max(MAX_INSTRUCTIONS).nullable().default(null),
      "SQLite VM instructions per query in training, at most; ten times the gold query's where that is more; null: 30,000,000, as in evaluations",
    ),
    // Environment rules
    error_hints: rules.error_hints,
    end_after_failures: rules.end_after_failures,
    answer_last: rules.answer_last,
    describe_many: rules.describe_many,
    reward: note(
      rewardSchema.prefault({}),
      "the environment's reward for each step; training reads its exploration and repetition parts, correctness as 0 or 1 and progress as Φ",
    ),
    seed: note(z.int().default(42), "random seed of everything that is drawn", { design: 42, trl: 42 }),
    output_dir: note(
      z.string().min(1).nullable().default(null),
      "the run's folder; null: the next free name under runs/",
      { trl: null },
    ),

    // How much
    num_train_epochs: note(positive.default(1), "epochs: times every question is asked", { design: 1, trl: 3 }),
    max_steps: note(
      z
        .int()
        .min(-1)
        .refine((steps) => steps !== 0, "give -1 or a number from 1")
        .default(-1),
      "optimizer steps; -1: as many as the epochs have",
      { trl: -1 },
    ),
    per_device_train_batch_size: note(count.default(2), "episodes per accumulated batch", { design: 2, trl: 8 }),
    gradient_accumulation_steps: note(count.default(4), "batches per optimizer step", { design: 4, trl: 1 }),
    num_generations: note(z.int().min(2).default(4), "group size: episodes played for each question", {
      design: 4,
      trl: 8,
    }),
    generation_batch_size: note(
      count.nullable().default(null),
      "episodes sampled together; null: batch size × steps_per_generation",
      { trl: null },
    ),
    steps_per_generation: note(
      count.nullable().default(null),
      "batches that a rollout batch is divided into; null: gradient_accumulation_steps",
      { trl: null },
    ),
    num_iterations: note(count.default(1), "optimization passes over each rollout batch (μ)", { trl: 1 }),
    easy_steps: note(z.int().min(0).default(0), "curriculum: first steps, which ask only easy questions"),
    // SFT before GRPO
    sft_steps: note(
      z.int().min(0).default(0),
      "SFT: optimizer steps of supervised fine-tuning on right episodes before GRPO; 0: none",
    ),
    sft_batch_tokens: note(count.default(16_384), "SFT: tokens per step, context included"),
    sft_learning_rate: note(positive.default(4e-4), "SFT: peak learning rate"),
    sft_max_context_tokens: note(
      count.default(1_536),
      "SFT: tokens per episode, at most; longer episodes are left out",
    ),
    sft_database_share: note(
      share.default(1 / 3),
      "SFT: share of the training databases (or questions, see sft_split), drawn by seed, whose gold SQL is demonstrated and which GRPO does not ask about; 0: no gold SQL of the data set is used",
    ),
    sft_split: note(
      z.enum(["database", "question"]).nullable().default(null),
      "SFT: whether it and GRPO have different training databases, or different questions about each; all phrasings of a query are on one side; null: question if there is one training database",
    ),
    sft_data_share: note(
      share.default(0.4),
      "SFT: share of its episodes on those databases or questions; the others are on practice worlds",
    ),
    sft_overlap: note(
      z.boolean().default(false),
      "SFT: let GRPO ask questions that SFT demonstrated; their groups are mostly all right or all wrong and teach nothing",
    ),
    dynamic_sampling: note(
      z.number().min(0).max(MAX_REFILL).default(0),
      "replace groups that are all right or all wrong with new questions, at most this many times the questions of a step; 0: off",
    ),
    skip_solved: note(
      z.int().min(0).max(MAX_SKIPPED_EPOCHS).default(0),
      "epochs for which a question is not asked again after all its episodes were right; half as many after all were wrong; 0: off",
    ),
    shuffle_dataset: note(z.boolean().default(true), "shuffle the questions anew each epoch", { trl: true }),

    // Prompts and sampling
    prompt: note(
      z.enum(PROMPT_NAMES).default("compact"),
      "prompt format: compact is the starter's; instruct and tools (calls in the model's own format) suit models that others trained",
    ),
    shots: note(
      z.literal(SHOT_COUNTS).default(0),
      "few-shot examples: episodes before the question, as earlier turns of the chat",
    ),
    max_new_tokens: note(count.default(256), "new tokens per turn, at most", { design: 256 }),
    max_completion_length: note(count.default(2560), "new tokens per episode, at most", { trl: 512 }),
    max_context_tokens: note(
      count.default(4096),
      "context length in tokens; a longer history is cut to the question and the last three turns",
    ),
    temperature: note(positive.default(1), "sampling temperature in training and in sampled evaluations", { trl: 1 }),
    top_p: note(
      positive.max(1).default(1),
      "nucleus sampling: share of probability of the likeliest tokens that are sampled from",
      {
        trl: 1,
      },
    ),
    top_k: note(z.int().min(0).default(0), "top-k sampling: number of likeliest tokens that are sampled from; 0: all", {
      trl: 0,
    }),
    min_p: note(
      share.nullable().default(null),
      "min-p sampling: least probability, relative to that of the likeliest token; null: off",
      {
        trl: null,
      },
    ),

    // Rewards and advantages
    reward_funcs: note(
      z.string().min(1).nullable().default(null),
      "more reward functions: a TypeScript or JavaScript file that exports them",
    ),
    reward_timeout: note(
      z.number().positive().nullable().default(600),
      "seconds a reward function may take for the episodes of a rollout batch; null: no limit",
    ),
    environment_timeout: note(
      z.number().positive().nullable().default(600),
      "seconds an environment may take for one reply before the episode is left out; null: no limit",
    ),
    environment_errors: note(
      z.enum(["skip", "stop"]).default("skip"),
      "episodes whose environment fails: leave them out, or stop the training with a checkpoint",
    ),
    reward_weights: note(
      z.array(z.number()).nullable().default(null),
      "weights of the reward functions, in their order; null: ones",
      {
        trl: null,
      },
    ),
    scale_rewards: note(
      z.union([z.enum(["group", "batch", "none"]), z.boolean()]).default("group"),
      "scale of advantages: divide by the standard deviation of the group, of the batch, or not",
      { trl: "group" },
    ),
    multi_objective_aggregation: note(
      z.enum(["sum_then_normalize", "normalize_then_sum"]).default("sum_then_normalize"),
      "aggregation of several rewards: sum, then normalize; or normalize each, then sum",
      { trl: "sum_then_normalize" },
    ),

    turn_credit: note(
      z.number().min(0).default(0),
      "weight of a second advantage, by the best query's progress, for the turns up to that query; 0: off",
    ),

    // The loss
    loss_type: note(
      z.enum(["grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo"]).default("dapo"),
      "policy loss",
      { trl: "dapo" },
    ),
    beta: note(z.number().min(0).default(0), "KL coefficient: weight of the KL term to the model before GRPO", {
      trl: 0,
    }),
    sync_ref_model: note(
      z.boolean().default(false),
      "move the KL term's reference towards the model every ref_model_sync_steps: reference ← (1 − α) · reference + α · model (TR-DPO); not with LoRA",
      { trl: false },
    ),
    ref_model_mixup_alpha: note(
      positive.max(1).default(0.6),
      "α of sync_ref_model; 1: the reference becomes the model",
      {
        trl: 0.6,
      },
    ),
    ref_model_sync_steps: note(count.default(512), "optimizer steps from one sync_ref_model to the next", { trl: 512 }),
    use_bias_correction_kl: note(z.boolean().default(true), "weight the KL term by the importance ratio", {
      trl: true,
    }),
    epsilon: note(positive.default(0.2), "clip range below: ratios under 1 − ε get no gradient that lowers them", {
      trl: 0.2,
    }),
    epsilon_high: note(
      positive.nullable().default(null),
      "clip range above: ratios over 1 + ε get no gradient that raises them; null: epsilon; cispo: the cap itself",
      { trl: null },
    ),
    delta: note(positive.nullable().default(null), "upper bound of ratios with a negative advantage; null: none", {
      trl: null,
    }),
    importance_sampling_level: note(
      z.enum(["token", "sequence"]).default("token"),
      "importance ratio of each token (GRPO) or of each episode (GSPO)",
      { trl: "token" },
    ),
    entropy_coef: note(
      z.number().min(0).default(0),
      "entropy bonus: its coefficient; with use_adaptive_entropy, the first one",
      { trl: 0 },
    ),
    use_adaptive_entropy: note(
      z.boolean().default(false),
      "adaptive entropy bonus: while the entropy is at most entropy_target, the bonus is on and its coefficient rises by entropy_coef_delta a step, else it is off and the coefficient falls; the groups without spread are computed too",
      { trl: false },
    ),
    entropy_target: note(
      z.number().min(0).default(0.2),
      "adaptive entropy bonus: mean entropy per token in nats, at or below which it is on; compare the metric entropy",
      { trl: 0.2 },
    ),
    entropy_coef_delta: note(positive.default(0.005), "adaptive entropy bonus: change of the coefficient per step", {
      trl: 0.005,
    }),
    entropy_coef_min: note(z.number().min(0).default(0), "adaptive entropy bonus: lowest coefficient", { trl: 0 }),
    entropy_coef_max: note(z.number().min(0).default(1), "adaptive entropy bonus: highest coefficient", { trl: 1 }),
    top_entropy_quantile: note(
      positive.max(1).default(1),
      "share of tokens that are learned from, those of highest entropy",
      {
        trl: 1,
      },
    ),
    off_policy_mask_threshold: note(
      positive.nullable().default(null),
      "off-policy mask: leave out episodes with a negative advantage that the model has moved away from by more; null: off",
      { trl: null },
    ),
    mask_truncated_completions: note(z.boolean().default(false), "leave truncated episodes out of the loss", {
      trl: false,
    }),
    self_distillation: note(
      z.number().min(0).default(0),
      "weight of self-distillation in groups that are all wrong: the model is drawn towards what it says when it is shown their errors first; 0: off",
    ),
    sapo_temperature_pos: note(positive.default(1), "sapo: temperature for positive advantages", { trl: 1 }),
    sapo_temperature_neg: note(positive.default(1.05), "sapo: temperature for negative advantages", { trl: 1.05 }),
    vespo_k_pos: note(positive.default(2), "vespo: k for positive advantages", { trl: 2 }),
    vespo_lambda_pos: note(positive.default(3), "vespo: λ for positive advantages", { trl: 3 }),
    vespo_k_neg: note(positive.default(3), "vespo: k for negative advantages", { trl: 3 }),
    vespo_lambda_neg: note(positive.default(2), "vespo: λ for negative advantages", { trl: 2 }),

    // Self-taught rounds: SFT on the model's own right episodes, after SFT and before GRPO
    self_taught_rounds: note(
      z.int().min(0).default(0),
      "self-taught: rounds before GRPO in which the model samples episodes on the training questions and is fine-tuned on its right ones; 0: none",
    ),
    self_taught_samples: note(count.default(8), "self-taught: episodes sampled for each question of a round"),
    self_taught_questions: note(
      count.nullable().default(1024),
      "self-taught: training questions per round, drawn by seed anew each round; null: all",
    ),
    self_taught_learning_rate: note(positive.default(1e-4), "self-taught: peak learning rate"),

    // All weights, or LoRA adapters
    use_peft: note(
      z.boolean().default(false),
      "LoRA: train adapters; the weights stay frozen and are the KL term's reference",
      {
        trl: false,
      },
    ),
    lora_r: note(count.default(16), "LoRA: rank", { trl: 16 }),
    lora_alpha: note(positive.default(32), "LoRA: alpha; adapters are scaled by lora_alpha / lora_r", { trl: 32 }),
    lora_target_modules: note(
      z.array(z.enum(LORA_MODULES)).min(1).nullable().default(null),
      "LoRA: modules of every layer with an adapter; null: q, k, v, o, gate, up and down_proj",
      { trl: null },
    ),

    // A remote engine
    engine: note(
      z.string().min(1).nullable().default(null),
      "remote engine: address of a server of the Tinker API that samples and trains; null: this machine",
    ),
    base_model: note(
      z.string().min(1).nullable().default(null),
      "remote engine: the model's name there; null: the first that it lists. model_name gives the tokenizer and the chat template",
    ),
    engine_checkpoint: note(
      z.string().min(1).nullable().default(null),
      "remote engine: a checkpoint there, tinker://…, to start from; null: new adapters",
    ),

    // The optimizer
    learning_rate: note(positive.default(5e-6), "peak learning rate", { design: 5e-6, trl: 1e-6 }),
    lr_scheduler_type: note(
      z.enum(["linear", "cosine", "constant"]).default("linear"),
      "learning rate schedule: the decay after LR warmup",
      {
        trl: "linear",
      },
    ),
    warmup_steps: note(z.int().min(0).default(0), "LR warmup steps", { trl: 0 }),
    weight_decay: note(z.number().min(0).default(0), "weight decay (AdamW)", { trl: 0 }),
    adam_beta1: note(share.default(0.9), "β1 of AdamW: decay of the mean gradient", { trl: 0.9 }),
    adam_beta2: note(share.default(0.999), "β2 of AdamW: decay of the mean squared gradient", { trl: 0.999 }),
    adam_epsilon: note(positive.default(1e-8), "ε of AdamW", { trl: 1e-8 }),
    max_grad_norm: note(positive.default(1), "gradient clipping: largest norm of the gradient", { trl: 1 }),

    // Logging, evaluation and checkpoints
    logging_steps: note(count.default(10), "steps between lines of metrics.jsonl", { design: 10, trl: 10 }),
    eval_steps: note(z.int().min(0).default(100), "steps between evaluations; 0: only before and after", { trl: null }),
    eval_at: note(z.array(count).default([]), "further steps to evaluate at, unless eval_steps is 0"),
    eval_episodes: note(
      count.default(32),
      "episodes of an evaluation during training, on seen and on unseen databases each",
    ),
    final_eval_episodes: note(
      count.nullable().default(null),
      "episodes of the evaluations before and after, on seen and on unseen databases each; null: every question once",
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
      "pass@k before training: tries for each of some training questions, to know what reward can reach; 0: not measured",
    ),
    pass_questions: note(count.default(64), "pass@k: number of training questions"),
    comparison_episodes: note(z.int().min(0).default(6), "questions in the side-by-side comparison"),
    save_steps: note(count.default(50), "steps between checkpoints", { trl: 500 }),
    save_total_limit: note(count.default(2), "checkpoints that are kept", { trl: null }),
    report_to: note(
      z.enum(["none", "tensorboard"]).default("none"),
      "where metrics go besides metrics.jsonl; tensorboard: event files in the run's tensorboard/",
      { trl: "none" },
    ),

    // Device and threads
    device: note(
      z.enum(["auto", "cpu", "cuda", "webgpu"]).default("auto"),
      "device: auto is a CUDA GPU that can be used, else a GPU through the package webgpu if that is installed, else the CPU",
    ),
    precision: note(
      z.enum(["auto", "bf16", "fp32"]).default("auto"),
      "precision of a GPU's activations; auto: bf16 where the GPU has it; the CPU has fp32",
    ),
    threads: note(count.nullable().default(null), "CPU threads (null: all); results do not depend on it"),
    environment_threads: note(
      z.int().min(0).max(64).nullable().default(null),
      "worker threads that run the environments; 0: the main thread; null: beside a GPU one per core but two, at most 8, else 0; results do not depend on it",
    ),
    max_gpu_memory: note(positive.nullable().default(null), "GPU memory to use, in gigabytes; null: all"),
    gradient_checkpointing: note(
      z.boolean().default(false),
      "recompute activations in the backward pass instead of saving them: slower, less memory",
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
