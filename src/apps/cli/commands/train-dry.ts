// `sqlenv train --dry-run`: prints the resolved settings, the stages that would run, and the memory and time they would
// take.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SqlEnvError } from "../../../errors.ts";
import { openGpu } from "../../../lm/devices/cuda/driver.node.ts";
import { findWebGpu } from "../../../lm/devices/webgpu/create.node.ts";
import { describeAdapter } from "../../../lm/devices/webgpu/device.ts";
import { capacityText, cpuCapacity } from "../../../lm/engine/estimate-memory.ts";
import { baseFolderOf, findModel, hubCache } from "../../../lm/engine/index.node.ts";
import { estimateMemory, type MemoryEstimate } from "../../../lm/engine/index.ts";
import { cpuMemory } from "../../../lm/engine/machine-memory.node.ts";
import { type ModelConfig, parameterCount, parseConfig } from "../../../lm/model/config.ts";
import { isGgufFile, loadGguf } from "../../../lm/model/formats/gguf.node.ts";
import { KNOWN_MODELS } from "../../../lm/model/formats/known.ts";
import { isAdapterFolder } from "../../../lm/model/formats/peft.node.ts";
import {
  batchingOf,
  CONFIG_KEYS,
  evaluationEpisodes,
  evaluationSeconds,
  fineTune,
  GPU_CLASSES,
  type GpuClass,
  type GpuPlan,
  type GRPOConfig,
  GRPOTrainer,
  memoryOptionsOf,
  type PlannedStage,
  planFor,
  resolveConfig,
  sftSeconds,
  stagesOf,
  stepSeconds,
  type TimingLine,
} from "../../../rl/index.ts";
import { loadTrainableModel } from "../../../rl/load.node.ts";
import { engineOptions } from "../../../rl/run/model.node.ts";
import type { PreparedTraining } from "../../../rl/run/prepare.node.ts";
import {
  drawTable,
  formatBytes,
  formatNumber,
  type Output,
  printable,
  styled,
  terminalWidth,
  wrapWords,
} from "../terminal/output.ts";
import { minutes } from "./train-screen.ts";

/**
 * Prints what a training would take. If the model is on this machine and fits into memory, one step is run, measured
 * and discarded.
 */
export async function dryRun(prepared: PreparedTraining, out: Output): Promise<void> {
  const { config } = prepared;
  const data = prepared.environment ?? prepared.data!;
  const folder = findModel(config.model_name);
  const model = await shapeOf(config, folder);
  const gpu = config.device === "cpu" || config.device === "webgpu" ? undefined : gpuHere(config);
  const { generation_batch_size } = batchingOf(config);
  const known = model && tellMemory(config, model, gpu, out);
  out.line();
  tellSettings(config, out);
  out.line();
  const stages = stagesOf(config, data);
  const total_steps = stages.reduce((sum, { name, steps }) => sum + (isBeforeGrpo(name) ? 0 : steps), 0);
  out.line("what will happen:");
  const is = evaluationWords(config);
  out.line(`  before: ${is} with the model as it is`);
  for (const [i, { name, text, steps }] of stages.entries()) {
    out.line(
      `  ${i + 1}. ${text}: ${formatNumber(steps)} ${name === "self_taught" ? "round" : "step"}${steps === 1 ? "" : "s"}`,
    );
    const isLast = isBeforeGrpo(name) && !isBeforeGrpo(stages[i + 1]!.name);
    if (isLast) out.line(`     then ${is} again: this is where GRPO begins`);
  }
  out.line(`  after: ${is} again; the model, reports and transcripts are in the run's folder`);
  tellWeights(config, folder, out);
  const common = { config, generation_batch_size, stages, total_steps, folder: folder ?? null };
  if (!model || !known) {
    out.line("how large it is will be known when it is here: memory and time cannot be told yet");
    out.result(common);
    return;
  }
  const { memory, fits } = known;
  const episodes = evaluationEpisodes(config, data, total_steps);
  if (!folder || !fits) {
    const times = gpu && {
      step_time: stepSeconds(model, config, gpu),
      sft_step_time: sftSeconds(model, config, gpu),
    };
    const seconds = times && fits ? tellTime(config, total_steps, times, out) : null;
    if (seconds !== null)
      out.line("(an estimate, accurate to a factor of two; where the weights are on this machine, a step is measured)");
    const plans = GPU_CLASSES.map((kind) => planFor(config.model_name, model, config, kind));
    tellGpus(plans, { config, model, total_steps, episodes }, out);
    out.result({ ...common, memory, fits, seconds, cards: inOldTerms(plans) });
    return;
  }
  const times = await measuredSteps(prepared, out).catch((error: unknown) => {
    if (!(error instanceof SqlEnvError && error.code === "out_of_memory")) throw error;
    out.line(`it does not fit, by a step that was tried: ${printable(error.message)}`);
    return null;
  });
  if (!times) {
    const plans = GPU_CLASSES.map((kind) => planFor(config.model_name, model, config, kind));
    tellGpus(plans, { config, model, total_steps, episodes }, out);
    out.result({ ...common, memory, fits: false, seconds: null, cards: inOldTerms(plans) });
    return;
  }
  const seconds = tellTime(config, total_steps, times, out);
  out.result({ ...common, memory, fits, ...times, seconds });
}

/** The settings that differ from the schema's defaults, in as few lines as possible. */
function tellSettings(config: GRPOConfig, out: Output): void {
  const defaults = resolveConfig();
  const changed = CONFIG_KEYS.filter((key) => JSON.stringify(config[key]) !== JSON.stringify(defaults[key]));
  out.line("settings that differ from the defaults (`train --help-all` lists all):");
  const texts = changed.map((key) => printable(`${key} ${shown(config[key])}`));
  out.line(wrapWords(`  ${texts.join(", ")}`, Math.min(terminalWidth(), 80)));
}

/** A setting's value in short form: lists with commas, small numbers with an exponent. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  if (typeof value === "number" && value !== 0 && Math.abs(value) < 0.001) return value.toExponential();
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Seconds per step of GRPO and of SFT. */
interface StepTimes {
  readonly step_time: number;
  readonly sft_step_time: number;
}

/** Prints how long SFT and GRPO take; returns the sum in seconds. */
function tellTime(
  { sft_steps, self_taught_rounds }: GRPOConfig,
  total_steps: number,
  { step_time, sft_step_time }: StepTimes,
  out: Output,
): number {
  const kinds: [string, number, number][] = [
    ["SFT", sft_steps, sft_step_time],
    ["GRPO", total_steps, step_time],
  ];
  const parts = kinds.filter(([, steps]) => steps > 0);
  const seconds = parts.reduce((sum, [, steps, each]) => sum + steps * each, 0);
  const each = parts.map(([name, steps, time]) => `${name} ${formatNumber(steps)} steps of ${time.toFixed(1)} s`);
  const left = self_taught_rounds > 0 ? "evaluations and self-taught rounds" : "evaluations";
  out.line(`time: ${each.join(", ")}: about ${minutes(seconds)}, ${left} not counted`);
  return seconds;
}

/** A phrase such as "every evaluation question is played greedily and sampled". */
function evaluationWords({ final_eval_episodes, final_eval_sampled_episodes: sampled }: GRPOConfig): string {
  const what = final_eval_episodes === null ? "every evaluation question is" : "evaluation questions are";
  return `${what} played greedily${sampled === 0 ? "" : sampled === null ? " and sampled" : `, ${sampled} also sampled`}`;
}

/** Prints where the weights are, or how to get them. */
function tellWeights({ model_name }: GRPOConfig, folder: string | undefined, out: Output): void {
  const name = printable(model_name);
  if (folder) {
    out.line(`weights: ${printable(folder)}`);
    return;
  }
  const size = KNOWN_MODELS[model_name] ? `, ${formatBytes(KNOWN_MODELS[model_name].download)}` : "";
  out.line(
    `weights: not here yet. \`sqlenv train\` fetches ${name} from the Hub${size} into ${printable(hubCache())}, once.`,
  );
  out.line(
    `  Without a way to the Hub: on a machine that has one, \`hf download ${name} --local-dir model\`; bring the folder here, and give --model-name ./model.`,
  );
}

/** The model's sizes: from its folder, or known by its name. */
async function shapeOf({ model_name }: GRPOConfig, folder: string | undefined): Promise<ModelConfig | undefined> {
  const whole = folder && isAdapterFolder(folder) ? await baseFolderOf(folder) : folder;
  if (whole && isGgufFile(whole)) {
    const { config, weights } = loadGguf(whole);
    await weights.close();
    return config;
  }
  const file = whole && join(whole, "config.json");
  if (file && existsSync(file)) return parseConfig(JSON.parse(readFileSync(file, "utf8")), file);
  return KNOWN_MODELS[model_name]?.config;
}

/** This machine's GPU; if its model is unknown, the speeds are those of the known GPU nearest in memory. */
function gpuHere({ precision, max_gpu_memory }: GRPOConfig): GpuClass | undefined {
  try {
    const { name, memory: all, capability } = openGpu().gpu;
    const memory = Math.min(all, (max_gpu_memory ?? Number.POSITIVE_INFINITY) * 1e9);
    const has = capability >= 80 ? "bf16" : "fp32";
    const near = [...GPU_CLASSES].sort((a, b) => Math.abs(a.memory - all) - Math.abs(b.memory - all))[0]!;
    return { ...near, name, memory, precision: precision === "auto" ? has : precision };
  } catch (error) {
    if (error instanceof SqlEnvError) return undefined;
    throw error;
  }
}

/** Estimates memory on this machine and whether it fits. */
function tellMemory(
  config: GRPOConfig,
  model: ModelConfig,
  gpu: GpuClass | undefined,
  out: Output,
): { readonly memory: MemoryEstimate; readonly fits: boolean } {
  const options = memoryOptionsOf(config);
  const what = `${printable(config.model_name)}, ${formatNumber(parameterCount(model))} parameters`;
  const verdict = (fits: boolean, where: string) =>
    out.line(
      styled("bold", `${what}: ${fits ? styled("green", "it fits") : styled("red", "it does not fit")} ${where}`),
    );
  if (gpu) {
    const plan = planFor(config.model_name, model, config, gpu);
    verdict(plan.refused === null, `${printable(gpu.name)} (${formatBytes(gpu.memory)}, ${gpu.precision})`);
    const place = { device: "cuda", precision: gpu.precision, memory: gpu.memory } as const;
    const memory = plan.memory ?? estimateMemory(model, { ...options, place, rows: 1_024, cacheTokens: 8_192 });
    drawMemory(memory, out);
    if (plan.refused) out.line(`it does not fit: ${plan.refused}`);
    return { memory, fits: plan.refused === null };
  }
  const memory = estimateMemory(model, options);
  const adapter = config.device === "cpu" || config.precision === "bf16" ? null : findWebGpu();
  if (config.device === "webgpu" || adapter) {
    const fits = 4 * parameterCount(model) <= (adapter?.limits.maxBufferSize ?? Number.POSITIVE_INFINITY);
    verdict(fits, adapter ? `a buffer of ${printable(describeAdapter(adapter))}` : "WebGPU, as far as can be told");
    out.line("WebGPU does not say how much memory the GPU has: see --max-gpu-memory");
    drawMemory(memory, out);
    return { memory, fits };
  }
  const limit = cpuMemory();
  const fits = memory.total <= limit;
  verdict(fits, `the CPU: ${formatBytes(memory.total)} of ${formatBytes(limit)}`);
  if (config.device !== "cpu") out.line("no GPU can be used here; `sqlenv doctor` says why");
  drawMemory(memory, out);
  if (!fits)
    out.line(
      `it does not fit: the CPU engine can have ${formatBytes(limit)} here (${capacityText(cpuCapacity(limit))}). Use a smaller model or a GPU, or train the starter: \`sqlenv train\``,
    );
  return { memory, fits };
}

function drawMemory(memory: MemoryEstimate, out: Output): void {
  const rows = Object.entries(memory).map(([part, bytes]) => [part, formatBytes(bytes)]);
  out.line(drawTable(["memory", ""], rows));
}

/** What the time of a whole training depends on. */
interface Work {
  readonly config: GRPOConfig;
  readonly model: ModelConfig;
  readonly total_steps: number;
  /** Number of episodes in all evaluations. */
  readonly episodes: number;
}

/** Prints what the same training would take on common GPUs. */
function tellGpus(plans: readonly GpuPlan[], { config, model, total_steps, episodes }: Work, out: Output): void {
  out.line("on other GPUs, estimated to a factor of two, SFT and evaluations included:");
  const whole = (name: string, step: number) => {
    const gpu = GPU_CLASSES.find((kind) => kind.name === name)!;
    const sft = config.sft_steps * sftSeconds(model, config, gpu);
    return sft + total_steps * step + evaluationSeconds(model, episodes, gpu);
  };
  const rows = plans.map(({ gpu, precision, memory, least, refused, step_seconds }) => [
    ...[gpu, precision, formatBytes(least), memory ? formatBytes(memory.total) : "–"],
    refused ? "does not fit" : `${step_seconds.toFixed(0)} s`,
    refused ? "" : minutes(whole(gpu, step_seconds)),
  ]);
  out.line(drawTable(["GPU", "precision", "needs", "would use", "a step", "in all"], rows));
}

/** The plans for --json, which keeps its former key for the GPU. */
function inOldTerms(plans: readonly GpuPlan[]) {
  return plans.map(({ gpu, ...plan }) => ({ card: gpu, ...plan }));
}

/** Measures one step of GRPO and, if the config has SFT, one of SFT. */
async function measuredSteps(prepared: PreparedTraining, out: Output): Promise<StepTimes> {
  const { config, data, environment, rewardFuncs } = prepared;
  const model = await loadTrainableModel(config.model_name, engineOptions(config));
  try {
    const timings: TimingLine[] = [];
    const once = { ...config, max_steps: 1, eval_steps: 0 };
    const callbacks = [{ on_step_end: (_: unknown, { timing }: { timing: TimingLine }) => void timings.push(timing) }];
    const choice = { ...(data && { data }), ...(environment && { environment }) };
    await new GRPOTrainer({ model, ...choice, config: once, rewardFuncs, callbacks }).train(); // with its store in memory
    const [{ step_time, sampling, training }] = timings as [TimingLine];
    const { peak } = await model.engine.memory();
    out.line(
      `one step, measured: sampling ${sampling.toFixed(1)} s, training ${training.toFixed(1)} s, ${formatBytes(peak)} of memory`,
    );
    if (config.sft_steps === 0 || !data) return { step_time, sft_step_time: 0 };
    const started = performance.now();
    await fineTune(model, data, { ...config, sft_steps: 1 });
    return { step_time, sft_step_time: (performance.now() - started) / 1000 };
  } finally {
    await model.engine.close();
  }
}

function isBeforeGrpo(name: PlannedStage["name"]): boolean {
  return name === "sft" || name === "self_taught";
}
