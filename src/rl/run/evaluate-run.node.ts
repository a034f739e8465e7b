// Evaluates a run's trained model again, as the run itself did: same questions, prompt, rules, step budget and limits.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../../errors.ts";
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import { loadModelAndTokenizer, type ThreadEngineOptions } from "../../lm/engine/index.node.ts";
import type { GRPOConfig } from "../config.ts";
import { evaluateModel } from "../evaluate-model.ts";
import { openServerEnvironment } from "../openenv/prepare.node.ts";
import { createSqlEnvironment } from "../sql/sql-environment.ts";
import { resumedConfig } from "./config-file.node.ts";
import { DeviceEnvironments } from "./environments.node.ts";
import { changedInputs, readInputs, sumInputs } from "./inputs.node.ts";
import { engineOptions } from "./model.node.ts";
import { openTrainingData } from "./prepare.node.ts";
import { readRunFolder } from "./read-folder.node.ts";
import type { Decoding, Evaluation } from "./records.ts";

export interface EvaluateRunOptions {
  /** Replaces the URL of the run's environment on a server. */
  readonly env?: string | undefined;
  /** Replaces the run's device, precision or threads. */
  readonly engine?: ThreadEngineOptions | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onEpisode?: ((record: EpisodeRecord, decoding: Decoding) => void) | undefined;
  readonly onProgress?: ((done: number, total: number) => void) | undefined;
  /** Called with notes for people, one line each. */
  readonly onNote?: ((text: string) => void) | undefined;
}

export interface RunEvaluation {
  /** The folder of the model that was evaluated. */
  readonly model: string;
  readonly config: GRPOConfig;
  /** Name of the data set, or of the environment on a server. */
  readonly data: string;
  /** Id of the prompt, for an environment on a server; undefined for SQL, where the config has it. */
  readonly prompt: string | undefined;
  readonly evaluation: Evaluation;
  /** The evaluation in the run's results.json. */
  readonly recorded: Evaluation | null;
}

/** The folder of a run's trained model; throws if the training is not finished. */
export function trainedModel(run: string): string {
  const folder = join(run, "model");
  if (existsSync(folder)) return folder;
  throw new UsageError({
    what: "the run has no trained model",
    value: folder,
    remedy: `finish the training with sqlenv train --resume ${run}, or name another run`,
  });
}

/** Evaluates the trained model of a finished run. */
export async function evaluateRun(run: string, options: EvaluateRunOptions = {}): Promise<RunEvaluation> {
  const { result } = await readRunFolder(run);
  const config = resumedConfig(run, options.env === undefined ? {} : { env: options.env });
  const folder = trainedModel(run);
  const server = await openServerEnvironment(config, options.onNote);
  const data = server ? undefined : (await openTrainingData(config, run)).data;
  try {
    const kept = readInputs(run);
    const now = await sumInputs({ version: "", data, environment: server, modelFolders: [], rewardFile: null });
    const changed = kept ? changedInputs({ ...kept, model: {}, reward_funcs: {} }, now) : [];
    if (changed.length > 0) options.onNote?.(`${changed.join(", ")} changed since the training, so results may differ`);
    const { recompute: _, reference: __, lora: ___, ...engine } = engineOptions(config); // the saved model is merged
    const model = await loadModelAndTokenizer(folder, { ...engine, ...options.engine, trains: false });
    const environments =
      data &&
      new DeviceEnvironments(data, {
        threads: config.environment_threads,
        ...(options.onNote && { onNote: options.onNote }),
      });
    try {
      await environments?.start(model.engine.facts.device);
      const environment = server ?? createSqlEnvironment({ data: data!, config, environments });
      const evaluation = await evaluateModel(environment, model, config, {
        episodes: config.final_eval_episodes,
        sampled: config.final_eval_sampled_episodes,
        signal: options.signal,
        onEpisode: options.onEpisode,
        onProgress: options.onProgress,
      });
      const recorded = result?.after ?? null;
      return { model: folder, config, data: environment.name, prompt: server?.prompt.id, evaluation, recorded };
    } finally {
      await Promise.allSettled([model.engine.close(), environments?.close()]); // never hides the error
    }
  } finally {
    data?.databases.close();
    server?.close();
  }
}
