import { describe, expect, test } from "vitest";
import { KNOWN_MODELS } from "../lm/model/formats/known.ts";
import { batchingOf, CONFIG_KEYS, configSchema, learningRateAt, resolveConfig } from "./config.ts";
import { PRESET_NAMES, PRESET_NOTES, presetFor, presetNamed } from "./presets.ts";

describe("defaults", () => {
  test("are those of the first design", () => {
    expect(resolveConfig()).toMatchObject({
      ...{ model_name: "Qwen/Qwen3-1.7B", max_new_tokens: 256, num_train_epochs: 1, per_device_train_batch_size: 2 },
      ...{ gradient_accumulation_steps: 4, learning_rate: 5e-6, num_generations: 4, questions_path: "bundled" },
      ...{ db_dir: "bundled", step_budget: 10, difficulty_filter: ["easy", "medium"], seed: 42, logging_steps: 10 },
    });
  });

  test("are TRL's if the first design sets none", () => {
    expect(resolveConfig()).toMatchObject({
      ...{ loss_type: "dapo", beta: 0, epsilon: 0.2, epsilon_high: null, delta: null, scale_rewards: "group" },
      ...{ temperature: 1, top_p: 1, top_k: 0, min_p: null, max_grad_norm: 1, reward_weights: null, num_iterations: 1 },
      ...{ use_bias_correction_kl: true, importance_sampling_level: "token", mask_truncated_completions: false },
      ...{ weight_decay: 0, adam_beta1: 0.9, adam_beta2: 0.999, adam_epsilon: 1e-8, lr_scheduler_type: "linear" },
      ...{ warmup_steps: 0, max_steps: -1, entropy_coef: 0, top_entropy_quantile: 1, shuffle_dataset: true },
    });
  });

  test("every setting has a description, and the first design's default unless that is a path", () => {
    const shape = configSchema.unwrap().shape;
    const defaults = resolveConfig() as Record<string, unknown>;
    for (const key of CONFIG_KEYS) {
      const { description, design } = shape[key].meta() as { description?: string; design?: unknown };
      expect(description, key).toBeTruthy();
      if (design !== undefined && !/path|dir/.test(key)) expect(defaults[key], key).toEqual(design);
    }
  });

  test.each(PRESET_NAMES)("preset %s fits together", (name) => {
    const config = resolveConfig(presetNamed(name));
    expect(PRESET_NOTES[name]).toMatch(/tried/);
    if (config.model_name !== "starter") expect(KNOWN_MODELS).toHaveProperty([config.model_name]);
  });
});

test.each([
  ["starter", undefined, "starter"],
  ["runs/starter/model", 4.7e6, "starter"],
  ["Qwen/Qwen3-0.6B", undefined, "qwen3-0.6b"],
  ["ollama:qwen3:1.7b", undefined, "qwen3-1.7b"],
  ["HuggingFaceTB/SmolLM2-135M", undefined, "smollm2-135m"],
  ["HuggingFaceTB/SmolLM2-135M-Instruct", undefined, "smollm2-135m"],
  ["x/Model-1B-Instruct", undefined, "qwen2.5-coder-1.5b"],
  ["nobody/x", undefined, "qwen2.5-coder-0.5b"],
])("the preset for %s, of %s parameters, is %s", (model, parameters, preset) => {
  expect(presetFor(model, parameters)).toBe(preset);
});

describe("bad settings", () => {
  test.each([
    [{ num_generation: 4 }, /no such setting: num_generation; did you mean num_generations\?/],
    [{ reward: { step_costs: 1 } }, /no such setting: reward\.step_costs/],
    [{ learning_rate: "fast" }, /learning_rate takes a number: fast; for example 5e-6/],
    [{ learning_rate: -1 }, /learning_rate must be above 0: -1/],
    [{ num_generations: 1 }, /num_generations must be at least 2: 1/],
    [{ loss_type: "ppo" }, /loss_type takes grpo, .*: ppo/],
    [{ difficulty_filter: ["simple"] }, /difficulty_filter\.0 takes easy, medium or hard: simple/],
    [
      { num_generations: 3 },
      /does not make groups of num_generations: 3; choose num_generations among the divisors of 8/,
    ],
    [{ generation_batch_size: 8, steps_per_generation: 4 }, /both given: 8 and 4/],
    [{ generation_batch_size: 9, num_generations: 3 }, /multiple of per_device_train_batch_size \(2\): 9/],
    [{ steps_per_generation: 6, num_generations: 4 }, /must divide one another: 6/],
    [{ max_new_tokens: 5000 }, /below max_context_tokens \(4096\): 5000/],
    [{ max_completion_length: 100 }, /at least max_new_tokens \(a turn, 256\): 100/],
    [{ dynamic_sampling: 1e9, max_steps: 1 }, /dynamic_sampling must be at most 100: 1000000000/], // a queue of that length
    [{ skip_solved: 1e9, max_steps: 1 }, /skip_solved must be at most 1000: 1000000000/], // that many epochs to pass over
    [{ self_distillation: 0.1, importance_sampling_level: "sequence" }, /an advantage of its own; use token/],
    [{ self_distillation: 0.1, dynamic_sampling: 1, max_steps: 1 }, /dynamic_sampling replaces; its weight is: 0\.1/],
    [{ off_policy_mask_threshold: 0.1 }, /nothing to mask/],
    [{ sync_ref_model: true }, /no reference to move: beta is: 0; give the KL term a weight/],
    [{ sync_ref_model: true, beta: 0.1, use_peft: true }, /does not go with use_peft: true; with LoRA the reference/],
    [{ use_adaptive_entropy: true, top_entropy_quantile: 0.2 }, /entropy of all tokens; top_entropy_quantile is: 0\.2/],
    [{ entropy_coef_min: 2 }, /entropy_coef_min must be at most entropy_coef_max \(1\): 2/],
  ])("%j is refused with a remedy", (given, message) => {
    expect(() => resolveConfig(given)).toThrow(message);
  });

  test("an unknown preset is refused with the nearest name", () => {
    expect(() => presetNamed("startr")).toThrow(/no such preset: startr; did you mean starter\?/);
  });
});

describe("former settings", () => {
  const resolved = (given: object) => {
    const lines: string[] = [];
    return { config: resolveConfig({ ...given }, { onDeprecated: (line) => lines.push(line) }), lines };
  };

  test("imitation_* are read as SFT on all training databases, which GRPO asks about too, with a deprecation line", () => {
    const { config, lines } = resolved({ imitation_episodes: 100, imitation_epochs: 3, max_context_tokens: 2000 });
    expect(config).toMatchObject({
      ...{ sft_steps: 38, sft_learning_rate: 2e-5, sft_batch_tokens: 4096, sft_max_context_tokens: 2000 },
      ...{ sft_database_share: 1, sft_data_share: 1, sft_overlap: true },
    });
    expect(lines).toEqual([
      expect.stringMatching(
        /^deprecated: imitation_episodes, imitation_epochs; read as sft_steps 38, sft_learning_rate/,
      ),
    ]);
  });

  test("they win over a preset's, and 0 episodes turn SFT off", () => {
    const preset = presetNamed("qwen3-0.6b");
    expect(resolved({ ...preset, imitation_episodes: 0 }).config.sft_steps).toBe(0);
    const { config } = resolved({ ...preset, imitation_learning_rate: 3e-5 });
    expect(config).toMatchObject({ sft_steps: 45, sft_learning_rate: 3e-5, sft_overlap: false });
  });

  test("bad values and unknown old names are refused", () => {
    expect(() => resolveConfig({ imitation_episodes: "many" })).toThrow(/no such setting any more: imitation_episodes/);
    expect(() => resolveConfig({ imitation_steps: 2 })).toThrow(/no such setting any more: imitation_steps/);
  });
});

test("batches: the defaults play two questions four times for each step", () => {
  expect(batchingOf(resolveConfig())).toEqual({ generation_batch_size: 8, questions: 2, slices: 1, accumulations: 1 });
  expect(batchingOf(resolveConfig({ steps_per_generation: 8 }))).toEqual({
    ...{ generation_batch_size: 16, questions: 4, slices: 2, accumulations: 1 },
  });
  expect(batchingOf(resolveConfig({ generation_batch_size: 4 }))).toEqual({
    ...{ generation_batch_size: 4, questions: 1, slices: 1, accumulations: 2 },
  });
});

test("the learning rate rises during LR warmup and decays to 0", () => {
  const config = resolveConfig({ learning_rate: 1, warmup_steps: 2 });
  const rates = [1, 2, 3, 4, 5, 6].map((step) => learningRateAt(step, 6, config));
  expect(rates).toEqual([0, 0.5, 1, 0.75, 0.5, 0.25]);
  expect(learningRateAt(6, 6, { ...config, lr_scheduler_type: "constant" })).toBe(1);
  expect(learningRateAt(4, 6, { ...config, lr_scheduler_type: "cosine" })).toBeCloseTo(0.8536, 4);
});
