// Settings that a training of a loaded model cannot honour are refused by name.
import { expect, test } from "vitest";
import { type GRPOConfigInput, resolveConfig } from "../config.ts";
import { refuseUnused } from "./given-model.ts";
import type { TrainAndEvaluateOptions } from "./train-and-evaluate.ts";

/** Full options, of which only these are read. */
function given(
  config: GRPOConfigInput,
  more: Partial<TrainAndEvaluateOptions> = {},
  facts?: object,
): TrainAndEvaluateOptions {
  return { config: resolveConfig(config), model: { engine: { facts } }, ...more } as unknown as TrainAndEvaluateOptions;
}

const CPU = { device: "cpu", threads: 2, parameters: 100, trained: 100 };

test.each<[string, GRPOConfigInput]>([
  ["sft_steps", { sft_steps: 1 }],
  ["self_taught_rounds", { self_taught_rounds: 1 }],
  ["use_peft", { use_peft: true }],
  ["device", { device: "cuda" }],
  ["precision", { precision: "bf16" }],
  ["threads", { threads: 3 }],
  ["max_gpu_memory", { max_gpu_memory: 8 }],
  ["gradient_checkpointing", { gradient_checkpointing: true }],
  ["environment_threads", { environment_threads: 2 }],
  ["reward_funcs", { reward_funcs: "mine.ts" }],
  ["output_dir", { output_dir: "runs/mine" }],
])("%s", (key, config) => {
  expect(() => refuseUnused(given(config, {}, CPU))).toThrow(
    new RegExp(`^runTraining cannot honour ${key} with a model that is already loaded; it is: .+; `),
  );
});

test("what the model and the passed objects honour is accepted", () => {
  const config: GRPOConfigInput = { device: "cpu", precision: "fp32", threads: 2, use_peft: true, output_dir: "x" };
  const others = { store: {}, rewardFuncs: [], environments: {} } as unknown as Partial<TrainAndEvaluateOptions>;
  const all = { ...config, reward_funcs: "mine.ts", environment_threads: 2 };
  expect(() => refuseUnused(given(all, others, { ...CPU, trained: 10 }))).not.toThrow();
  expect(() => refuseUnused(given({}))).not.toThrow();
});
