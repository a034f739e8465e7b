// Loads a model by name or path: its engine in a worker thread, its tokenizer and turn encoder in this one.
import { existsSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { ModelLoadError, SqlEnvError } from "../../errors.ts";
import type { Gpu } from "../devices/cuda/device.ts";
import { openGpu } from "../devices/cuda/driver.node.ts";
import { findWebGpu } from "../devices/webgpu/create.node.ts";
import type { ModelConfig } from "../model/config.ts";
import { loadModelFolder } from "../model/formats/folder.node.ts";
import { findModel, type HubOptions, resolveModel } from "../model/formats/hub.node.ts";
import { KNOWN_MODELS } from "../model/formats/known.ts";
import { isAdapterFolder, readAdapterConfig } from "../model/formats/peft.node.ts";
import { createTurnEncoder, type TurnEncoder } from "../model/text/chat-template.ts";
import type { Tokenizer } from "../model/text/tokenizer.ts";
import { checkCpuMemory, cudaLimits } from "./estimate-memory.ts";
import { cpuMemory } from "./machine-memory.node.ts";
import type { ModelEngine } from "./model-engine.ts";
import { startEngine, type ThreadEngine, type ThreadEngineOptions } from "./thread/client.node.ts";

export interface LoadModelOptions extends ThreadEngineOptions {
  /** How to download a model from the Hub. */
  readonly hub?: HubOptions;
}

export interface LoadedModel<E extends ModelEngine = ModelEngine> {
  readonly engine: E;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
  /** The model's chat template; undefined if it has none, and ChatML is used. */
  readonly chatTemplate: string | undefined;
  readonly config: ModelConfig;
  /** Folder or GGUF file of the model; for an adapter, of its base model. */
  readonly folder: string;
}

/**
 * Loads a model from a folder, a GGUF file, Ollama ("ollama:NAME") or the Hub ("Qwen/Qwen3-0.6B", downloaded once to
 * the Hub's cache). The folder may hold a PEFT adapter, which is merged or trained further.
 */
export async function loadModelAndTokenizer(
  nameOrPath: string,
  { hub, ...options }: LoadModelOptions = {},
): Promise<LoadedModel<ThreadEngine>> {
  refuseEarly(nameOrPath, options, hub);
  const named = await resolveModel(nameOrPath, hub);
  const adapter = isAdapterFolder(named) ? named : undefined;
  const folder = adapter === undefined ? named : await baseFolderOf(adapter, hub);
  const { config, tokenizer, chatTemplate, weights, generationConfig } = await loadModelFolder(folder);
  await weights.close(); // the engine's thread opens them again
  if (options.device === "cpu") {
    const { trains = true, recompute = false, lora, reference } = options;
    checkCpuMemory(nameOrPath, config, { trains, recompute, lora, reference }, cpuMemory());
  }
  const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
  const engine = await startEngine(folder, { ...options, adapter });
  return { engine, tokenizer, turns, chatTemplate, config, folder };
}

/** Refuses a well-known model that does not fit this machine before it is downloaded, which may take an hour. */
function refuseEarly(
  name: string,
  { device = "auto", precision, maxGpuMemory, ...options }: ThreadEngineOptions,
  hub: HubOptions | undefined,
): void {
  if (device === "webgpu") return; // which does not say how much memory there is
  const known = KNOWN_MODELS[name];
  if (!known || findModel(name, hub) !== undefined) return;
  const { trains = true, recompute = false, lora, reference } = options;
  const use = { trains, recompute, lora, reference };
  const gpu = device === "cpu" ? undefined : usableGpu(device);
  if (!gpu) {
    if (device === "auto" && precision !== "bf16" && findWebGpu()) return;
    checkCpuMemory(name, known.config, use, cpuMemory());
    return;
  }
  const memory = Math.min(gpu.memory, maxGpuMemory ?? Number.POSITIVE_INFINITY);
  const own = gpu.capability >= BF16_CAPABILITY ? "bf16" : "fp32";
  cudaLimits(name, known.config, { gpu: { memory }, precision: precision ?? own }, use);
}

/** Minimum compute capability for bf16. */
const BF16_CAPABILITY = 80;

/** This machine's GPU; undefined if "auto" finds none. */
function usableGpu(device: "auto" | "cuda"): Gpu | undefined {
  try {
    return openGpu().gpu;
  } catch (error) {
    if (device === "cuda" || !(error instanceof SqlEnvError)) throw error;
    return undefined;
  }
}

/** The folder of an adapter's base model; its path may be relative to the adapter. */
export async function baseFolderOf(adapter: string, hub?: HubOptions): Promise<string> {
  const { base } = readAdapterConfig(adapter);
  if (base === null)
    throw new ModelLoadError({
      what: "the adapter does not say which model it is for",
      value: adapter,
      remedy: "write base_model_name_or_path into its adapter_config.json",
    });
  const beside = join(adapter, base);
  if (existsSync(beside)) return beside;
  try {
    return await resolveModel(base, hub);
  } catch (cause) {
    if (!isAbsolute(base)) throw cause;
    throw new ModelLoadError({
      what: `the model that the adapter ${adapter} is for is not here`,
      value: base,
      remedy: "restore it, or write its new path to base_model_name_or_path of adapter_config.json",
      cause,
    });
  }
}
