// Models loaded for RL under Node: as lm/engine loads them, with the policy losses in the engine's thread.
import {
  type LoadedModel,
  type LoadModelOptions,
  loadModelAndTokenizer,
  startEngine,
  type ThreadEngine,
  type ThreadEngineOptions,
} from "../lm/engine/index.node.ts";

const WORKER = new URL("./engine-worker.node.js", import.meta.url);

/** `loadModelAndTokenizer` with an engine that also knows the policy losses: what `GRPOTrainer` trains. */
export function loadTrainableModel(nameOrPath: string, options: LoadModelOptions = {}): Promise<LoadedModel> {
  return loadModelAndTokenizer(nameOrPath, { worker: WORKER, ...options });
}

/** `startEngine` with the policy losses. */
export function startTrainableEngine(folder: string, options: ThreadEngineOptions = {}): Promise<ThreadEngine> {
  return startEngine(folder, { worker: WORKER, ...options });
}
