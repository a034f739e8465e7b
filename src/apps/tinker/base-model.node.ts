// The model that a Tinker server serves: its tokenizer, and how its engines are started.
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { type LoadModelOptions, loadModelAndTokenizer } from "../../lm/engine/index.node.ts";
import { windowOf } from "../../lm/model/parameters.ts";
import { startTrainableEngine } from "../../rl/load.node.ts";
import { baseName } from "../../rl/run/model.node.ts";
import type { BaseModel } from "./service.ts";

/**
 * A model to serve, by name or path. Its engines start when clients need them.
 *
 * @example
 * const server = await startTinkerServer(await loadBaseModel("Qwen/Qwen3-0.6B"));
 */
export async function loadBaseModel(nameOrPath: string, options: LoadModelOptions = {}): Promise<BaseModel> {
  const { hub: _, ...engineOptions } = options;
  const { engine, tokenizer, turns, config, folder } = await loadModelAndTokenizer(nameOrPath, {
    ...options,
    trains: false,
  });
  const { cacheTokens } = engine.facts;
  await engine.close();
  const name = existsSync(nameOrPath) ? basename(nameOrPath).replace(/\.gguf$/i, "") : nameOrPath;
  return {
    names: name === nameOrPath ? [name] : [name, nameOrPath],
    base: baseName(folder),
    tokenizer,
    stopIds: turns.stopIds,
    window: windowOf(config),
    cacheTokens,
    start: ({ lora, adapter }) =>
      startTrainableEngine(folder, {
        ...engineOptions,
        ...(lora ? { lora } : { trains: false }),
        ...(adapter !== undefined && { adapter }),
      }),
  };
}
