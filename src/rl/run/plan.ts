// What a training will take, before it begins: its stages, its memory, and its time on common GPUs.

import { OOMError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import type { Precision } from "../../lm/devices/cuda/device.ts";
import { cudaLimits, estimateMemory, type MemoryEstimate, type MemoryPlace } from "../../lm/engine/index.ts";
import { type ModelConfig, parameterCount } from "../../lm/model/config.ts";
import { KNOWN_MODELS } from "../../lm/model/formats/known.ts";
import type { LoraSpec } from "../../lm/model/lora.ts";
import { batchingOf, type GRPOConfig, resolveConfig, stepsOf } from "../config.ts";
import type { Environment } from "../environment.ts";
import { PRESET_NAMES, presetNamed } from "../presets.ts";
import { loadQuestionPrompts } from "../sql/questions.ts";
import { createSqlEnvironment } from "../sql/sql-environment.ts";
import { easyTasks } from "../task-order.ts";
import { sftDatabases, sftQuestions } from "./split.ts";

/** A GPU class, with the manufacturer's figures. */
export interface GpuClass {
  readonly name: string;
  /** Bytes available to a program. */
  readonly memory: number;
  readonly precision: Precision;
  /** Peak operations per second of dense matmuls at that precision, and peak bytes read per second. */
  readonly flops: number;
  readonly bandwidth: number;
}

export const GPU_CLASSES: readonly GpuClass[] = [
  { name: "T4", memory: 15.6e9, precision: "fp32", flops: 8.1e12, bandwidth: 320e9 },
  { name: "L4", memory: 23.6e9, precision: "bf16", flops: 121e12, bandwidth: 300e9 },
  { name: "RTX 4090", memory: 24.9e9, precision: "bf16", flops: 165e12, bandwidth: 1008e9 },
  { name: "A100 or H100, 80 GB", memory: 84e9, precision: "bf16", flops: 312e12, bandwidth: 2000e9 },
];

/** A stage of a training. */
export interface PlannedStage {
  readonly name: "sft" | "self_taught" | "easy" | "all";
  readonly text: string;
  /** Number of optimizer steps; for self-taught, of rounds, whose steps depend on how many episodes are right. */
  readonly steps: number;
}

/** The stages of a training on a data set, or in another environment than SQL, in order. */
export function stagesOf(config: GRPOConfig, data: DataSet | Environment): PlannedStage[] {
  const { sft_steps, easy_steps, difficulty_filter, beta } = config;
  const isSql = !("tasks" in data);
  const prompts = isSql ? loadQuestionPrompts(data, config) : data.tasks("train");
  const total = stepsOf(config, prompts.length);
  const easy = Math.min(easy_steps, total);
  const { questions } = batchingOf(config);
  const kl = beta > 0 ? `, KL ${beta} to the model before them` : "";
  const what = isSql ? "questions" : "tasks";
  const asked = `${questions} ${what} × ${config.num_generations} episodes a step, learning rate ${config.learning_rate}${kl}`;
  const easyQuestions = () => easyTasks(environmentOf(data, config).tasks("train"), data.name);
  const easyText = () => `GRPO on the ${shown(easyQuestions().length)} easy training ${what}: ${asked}`;
  const kinds = isSql ? ` (${difficulty_filter.join(", ")})` : "";
  const stages: PlannedStage[] = [
    { name: "sft", text: sft_steps > 0 && isSql ? sftText(config, data) : "", steps: sft_steps },
    { name: "self_taught", text: selfTaughtText(config, prompts.length), steps: config.self_taught_rounds },
    { name: "easy", text: easy > 0 ? easyText() : "", steps: easy },
    {
      name: "all",
      text: `GRPO on ${shown(prompts.length)} training ${what}${kinds}: ${asked}`,
      steps: total - easy,
    },
  ];
  return stages.filter(({ steps }) => steps > 0);
}

function environmentOf(data: DataSet | Environment, config: GRPOConfig): Environment {
  return "tasks" in data ? data : createSqlEnvironment({ data, config });
}

function shown(value: number): string {
  return value.toLocaleString("en-US");
}

function sftText(config: GRPOConfig, data: DataSet): string {
  const { sft_data_share, sft_batch_tokens, sft_learning_rate } = config;
  const databases = sftDatabases(data, config);
  const share = Math.round(100 * sft_data_share);
  const on =
    databases.length === 0
      ? "practice worlds; no SQL of the data set is used"
      : `${share < 100 ? `practice worlds and (${share} %) on ` : ""}${shown(sftQuestions(data, config).length)} questions on ${databases.length} training database${databases.length === 1 ? "" : "s"}`;
  return `SFT on right episodes on ${on}: ${shown(sft_batch_tokens)} tokens a step, learning rate ${sft_learning_rate}`;
}

function selfTaughtText(config: GRPOConfig, questions: number): string {
  const { self_taught_samples: samples, self_taught_questions: most, self_taught_learning_rate: rate } = config;
  return `SFT on the model's own right episodes, of ${samples} on each of ${shown(Math.min(questions, most ?? questions))} training questions, learning rate ${rate}`;
}

/** The settings that decide memory, as the engine takes them. */
export function memoryOptionsOf(config: GRPOConfig): {
  readonly trains: true;
  readonly recompute: boolean;
  readonly reference: boolean;
  readonly lora: LoraSpec | undefined;
} {
  const { gradient_checkpointing: recompute, beta, use_peft, lora_r: r, lora_alpha: alpha } = config;
  const targets = config.lora_target_modules;
  const lora = use_peft ? { r, alpha, ...(targets && { targets }) } : undefined;
  return { trains: true, recompute, reference: beta > 0, lora };
}

export interface GpuPlan {
  readonly gpu: string;
  readonly precision: Precision;
  /** Why the training does not fit; null if it does. */
  readonly refused: string | null;
  readonly memory: MemoryEstimate | null;
  /** Minimum bytes, with smaller batches and caches. */
  readonly least: number;
  readonly step_seconds: number;
}

/** Memory and time on a GPU. */
export function planFor(
  name: string,
  model: ModelConfig,
  config: GRPOConfig,
  { name: gpu, memory, precision, flops, bandwidth }: GpuClass,
): GpuPlan {
  const options = memoryOptionsOf(config);
  const place: MemoryPlace = { device: "cuda", precision, memory };
  const least = estimateMemory(model, { ...options, place, rows: 1_024, cacheTokens: 8_192 }).total;
  const step_seconds = stepSeconds(model, config, { precision, flops, bandwidth });
  try {
    const { maxRows: rows, maxCachedTokens: cacheTokens } = cudaLimits(
      name,
      model,
      { gpu: { memory }, precision },
      options,
    );
    const estimate = estimateMemory(model, { ...options, place, rows, cacheTokens, promptRows: Math.min(rows, 8_192) });
    return { gpu, precision, refused: null, memory: estimate, least, step_seconds };
  } catch (error) {
    if (!(error instanceof OOMError)) throw error;
    return { gpu, precision, refused: error.message, memory: null, least, step_seconds };
  }
}

/** An average bundled episode in Qwen3's tokens: its final context, its sampled tokens, and the share not shared by its group. */
const EPISODE = { context: 620, written: 130, unshared: 0.55 };
const USED_FLOPS = 0.4; // share of the peak, as measured on an H200 (docs/gpu.md)
const USED_BANDWIDTH = 0.5;
const HOST_SECONDS = 0.002; // host time per decode step: environment, tokens, launches

/** Seconds of a GRPO step on a GPU, accurate to a factor of two. */
export function stepSeconds(
  model: ModelConfig,
  config: GRPOConfig,
  { precision, flops, bandwidth }: Pick<GpuClass, "precision" | "flops" | "bandwidth">,
): number {
  const { generation_batch_size: episodes, accumulations } = batchingOf(config);
  const parameters = parameterCount(model);
  const rows = episodes * EPISODE.context * EPISODE.unshared;
  const passes = passesOf(config) + (config.beta > 0 ? 2 : 0); // the reference model's forward pass
  const learning = (passes * parameters * rows) / (USED_FLOPS * flops);
  return accumulations * (learning + playSeconds(model, episodes, rows, { precision, flops, bandwidth }));
}

type Speed = Pick<GpuClass, "precision" | "flops" | "bandwidth">;

/** Seconds to play episodes together: `rows` tokens of prompts and results, then decoding. */
function playSeconds(model: ModelConfig, episodes: number, rows: number, gpu: Speed): number {
  const parameters = parameterCount(model);
  const prompts = (2 * parameters * rows) / (USED_FLOPS * gpu.flops);
  const a = gpu.precision === "bf16" ? 2 : 4;
  const { num_hidden_layers: L, num_key_value_heads: G, head_dim: d } = model;
  const read = a * (parameters + (episodes * EPISODE.context * 2 * G * d * L) / 2);
  const decoding = 1.5 * EPISODE.written * (read / (USED_BANDWIDTH * gpu.bandwidth) + HOST_SECONDS);
  return prompts + decoding;
}

/** Episodes of all evaluations of a training: before and after each stage, during GRPO, and pass@k. */
export function evaluationEpisodes(config: GRPOConfig, data: DataSet | Environment, steps: number): number {
  const { tasks } = environmentOf(data, config);
  const seen = tasks("eval").filter((task) => task.seen).length;
  const sizes = [seen, tasks("eval").length - seen];
  const once = (greedy: number | null, sampled: number | null) =>
    sizes.reduce((sum, n) => sum + Math.min(n, greedy ?? n) + Math.min(n, sampled ?? greedy ?? n), 0);
  const stages = config.sft_steps > 0 || config.self_taught_rounds > 0 ? 3 : 2;
  const during =
    config.eval_steps > 0
      ? Math.floor(steps / config.eval_steps) + config.eval_at.filter((step) => step <= steps).length
      : 0;
  return (
    stages * once(config.final_eval_episodes, config.final_eval_sampled_episodes) +
    during * once(config.eval_episodes, null) +
    config.pass_k * Math.min(config.pass_questions, tasks("train").length)
  );
}

/** Seconds of evaluations on a GPU, accurate to a factor of two. */
export function evaluationSeconds(model: ModelConfig, episodes: number, gpu: Speed): number {
  const together = Math.min(episodes, EVALUATED_TOGETHER);
  if (episodes === 0) return 0;
  return Math.ceil(episodes / together) * playSeconds(model, together, together * EPISODE.context, gpu);
}

const EVALUATED_TOGETHER = 64; // episodes that an evaluation plays at once: about as many as a rollout batch

/** Seconds of an SFT step on a GPU, accurate to a factor of two. */
export function sftSeconds(model: ModelConfig, config: GRPOConfig, { flops }: Pick<GpuClass, "flops">): number {
  return (passesOf(config) * parameterCount(model) * config.sft_batch_tokens) / (USED_FLOPS * flops);
}

/** Operations per parameter and token: forward, forward again where activations are recomputed, gradients of activations and of weights. */
function passesOf(config: GRPOConfig): number {
  return 2 + (config.gradient_checkpointing ? 2 : 0) + 2 + (config.use_peft ? 0 : 2);
}

/** A line of the table of presets by GPU. */
export interface PresetLine {
  readonly preset: string;
  readonly plan: GpuPlan;
}

/** Every preset of a known model on every kind of GPU; presets of the same model on other questions are left out. */
export function presetTable(): PresetLine[] {
  return PRESET_NAMES.flatMap((preset) => {
    const config = resolveConfig(presetNamed(preset));
    const model = KNOWN_MODELS[config.model_name]?.config;
    if (!model || config.questions_path !== "bundled") return [];
    return GPU_CLASSES.map((gpu) => ({ preset, plan: planFor(config.model_name, model, config, gpu) }));
  });
}
