// The model a training begins with, loaded and checked against the settings.

import { UsageError } from "../../../errors.ts";
import { rulesOf } from "../../../gym/env/index.ts";
import { checkRoom } from "../../../gym/players/index.ts";
import type { LoadedModel } from "../../../lm/engine/index.node.ts";
import { windowOf } from "../../../lm/model/parameters.ts";
import type { GRPOConfig } from "../../../rl/index.ts";
import { loadTrainableModel } from "../../../rl/load.node.ts";
import { engineOptions } from "./train-config.ts";

/**
 * Loads a model to train. Every stage loads it with what GRPO needs (the KL term's reference too), so that a model too
 * large for the memory is refused before the first stage.
 */
export async function trainingModel(nameOrFolder: string, config: GRPOConfig): Promise<LoadedModel> {
  const model = await loadTrainableModel(nameOrFolder, engineOptions(config));
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
  checkRoom(turns, { prompt, shots }, { max_context_tokens, max_new_tokens }, rulesOf(settings));
}
