// Evaluates a run's trained model again, as the run itself did: same questions, prompt, rules, step budget and limits.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { UsageError } from "../../errors.ts";
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import { loadModelAndTokenizer, type ThreadEngineOptions } from "../../lm/engine/index.node.ts";
import type { GRPOConfig } from "../config.ts";
import { evaluateModel } from "../evaluate-model.ts";
import { createSqlEnvironment } from "../sql/sql-environment.ts";
import { resumedConfig } from "./config-file.node.ts";
import { DeviceEnvironments } from "./environments.node.ts";
import { changedInputs, readInputs, sumInputs } from "./inputs.node.ts";
import { engineOptions } from "./model.node.ts";
import { openTrainingData } from "./prepare.node.ts";
import { readRunFolder } from "./read-folder.node.ts";
import type { Decoding, Evaluation } from "./records.ts";

export interface EvaluateRunOptions {
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
  /** Name of the data set. */
  readonly data: string;
  readonly evaluation: Evaluation;
  /** The evaluation in the run's results.json. */
  readonly recorded: Evaluation | null;
}

/** Evaluates the trained model of a finished run. */
export async function evaluateRun(run: string, options: EvaluateRunOptions = {}): Promise<RunEvaluation> {
  const { result } = await readRunFolder(run);
  const config = resumedConfig(run);
  const folder = join(run, "model");
  if (!existsSync(folder))
    throw new UsageError({
      what: "the run has no trained model",
      value: folder,
      remedy: `finish the training with sqlenv train --resume ${run}, or name another run`,
    });
  const { data } = await openTrainingData(config, run);
  try {
    const kept = readInputs(run);
    const now = await sumInputs({ version: "", data, modelFolders: [], rewardFile: null });
    const changed = kept ? changedInputs({ ...kept, model: {}, reward_funcs: {} }, now) : [];
    if (changed.length > 0) options.onNote?.(`${changed.join(", ")} changed since the training, so results may differ`);
    const { recompute: _, reference: __, lora: ___, ...engine } = engineOptions(config); // the saved model is merged
    const model = await loadModelAndTokenizer(folder, { ...engine, ...options.engine, trains: false });
    const environments = new DeviceEnvironments(data, {
      threads: config.environment_threads,
      ...(options.onNote && { onNote: options.onNote }),
    });
    try {
      await environments.start(model.engine.facts.device);
      const evaluation = await evaluateModel(createSqlEnvironment({ data, config, environments }), model, config, {
        episodes: config.final_eval_episodes,
        sampled: config.final_eval_sampled_episodes,
        signal: options.signal,
        onEpisode: options.onEpisode,
        onProgress: options.onProgress,
      });
      return { model: folder, config, data: data.name, evaluation, recorded: result?.after ?? null };
    } finally {
      await Promise.allSettled([model.engine.close(), environments.close()]); // never hides the error
    }
  } finally {
    data.databases.close();
  }
}
