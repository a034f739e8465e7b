// The stages of a training before GRPO, in order. Each loads the model of the stage before it, fine-tunes it and saves it
// as a folder of the run, completely or not at all: a killed run repeats only the stage it was in.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ModelLoadError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import type { EnvironmentSource } from "../../gym/evaluation/index.ts";
import { loadSqlite } from "../../gym/sql/index.ts";
import type { LoadedModel } from "../../lm/engine/index.node.ts";
import type { GRPOConfig } from "../config.ts";
import { evaluateStage, keepStage } from "../evaluate-stage.ts";
import { threadedDemonstrations } from "../sft/demonstration-threads.node.ts";
import { checkSftContext, fineTune } from "../sft/fine-tune.ts";
import { selfTaughtName, selfTaughtRound } from "../sft/self-taught.ts";
import type { SftStep } from "../sft/sft.ts";
import { createSqlEnvironment } from "../sql/sql-environment.ts";
import { baseName } from "./model.node.ts";
import type { SelfTaughtReport, StageReport, TrainingSplit } from "./records.ts";
import type { RunStore } from "./store.ts";
import type { Phase } from "./train-and-evaluate.ts";

/** The inputs of a stage. */
export interface StageContext {
  readonly data: DataSet;
  readonly config: GRPOConfig;
  readonly split: TrainingSplit;
  /** Threads besides this one that may play episodes; they change only the time. */
  readonly workers: number;
  /** Where models play episodes. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onPhase?: (phase: Phase) => void;
  /** Episodes played so far in an evaluation or a stage, and how many it will play. */
  readonly onProgress?: (phase: Phase, done: number, total: number) => void;
  readonly onStep?: (phase: Phase, step: SftStep) => void;
}

/** A way to fine-tune a model before GRPO. */
export interface Stage {
  /** Its folder in the run; its report is beside it as `NAME.json`. */
  readonly name: string;
  readonly phase: Phase;
  /** Fine-tunes the model; null if aborted, and nothing is saved. */
  train(model: LoadedModel, context: StageContext): Promise<Trained | null>;
}

type Trained = Omit<StageReport, "seconds"> | Omit<SelfTaughtReport, "seconds">;

const SFT: Stage = {
  name: "sft",
  phase: "sft",
  async train(model, { data, config, workers, signal, onStep }) {
    const { interrupted, ...report } = await fineTune(model, data, config, {
      ...(signal && { signal }),
      ...(workers > 0 && {
        practice: (mixture) => threadedDemonstrations(model.folder, { threads: workers, mixtureOf: () => mixture }),
      }),
      onStep: (step) => onStep?.("sft", step),
    });
    return interrupted ? null : report;
  },
};

/** A round of SFT on the model's own right episodes, from 1. */
function selfTaught(round: number): Stage {
  return {
    name: selfTaughtName(round),
    phase: "self_taught",
    train: (model, { data, config, environments, signal, onProgress, onStep }) =>
      selfTaughtRound(model, data, config, round, {
        environments,
        ...(signal && { signal }),
        onEpisode: (done, all) => onProgress?.("self_taught", done, all),
        onStep: (step) => onStep?.("self_taught", step),
      }),
  };
}

/** The stages of a config, in order. */
function stagesFor({ sft_steps, self_taught_rounds }: GRPOConfig): Stage[] {
  const rounds = Array.from({ length: self_taught_rounds }, (_, i) => selfTaught(i + 1));
  return [...(sft_steps > 0 ? [SFT] : []), ...rounds];
}

export interface RunStagesOptions extends StageContext {
  /** The run's folder. */
  readonly store: RunStore;
  /** Loads a model for training, by the config's name or from a folder of the run. */
  readonly load: (nameOrFolder: string) => Promise<LoadedModel>;
  /** Called when a stage is over and its model saved. */
  readonly onStageEnd?: (name: string, report: StageReport | SelfTaughtReport) => void;
}

/** Loads the model that GRPO starts from, after running the stages that the config asks for. Null if aborted. */
export async function runStages(options: RunStagesOptions): Promise<LoadedModel | null> {
  const { config, store, onPhase } = options;
  const load = (from: string) => options.load(from).catch((error) => Promise.reject(damagedStage(from, config, error)));
  await loadSqlite();
  let from = config.model_name;
  for (const stage of stagesFor(config)) {
    const folder = stageFolder(store.name, stage.name);
    if (!existsSync(folder)) {
      const model = await load(from);
      try {
        if (stage === SFT) await checkSftContext(model, options.data, config); // before the evaluation, which takes longer
        if (from === config.model_name) await evaluateBase(model, options);
        onPhase?.(stage.phase);
        const started = performance.now();
        const trained = await stage.train(model, options);
        if (!trained) return null;
        const report = { ...trained, seconds: (performance.now() - started) / 1000 };
        store.write(`${stage.name}.json`, `${JSON.stringify(report)}\n`);
        if (config.use_peft) await model.engine.saveAdapter(folder, baseName(model.folder));
        else await model.engine.saveModel(folder);
        options.onStageEnd?.(stage.name, report);
      } finally {
        await model.engine.close();
      }
    }
    from = folder;
  }
  return load(from);
}

/** Where a stage's model is saved; in folders of version 1 the model of SFT is in `warmed`. */
function stageFolder(run: string, name: string): string {
  const old = join(run, "warmed");
  return name === SFT.name && existsSync(old) ? old : join(run, name);
}

/** An error in loading a model that a stage saved, with how to make it again. */
function damagedStage(from: string, { model_name }: GRPOConfig, error: unknown): unknown {
  if (from === model_name || !(error instanceof ModelLoadError)) return error;
  return new ModelLoadError({
    what: `the model that an earlier stage saved cannot be loaded: ${error.what}; its folder is`,
    value: from,
    remedy: "delete that folder, and the stage is repeated",
    cause: error,
  });
}

/** Evaluates the model before any stage, unless a resumed run already has that evaluation. */
async function evaluateBase(model: LoadedModel, options: RunStagesOptions): Promise<void> {
  const { data, config, store, environments, signal, onPhase, onProgress } = options;
  if (store.read("base.json") !== null) return;
  onPhase?.("base");
  const played = await evaluateStage(createSqlEnvironment({ data, config, environments }), model, config, {
    player: "base",
    signal,
    onProgress: (done, total) => onProgress?.("base", done, total),
  });
  keepStage(store, played);
}
