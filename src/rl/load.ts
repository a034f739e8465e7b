// A model loaded for RL in a browser: as lm/engine loads it, with the policy losses.
import { loadWebModel, type WebModel, type WebModelOptions } from "../lm/engine/load.web.ts";
import type { ReadModelFile } from "../lm/model/formats/folder.ts";
import { POLICY_LOSSES } from "./loss.ts";

/**
 * `loadWebModel` with an engine that also has the policy losses, which `GRPOTrainer` needs.
 *
 * @example
 * const { engine, tokenizer, turns } = await loadWebModel("./model/"); // in a browser's worker
 */
export function loadTrainableWebModel(
  from: string | URL | ReadModelFile,
  { losses, ...options }: WebModelOptions = {},
): Promise<WebModel> {
  return loadWebModel(from, { ...options, losses: { ...POLICY_LOSSES, ...losses } });
}
