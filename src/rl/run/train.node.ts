// A whole training as one call under Node, everything that `sqlenv train` does except drawing it: the model is loaded,
// evaluated, fine-tuned (SFT, self-taught rounds), trained with GRPO, evaluated again and saved in the run's folder.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { SqlEnvError } from "../../errors.ts";
import { rulesOf } from "../../gym/env/index.ts";
import { usableCpus } from "../../io/cpus.node.ts";
import type { LoadedModel } from "../../lm/engine/index.node.ts";
import type { TrainerCallback } from "../callbacks.ts";
import type { GRPOConfig } from "../config.ts";
import type { SftStep } from "../sft/sft.ts";
import { CONFIG_FILE, configText, keepSelfTaught } from "./config-file.node.ts";
import { DeviceEnvironments } from "./environments.node.ts";
import { RunFolder } from "./folder.node.ts";
import { checkInputs } from "./inputs.node.ts";
import { baseName, loadForTraining } from "./model.node.ts";
import { writeModelMetadata } from "./model-metadata.node.ts";
import { type PreparedTraining, type PrepareOptions, prepareTraining } from "./prepare.node.ts";
import type { SelfTaughtReport, StageReport, TrainingResult } from "./records.ts";
import { runTraining as runLoaded } from "./run.ts";
import { keepSplit } from "./split.ts";
import { runStages } from "./stages.node.ts";
import { tensorBoard } from "./tensorboard.node.ts";
import { type Phase, type TrainAndEvaluateOptions, trainAndEvaluate } from "./train-and-evaluate.ts";

/** Maximum threads that make episodes for SFT; a GPU cannot use more. */
const MAX_SFT_WORKERS = 12;

/** Writes pages about a finished run; the package's `trainingReport` writes the same pages as `sqlenv train`. */
export interface ReportHook {
  /** README.md of the saved model. */
  modelCard?(result: TrainingResult, config: GRPOConfig): string;
  /** Writes reports into the run's folder; its records and its model are complete. */
  write?(run: string, result: TrainingResult): unknown;
}

export interface TrainOptions
  extends PrepareOptions,
    Pick<TrainAndEvaluateOptions, "callbacks" | "signal" | "spent" | "onPhase" | "onProgress" | "onPassAtK"> {
  /** What `prepareTraining` returned, in place of config, resume, data and rewardFuncs; the caller closes it. */
  readonly prepared?: PreparedTraining | undefined;
  /** With `resume`: take over the run even if another process seems to train in it. @default false */
  readonly force?: boolean | undefined;
  /** With `resume`: continue even if questions, databases, model or reward file have changed. @default false */
  readonly acceptChanges?: boolean | undefined;
  /** @default none: the folder has records and the model, no pages */
  readonly report?: ReportHook | undefined;
  /** Called when the run's folder exists and is locked. */
  readonly onFolder?: (folder: RunFolder) => unknown;
  /** Called with each model that is loaded: the config's, then the one that each stage saved. */
  readonly onModel?: (model: LoadedModel, nameOrFolder: string) => void;
  /** Steps of SFT and of self-taught rounds. */
  readonly onStep?: (phase: Phase, step: SftStep) => void;
  readonly onStageEnd?: (name: string, report: StageReport | SelfTaughtReport) => void;
  /** Called with notes for people, one line each. */
  readonly onNote?: (text: string) => void;
}

/**
 * Trains as the config says and writes the run's folder; resolves with null if aborted, with the training saved. With
 * `model`, that model is trained instead, and settings for loading are refused by name.
 *
 * @example
 * await runTraining({ config: { ...presetNamed("starter"), output_dir: "runs/mine" }, report: trainingReport });
 * await runTraining({ resume: "runs/mine" });
 */
export function runTraining(options: TrainOptions | TrainAndEvaluateOptions): Promise<TrainingResult | null> {
  if (!("model" in options)) return trainFromConfig(options);
  const { store, config } = options;
  // Pages about the run show its settings.
  if (store instanceof RunFolder && store.read(CONFIG_FILE) === null) store.write(CONFIG_FILE, configText(config));
  return runLoaded(options);
}

async function trainFromConfig(options: TrainOptions): Promise<TrainingResult | null> {
  const started = performance.now();
  const prepared = options.prepared ?? (await prepareTraining(options));
  try {
    return await train(prepared, options, started);
  } finally {
    if (!options.prepared) await prepared.close();
  }
}

async function train(
  prepared: PreparedTraining,
  options: TrainOptions,
  started: number,
): Promise<TrainingResult | null> {
  const { config, run, resume, data, environment, rewardFuncs, split } = prepared;
  const { signal, report, onPhase, onProgress, onPassAtK, onStep, onNote } = options;
  const callbacks = [...(options.callbacks ?? []), ...reporters(config, run)];
  const existed = existsSync(run);
  const store = new RunFolder(run);
  store.lock({ force: options.force === true });
  const unlock = () => store.unlock();
  process.once("exit", unlock);
  const environments =
    data &&
    new DeviceEnvironments(data, {
      threads: config.environment_threads,
      ahead: prepared.asked,
      ...(onNote && { onNote }),
    });
  let model: LoadedModel | null = null;
  let saved: string | undefined; // the last stage that ended
  try {
    if (resume) keepSelfTaught(store, config);
    else store.write(CONFIG_FILE, configText({ ...config, output_dir: run }));
    if (split) keepSplit(store, split);
    await options.onFolder?.(store);
    const load = loader(prepared, store, environments, options);
    model =
      data && split
        ? await runStages({
            data,
            config,
            split,
            store,
            signal,
            environments,
            workers: Math.max(0, Math.min(MAX_SFT_WORKERS, usableCpus() - 2)),
            load,
            ...(onPhase && { onPhase }),
            ...(onProgress && { onProgress }),
            ...(onStep && { onStep }),
            onStageEnd: (name, stage) => {
              saved = name;
              options.onStageEnd?.(name, stage);
            },
          })
        : await load(config.model_name);
    if (!model) return null;
    const result = await trainAndEvaluate({
      model,
      ...(environment && { environment }),
      ...(data && { data, environments }),
      config,
      rewardFuncs,
      store,
      signal,
      callbacks,
      resume,
      spent: (options.spent ?? 0) + (performance.now() - started) / 1000,
      ...(onPhase && { onPhase }),
      ...(onProgress && { onProgress }),
      ...(onPassAtK && { onPassAtK }),
    });
    if (!result) return null;
    try {
      await saveModel(model, result, config, run, report);
    } finally {
      await report?.write?.(run, result); // also of a model that cannot be saved here, such as a server's
    }
    return result;
  } catch (error) {
    if (signal?.aborted && error === signal.reason) return null;
    if (!model && saved)
      onNote?.(
        `the model after ${saved} is kept in ${join(run, saved)}; sqlenv train --resume ${run} continues after it`,
      );
    else if (!model && !resume && !isLost(error)) removeRun(store, existed);
    throw resumable(error, run);
  } finally {
    process.off("exit", unlock);
    await Promise.allSettled([model?.engine.close(), environments?.close()]); // never hides the error
    store.unlock();
  }
}

/** Callbacks that report_to asks for. */
function reporters({ report_to }: GRPOConfig, run: string): TrainerCallback[] {
  return report_to === "tensorboard" ? [tensorBoard(join(run, "tensorboard"))] : [];
}

/**
 * Returns a function that loads a model of this run. Its first call checks and records the run's inputs before anything
 * is trained.
 */
function loader(
  { config, data, environment, resume }: PreparedTraining,
  store: RunFolder,
  environments: DeviceEnvironments | undefined,
  { acceptChanges = false, onModel, onNote }: TrainOptions,
): (nameOrFolder: string) => Promise<LoadedModel> {
  let isChecked = false;
  return async (nameOrFolder) => {
    const model = await loadForTraining(nameOrFolder, config);
    try {
      const sources = { modelFolder: model.folder, data, environment };
      const inputs = { ...sources, config, store, resume, accept: acceptChanges, onNote };
      if (!isChecked) await checkInputs(inputs);
      isChecked = true;
      onModel?.(model, nameOrFolder);
      await environments?.start(model.engine.facts.device);
    } catch (error) {
      await model.engine.close();
      throw error;
    }
    return model;
  };
}

/** The trained model as a folder that others can load, complete or not at all; with use_peft the adapter by itself too. */
async function saveModel(
  { engine, folder }: LoadedModel,
  result: TrainingResult,
  config: GRPOConfig,
  run: string,
  report: ReportHook | undefined,
): Promise<void> {
  const modelCard = report?.modelCard?.(result, config);
  const options = modelCard === undefined ? {} : { card: modelCard };
  if (config.use_peft) await engine.saveAdapter(join(run, "adapter"), baseName(folder), options);
  await engine.saveModel(join(run, "model"), options);
  if (config.env !== null) return; // prompt and rules are SQL's
  const { prompt, shots, eval_step_budget, step_budget } = config;
  for (const name of config.use_peft ? ["adapter", "model"] : ["model"])
    writeModelMetadata(join(run, name), { prompt, shots }, rulesOf(config), eval_step_budget ?? step_budget);
}

function isLost(error: unknown): error is SqlEnvError {
  return error instanceof SqlEnvError && ["device_lost", "engine_lost"].includes(error.code);
}

/** An error of a lost device or thread, with how to continue. */
function resumable(error: unknown, run: string): unknown {
  if (!isLost(error)) return error;
  const { code, what, value } = error;
  return new SqlEnvError(code, {
    what,
    value,
    cause: error,
    remedy: `the last checkpoint is whole: resume with sqlenv train --resume ${run}`,
  });
}

/** Removes what a failed run wrote, since nothing of it is worth keeping; an empty folder that existed before remains. */
function removeRun(store: RunFolder, existed: boolean): void {
  store.unlock();
  const paths = existed ? readdirSync(store.name).map((name) => join(store.name, name)) : [store.name];
  for (const path of paths) rmSync(path, { recursive: true, force: true });
}
