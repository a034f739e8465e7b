// A model by name or path, ready to use: its engine in a thread of its own, its tokenizer and its turns here.
import { createTurnEncoder, type TurnEncoder } from "../model/chat.ts";
import type { ModelConfig } from "../model/config.ts";
import { loadModelFolder } from "../model/folder.node.ts";
import { type HubOptions, resolveModel } from "../model/hub.node.ts";
import type { Tokenizer } from "../model/tokenizer.ts";
import { checkCpuMemory } from "./memory.ts";
import { startEngine, type ThreadEngine, type ThreadEngineOptions } from "./thread.node.ts";

export interface LoadModelOptions extends ThreadEngineOptions {
  /** How to get a model from the Hub. */
  readonly hub?: HubOptions;
}

export interface LoadedModel {
  readonly engine: ThreadEngine;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
  readonly config: ModelConfig;
  /** Where its files are. */
  readonly folder: string;
}

/** Loads a model from a folder, or by a Hub id such as "Qwen/Qwen3-0.6B" (downloaded once into the Hub's cache). */
export async function loadModelAndTokenizer(
  nameOrPath: string,
  { hub, ...options }: LoadModelOptions = {},
): Promise<LoadedModel> {
  const folder = await resolveModel(nameOrPath, hub);
  const { config, tokenizer, chatTemplate, weights, generationConfig } = await loadModelFolder(folder);
  await weights.close(); // the engine's thread reads them
  if (options.device === "cpu") {
    checkCpuMemory(nameOrPath, config, { trains: options.trains ?? true, recompute: options.recompute ?? false });
  }
  const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
  const engine = await startEngine(folder, options);
  return { engine, tokenizer, turns, config, folder };
}
