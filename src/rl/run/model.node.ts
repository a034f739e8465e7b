// Loads the model of a training with the engine that the config asks for, and checks it against the config.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "../../errors.ts";
import { rulesOf } from "../../gym/env/index.ts";
import { checkRoom } from "../../gym/players/index.ts";
import type { LoadedModel, LoadRemoteOptions, ThreadEngineOptions } from "../../lm/engine/index.node.ts";
import { windowOf } from "../../lm/model/parameters.ts";
import { modulesOf } from "../config/remote.ts";
import type { GRPOConfig } from "../config.ts";
import { loadRemoteModel, loadTrainableModel } from "../load.node.ts";
import { memoryOptionsOf } from "./plan.ts";

/** The engine options that a config implies. */
export function engineOptions(config: GRPOConfig): ThreadEngineOptions {
  const { threads, device, precision, max_gpu_memory } = config;
  const { recompute, reference, lora } = memoryOptionsOf(config);
  return {
    device,
    recompute,
    reference,
    ...(lora && { lora: { ...lora, seed: config.seed } }),
    ...(max_gpu_memory !== null && { maxGpuMemory: max_gpu_memory * 1e9 }),
    ...(threads !== null && { threads }),
    ...(precision !== "auto" && { precision }),
  };
}

/** The remote engine that a config names. */
function remoteOptions(config: GRPOConfig, url: string): LoadRemoteOptions {
  const { base_model, engine_checkpoint, lora_r: rank, seed } = config;
  return {
    url,
    lora: { rank, seed, ...modulesOf(config) },
    ...(base_model !== null && { baseModel: base_model }),
    ...(engine_checkpoint !== null && { checkpoint: engine_checkpoint }),
  };
}

/**
 * Loads a model to train. Every stage loads it with what GRPO needs (the KL term's reference too), so that a model too
 * large for the memory is refused before the first stage.
 */
export async function loadForTraining(nameOrFolder: string, config: GRPOConfig): Promise<LoadedModel> {
  const model = await (config.engine === null
    ? loadTrainableModel(nameOrFolder, engineOptions(config))
    : loadRemoteModel(nameOrFolder, remoteOptions(config, config.engine)));
  try {
    checkWindow(config, model);
  } catch (error) {
    await model.engine.close();
    throw error;
  }
  return model;
}

function checkWindow(settings: GRPOConfig, { config, turns }: LoadedModel): void {
  const { max_context_tokens, max_new_tokens, prompt, shots, sft_steps, sft_max_context_tokens } = settings;
  const window = windowOf(config);
  const refuse = (key: string, value: number) =>
    new UsageError({
      what: `${key} is above the window of ${window} that the engine computes for this model`,
      value,
      remedy: `give --${key.replaceAll("_", "-")} ${window}`,
    });
  if (max_context_tokens > window) throw refuse("max_context_tokens", max_context_tokens);
  if (sft_steps > 0 && sft_max_context_tokens > window) throw refuse("sft_max_context_tokens", sft_max_context_tokens);
  if (settings.env !== null) return; // the rest is about the prompts of SQL
  checkRoom(turns, { prompt, shots }, { max_context_tokens, max_new_tokens }, rulesOf(settings));
}

/** The base model as an adapter's config names it: an absolute path, or a name on the Hub. */
export function baseName(name: string): string {
  return existsSync(name) ? resolve(name) : name;
}
