// A training of a loaded model: the random baseline, the model before, GRPO, the model after, and the result.

import { UsageError } from "../../errors.ts";
import { type DataSet, evalIdsSha256, idsSha256 } from "../../gym/data/index.ts";
import { rulesId, rulesOf } from "../../gym/env/index.ts";
import { summarize } from "../../gym/evaluation/index.ts";
import { promptId } from "../../gym/players/index.ts";
import type { Environment } from "../environment.ts";
import { compareStages, evaluateStage, keepEpisodes, keepStage, type StageOptions } from "../evaluate-stage.ts";
import { measurePassAtK, passAtKWarning } from "../pass-at-k.ts";
import { selfTaughtName } from "../sft/self-taught.ts";
import { randomBaseline } from "../sql/random-baseline.ts";
import { GRPOTrainer, type TrainerOptions } from "../trainer.ts";
import { describeEnvironment, keepEnvironment, taskAnswers } from "./environment-file.ts";
import { goldAnswers, keepGold } from "./gold.ts";
import { accuracyOf, outcomesOf, pairsOf } from "./outcomes.ts";
import { readRunJson } from "./read-json.ts";
import {
  type PassAtK,
  passAtKSchema,
  type StageEvaluation,
  selfTaughtReportSchema,
  stageEvaluationSchema,
  stageReportSchema,
  type TrainingResult,
  type Warning,
} from "./records.ts";
import { keepSplit, overlapWarning, splitOf } from "./split.ts";

/** Part of a training, in order. */
export type Phase = "base" | "sft" | "self_taught" | "random" | "before" | "pass_at_k" | "training" | "after";

export interface TrainAndEvaluateOptions extends TrainerOptions {
  /** Continue the store's run instead of starting anew. */
  readonly resume?: boolean;
  /** Seconds spent on earlier stages, added to the result's total. @default 0 */
  readonly spent?: number;
  readonly signal?: AbortSignal | undefined;
  readonly onPhase?: (phase: Phase) => void;
  /** Episodes of the current evaluation: played so far, and in total. */
  readonly onProgress?: (phase: Phase, done: number, total: number) => void;
  /** pass@k before training, if `pass_k` is set, and a warning if it is too low for RL. */
  readonly onPassAtK?: (measured: PassAtK, warning: Warning | null) => void;
}

/** Environments other than SQL have no player that acts at random. */
const PASS_AT_K_FILE = "pass_at_k.json";
/** Its name in earlier versions, whose runs can be resumed. */
const OLD_PASS_AT_K_FILE = "reach.json";

const NOTHING = { greedy: summarize([]), sampled: summarize([]) };
const NO_BASELINE: StageEvaluation = { player: "random", evaluation: { seen: NOTHING, unseen: NOTHING }, compared: [] };

/** SHA-256 of the evaluation tasks' ids; undefined in pages without crypto.subtle. */
async function evaluationSum(environment: Environment, data: DataSet | undefined): Promise<string | undefined> {
  if (!globalThis.crypto?.subtle) return undefined;
  return data ? evalIdsSha256(data.questions) : idsSha256(environment.tasks("eval").map(({ id }) => id));
}

/** Trains and evaluates, and writes the records to the store; null if aborted, with the training saved. */
export async function trainAndEvaluate(options: TrainAndEvaluateOptions): Promise<TrainingResult | null> {
  const {
    model,
    data,
    config,
    environments,
    signal,
    onPhase,
    onProgress,
    onPassAtK,
    resume = false,
    spent = 0,
  } = options;
  const trainer = new GRPOTrainer(options);
  const { store, environment } = trainer;
  const started = performance.now();
  if (resume) store.rewind();
  else if (store.newest())
    throw new UsageError({
      what: "there is a run already",
      value: store.name,
      remedy: "resume it, or use another folder",
    });

  const watch = (phase: Phase): StageOptions => {
    onPhase?.(phase);
    return { player: phase, signal, onProgress: (done, total) => onProgress?.(phase, done, total) };
  };
  /** Evaluates once; a resumed run reads the stored evaluation. */
  const once = async (phase: "random" | "before", play: () => Promise<StageEvaluation>): Promise<StageEvaluation> => {
    const kept = readRunJson(store, `${phase}.json`, stageEvaluationSchema);
    if (kept) return kept;
    const played = await play();
    if (phase === "before") keepEpisodes(store, played);
    keepStage(store, played);
    return played;
  };

  /** pass@k of the model; a resumed run reads the stored one. */
  const passAtKOnce = async (): Promise<PassAtK> => {
    const kept =
      readRunJson(store, PASS_AT_K_FILE, passAtKSchema) ?? readRunJson(store, OLD_PASS_AT_K_FILE, passAtKSchema);
    if (kept) return kept;
    onPhase?.("pass_at_k");
    const measured = await measurePassAtK(environment, model, config, {
      signal,
      onProgress: (done, total) => onProgress?.("pass_at_k", done, total),
    });
    store.write(PASS_AT_K_FILE, `${JSON.stringify(measured)}\n`);
    onPassAtK?.(measured, passAtKWarning(measured));
    return measured;
  };

  try {
    const split = data ? await splitOf(data, config) : null;
    if (split) keepSplit(store, split);
    keepGold(store, data ? goldAnswers(data.questions) : taskAnswers(environment));
    if (!data) keepEnvironment(store, environment);
    const { sft_steps, self_taught_rounds } = config;
    const base =
      sft_steps > 0 || self_taught_rounds > 0 ? readRunJson(store, "base.json", stageEvaluationSchema) : null;
    const sft = sft_steps > 0 ? readRunJson(store, "sft.json", stageReportSchema) : null;
    const self_taught = Array.from({ length: self_taught_rounds }, (_, i) =>
      readRunJson(store, `${selfTaughtName(i + 1)}.json`, selfTaughtReportSchema),
    ).filter((report) => report !== null);
    const random = await once("random", async () =>
      data ? randomBaseline(data, config, { environments, ...watch("random") }) : NO_BASELINE,
    );
    const isNew = store.newest() === null;
    const before = await once("before", () => evaluateStage(environment, model, config, watch("before")));
    if (isNew) await trainer.record(before.evaluation);
    const passAtK = config.pass_k > 0 ? await passAtKOnce() : null;
    const first = [split && overlapWarning(split), passAtK && passAtKWarning(passAtK)].filter(
      (warning) => warning !== null,
    );
    if (isNew) store.append("warnings.jsonl", ...first);
    onPhase?.("training");
    const { interrupted, steps } = await trainer.train({ signal });
    if (interrupted) return null;
    const after = await evaluateStage(environment, model, config, watch("after"));
    await trainer.record(after.evaluation);
    keepEpisodes(store, after);
    store.write(
      "comparison.json",
      `${JSON.stringify(compareStages([...(data ? [random] : []), ...(base ? [base] : []), before, after]))}\n`,
    );
    const stages = [...(base ? [base] : []), before, after].map(({ player, judged = [] }) => ({
      stage: player,
      judged,
    }));
    const eval_ids_sha256 = await evaluationSum(environment, data);
    const asked = {
      model_name: config.model_name,
      prompt: data ? promptId({ prompt: config.prompt, shots: config.shots }) : environment.prompt.id,
      ...(data && { rules: rulesId(rulesOf(config)) }),
    };
    if (data) {
      const outcomes = await outcomesOf(stages, {
        ...asked,
        rules: rulesId(rulesOf(config)),
        seed: config.seed,
        data: data.name,
        max_new_tokens: config.max_new_tokens,
        step_budget: config.eval_step_budget ?? config.step_budget,
      });
      store.write("outcomes.json", `${JSON.stringify(outcomes)}\n`);
    }
    const result: TrainingResult = {
      run: store.name,
      ...asked,
      ...(eval_ids_sha256 !== undefined && { eval_ids_sha256 }),
      seconds: spent + Math.max(trainer.state.elapsed, (performance.now() - started) / 1000),
      steps,
      episodes: trainer.state.episodes,
      tokens: trainer.state.tokens,
      random: random.evaluation,
      ...(base && { base: base.evaluation }),
      before: before.evaluation,
      after: after.evaluation,
      ...(passAtK && { pass_at_k: passAtK }),
      ...(data
        ? {
            accuracy: Object.fromEntries(stages.map(({ stage, judged }) => [stage, accuracyOf(judged)])),
            paired: pairsOf(stages, config.seed),
          }
        : { environment: describeEnvironment(environment), paired: pairsOf(stages, config.seed, ["answer"]) }),
      ...(sft && { sft }),
      ...(self_taught.length > 0 && { self_taught }),
      ...(split && { split }),
      warnings: (store.read("warnings.jsonl") ?? "").split("\n").filter(Boolean).length,
    };
    store.write("results.json", `${JSON.stringify(result, null, 2)}\n`);
    return result;
  } catch (error) {
    if (!signal?.aborted || error !== signal.reason) throw error;
    return null;
  }
}
