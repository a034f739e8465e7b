// Named sets of settings that are known to work together.

import { nearest, UsageError } from "../errors.ts";
import { GUIDED_RULES } from "../gym/env/index.ts";
import type { GRPOConfigInput } from "./config.ts";

/** Correctness dominates and progress breaks ties; the operational rewards are small amounts. */
const REWARD_WEIGHTS = [1, 0.15, 1];

/** Measures pass@8 before training, for pretrained models. */
const PASS_8 = { pass_k: 8 } as const;

/** Three examples took Qwen2.5-Coder-1.5B from 4 to 46 % right answers on training databases; they need a longer context. */
const ASKED_WITH_EXAMPLES: GRPOConfigInput = { ...PASS_8, prompt: "instruct", shots: 3, max_context_tokens: 4096 };

/** An instruction-tuned model needs few episodes to learn the format; they are longer, since they contain the examples. */
const SHORT_SFT: GRPOConfigInput = { sft_steps: 45, sft_learning_rate: 1e-4, sft_max_context_tokens: 4096 };

/**
 * Settings for Qwen3, without thinking (the turn encoder turns it off): SFT on some whole episodes first, easy
 * questions before others, and a KL term, without which the format drifts. LoRA, so that a T4 is enough.
 */
const QWEN3: GRPOConfigInput = {
  ...GUIDED_RULES,
  ...ASKED_WITH_EXAMPLES,
  reward_weights: REWARD_WEIGHTS,
  use_peft: true,
  lora_r: 16,
  lora_alpha: 32,
  ...SHORT_SFT,
  num_train_epochs: 2,
  easy_steps: 40,
  per_device_train_batch_size: 8,
  gradient_accumulation_steps: 8,
  num_generations: 8,
  learning_rate: 2e-5,
  warmup_steps: 5,
  beta: 0.04,
  max_new_tokens: 192,
  max_completion_length: 1024,
  gradient_checkpointing: true,
  logging_steps: 1,
  eval_steps: 24,
  save_steps: 12,
};

/**
 * The recipe that trained SmolLM2-135M on Spider: SFT, then GRPO on other databases, all weights, a high learning rate,
 * large batches, and advantages that are not divided by a standard deviation (scale_rewards none).
 */
const SMOLLM2: GRPOConfigInput = {
  ...GUIDED_RULES,
  ...PASS_8,
  reward_weights: REWARD_WEIGHTS,
  scale_rewards: "none",
  sft_steps: 200,
  max_steps: 300,
  num_train_epochs: 100,
  per_device_train_batch_size: 256,
  gradient_accumulation_steps: 1,
  num_generations: 8,
  learning_rate: 6e-5,
  lr_scheduler_type: "linear",
  max_new_tokens: 160,
  max_completion_length: 640,
  max_context_tokens: 2048,
  step_budget: 8,
  logging_steps: 1,
  eval_steps: 50,
  save_steps: 25,
};

/** Models from half a billion parameters on: the same episodes and rewards, learned by adapters in smaller steps. */
const LARGER: GRPOConfigInput = {
  ...SMOLLM2,
  ...ASKED_WITH_EXAMPLES,
  use_peft: true,
  lora_r: 16,
  lora_alpha: 32,
  ...SHORT_SFT,
  max_steps: 200,
  per_device_train_batch_size: 8,
  gradient_accumulation_steps: 8,
  learning_rate: 2e-5,
  warmup_steps: 5,
  gradient_checkpointing: true,
};

/** Spider: SFT on a third of its training databases and on practice worlds, GRPO on the others, evaluation on unseen ones. */
const SPIDER: GRPOConfigInput = {
  questions_path: "spider",
  difficulty_filter: ["easy", "medium", "hard"],
  max_instructions: 3_000_000, // keeps a cross join from holding up a step (docs/decisions/0029-environment-threads.md)
  eval_step_budget: 10,
  eval_steps: 150,
  eval_episodes: 128,
  final_eval_sampled_episodes: 128, // sampling all questions would take as long as the greedy evaluation
  save_steps: 100,
  seed: 1,
};

const SPIDER_SMOLLM2: GRPOConfigInput = {
  ...SMOLLM2,
  ...SPIDER,
  model_name: "HuggingFaceTB/SmolLM2-135M-Instruct",
  sft_steps: 800,
  max_steps: 600, // on unseen databases the last 150 add little
  // The teacher's longest episode has 312 tokens; longer ones of the model repeat themselves, and a whole step waits
  // for them.
  max_new_tokens: 144,
  max_completion_length: 384,
};

/** The default training: nothing but habits to learn, on practice worlds. */
const STARTER: GRPOConfigInput = {
  model_name: "starter",
  questions_path: "starter",
  reward_weights: REWARD_WEIGHTS,
  max_steps: 40,
  num_train_epochs: 100,
  per_device_train_batch_size: 64,
  gradient_accumulation_steps: 1,
  num_generations: 8,
  scale_rewards: "none", // in an all-wrong group only shaping differs; dividing by its small std would reward endless exploration
  learning_rate: 1e-3,
  lr_scheduler_type: "linear",
  max_new_tokens: 96,
  max_completion_length: 320,
  max_context_tokens: 1024,
  step_budget: 8,
  logging_steps: 1,
  eval_steps: 10,
  eval_at: [2, 4, 6, 8], // most of the learning happens here
  eval_episodes: 24,
  final_eval_episodes: 96,
  save_steps: 10,
};

/**
 * The starter on a thousand questions about one's own databases, made by `data make`. It has never read their words, so SFT
 * shows it most of the queries; GRPO asks the others.
 */
const OWN_STARTER: GRPOConfigInput = {
  ...STARTER,
  questions_path: "bundled",
  difficulty_filter: ["easy", "medium", "hard"],
  sft_split: "question",
  sft_steps: 250, // from one and a half passes over 768 episodes of large tables to three
  sft_batch_tokens: 4_096,
  sft_learning_rate: 1e-3,
  sft_max_context_tokens: 2048,
  sft_database_share: 0.8,
  sft_data_share: 1,
  max_steps: 20,
  learning_rate: 3e-4,
  max_new_tokens: 160,
  max_completion_length: 480,
  max_context_tokens: 2048,
  eval_at: [],
  final_eval_episodes: 120,
  final_eval_sampled_episodes: 0,
};

export const PRESETS: Readonly<Record<string, GRPOConfigInput>> = {
  starter: STARTER,
  "own-starter": OWN_STARTER,
  "qwen3-0.6b": { ...QWEN3, model_name: "Qwen/Qwen3-0.6B" },
  "colab-t4": {
    ...QWEN3,
    model_name: "Qwen/Qwen3-0.6B",
    sft_steps: 40,
    sft_batch_tokens: 8_192,
    max_steps: 60,
    num_train_epochs: 100,
    easy_steps: 20,
    gradient_accumulation_steps: 4,
    eval_steps: 20,
    eval_episodes: 12,
    final_eval_episodes: 24,
    final_eval_sampled_episodes: 0,
    pass_questions: 12,
    save_steps: 10,
  },
  "qwen3-1.7b": {
    ...QWEN3,
    model_name: "Qwen/Qwen3-1.7B",
    per_device_train_batch_size: 4,
    gradient_accumulation_steps: 16,
    learning_rate: 1e-5,
    sft_learning_rate: 5e-5,
  },
  "smollm2-135m": { ...SMOLLM2, model_name: "HuggingFaceTB/SmolLM2-135M-Instruct" },
  "smollm2-360m": { ...SMOLLM2, model_name: "HuggingFaceTB/SmolLM2-360M-Instruct", learning_rate: 4e-5 },
  "qwen2.5-coder-0.5b": { ...LARGER, model_name: "Qwen/Qwen2.5-Coder-0.5B-Instruct" },
  "qwen2.5-coder-1.5b": {
    ...LARGER,
    model_name: "Qwen/Qwen2.5-Coder-1.5B-Instruct",
    per_device_train_batch_size: 4,
    gradient_accumulation_steps: 16,
    learning_rate: 1e-5,
    sft_learning_rate: 5e-5,
  },
  "llama-3.2-1b": {
    ...LARGER,
    model_name: "meta-llama/Llama-3.2-1B-Instruct",
    per_device_train_batch_size: 4,
    gradient_accumulation_steps: 16,
    learning_rate: 1e-5,
    sft_learning_rate: 5e-5,
  },
  "spider-smollm2": SPIDER_SMOLLM2,
  "spider-smollm2-nosql": { ...SPIDER_SMOLLM2, sft_database_share: 0 },
  "spider-qwen2.5-coder": {
    ...LARGER,
    ...SPIDER,
    model_name: "Qwen/Qwen2.5-Coder-1.5B-Instruct",
    per_device_train_batch_size: 256,
    gradient_accumulation_steps: 1,
    sft_steps: 0,
  },
  spider10: { ...QWEN3, model_name: "Qwen/Qwen3-0.6B", questions_path: "spider10" },
};

/** What the settings of each preset were tested on, or that they are untested. */
export const PRESET_NOTES: Readonly<Record<string, string>> = {
  starter: "tried on five seeds (docs/results.md): the bundled model learns within minutes on two CPU cores",
  "own-starter":
    "tried on four databases, and with fewer SFT steps on two others, one seed each (docs/your-data.md): new questions about the same database, two cores; chosen for questions of data make",
  "qwen3-0.6b": "settings not tried yet; put together from what others report for Qwen3",
  "colab-t4":
    "settings not tried yet; as qwen3-0.6b with fewer episodes and steps, 30 to 60 minutes on a free T4 by the dry run's estimate",
  "qwen3-1.7b": "settings not tried yet; as qwen3-0.6b, slower",
  "smollm2-135m":
    "GRPO settings tried on Spider: 34.4 to 48.7 % on unseen databases in 550 steps, after SFT on practice worlds and a third of its training databases, by the default rules; on the bundled questions they are not tried yet",
  "smollm2-360m": "settings not tried yet; as smollm2-135m with a lower learning rate",
  "qwen2.5-coder-0.5b": "settings not tried yet; LoRA",
  "qwen2.5-coder-1.5b": "settings not tried yet; LoRA",
  "llama-3.2-1b": "settings not tried yet; LoRA",
  "spider-smollm2":
    "tried on three seeds (docs/spider.md): 38 to 54 % on unseen databases, from 0 % untrained, in 18 minutes on an H200 beside two other trainings",
  "spider-smollm2-nosql":
    "tried with 275 GRPO steps, one seed (docs/spider.md): 25 to 46 % on unseen databases in 6 minutes on an H200; SFT sees no SQL of Spider",
  "spider-qwen2.5-coder": "settings not tried yet; LoRA, no SFT",
  spider10: "settings not tried yet; as qwen3-0.6b on ten databases of Spider",
};

export const PRESET_NAMES = Object.keys(PRESETS);

/**
 * The preset for a model: its own, else the one for the nearest size (of the same family for Qwen3). A model of unknown
 * size gets one with LoRA and small steps.
 *
 * @example
 * presetFor("Qwen/Qwen3-0.6B"); // "qwen3-0.6b"
 * presetFor("my/model-300M"); // "smollm2-360m"
 */
export function presetFor(model: string, parameters: number | undefined = sizeInName(model)): string {
  const own = PRESET_NAMES.find((name) => {
    const { model_name, questions_path = "bundled" } = PRESETS[name]!;
    return model_name === model && ["bundled", "starter"].includes(questions_path);
  });
  if (own) return own;
  if (parameters === undefined) return "qwen2.5-coder-0.5b";
  if (/qwen-?3/i.test(model) && parameters >= 450e6) return parameters < 1e9 ? "qwen3-0.6b" : "qwen3-1.7b";
  const sizes: [number, string][] = [
    [60e6, "starter"],
    [250e6, "smollm2-135m"],
    [450e6, "smollm2-360m"],
    [1e9, "qwen2.5-coder-0.5b"],
  ];
  return sizes.find(([below]) => parameters < below)?.[1] ?? "qwen2.5-coder-1.5b";
}

/** Parameters as names have them: 135M, 0.6B. */
function sizeInName(model: string): number | undefined {
  const [, digits, unit] = /(\d+(?:\.\d+)?)([mb])(?![a-z])/i.exec(model) ?? [];
  return digits === undefined ? undefined : Number(digits) * (unit!.toLowerCase() === "b" ? 1e9 : 1e6);
}

/**
 * The settings of a preset; throws UsageError with the nearest name.
 *
 * @example
 * const config = resolveConfig({ ...presetNamed("starter"), max_steps: 20 });
 */
export function presetNamed(name: string): GRPOConfigInput {
  const preset = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined;
  if (preset) return preset;
  const guess = nearest(name, PRESET_NAMES);
  throw new UsageError({
    what: "no such preset",
    value: name,
    remedy: guess ? `did you mean ${guess}?` : `there are ${PRESET_NAMES.join(", ")}`,
  });
}
