// Models loaded for RL under Node: as lm/engine loads them, with the policy losses in the engine's thread.
import {
  connectRemoteModel,
  type LoadedModel,
  type LoadModelOptions,
  type LoadRemoteOptions,
  loadModelAndTokenizer,
  type RemoteModelEngine,
  startEngine,
  type ThreadEngine,
  type ThreadEngineOptions,
} from "../lm/engine/index.node.ts";
import { REMOTE_POLICY_LOSSES } from "./remote-losses.ts";

const WORKER = new URL("./engine-worker.node.js", import.meta.url);

/**
 * `loadModelAndTokenizer` with an engine that also has the policy losses, which `GRPOTrainer` needs.
 *
 * @example
 * const { engine, tokenizer, turns } = await loadModelAndTokenizer("starter"); // a name, folder, GGUF file or Hub id
 * const prompt = turns.start("You answer questions.", "How many customers are there?");
 * const { tokens } = await engine.sample({ prompt, max_new_tokens: 64, stop_ids: turns.stopIds, key: [7] });
 * console.log(tokenizer.decode(tokens));
 */
export function loadTrainableModel(
  nameOrPath: string,
  options: LoadModelOptions = {},
): Promise<LoadedModel<ThreadEngine>> {
  return loadModelAndTokenizer(nameOrPath, { worker: WORKER, ...options });
}

/**
 * `connectRemoteModel` with the policy losses: a model that a server of the Tinker API samples from and trains.
 *
 * @example
 * const lora = { rank: 16, seed: 7 };
 * const { engine } = await loadRemoteModel("starter", { url: "http://localhost:8000", lora });
 * await engine.close();
 */
export function loadRemoteModel(
  nameOrPath: string,
  options: LoadRemoteOptions,
): Promise<LoadedModel<RemoteModelEngine>> {
  return connectRemoteModel(nameOrPath, { losses: REMOTE_POLICY_LOSSES, ...options });
}

/**
 * `startEngine` with the policy losses.
 *
 * @example
 * const engine = await startEngine("models/starter", { threads: 4 });
 * await engine.close();
 */
export function startTrainableEngine(folder: string, options: ThreadEngineOptions = {}): Promise<ThreadEngine> {
  return startEngine(folder, { worker: WORKER, ...options });
}
