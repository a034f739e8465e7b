// Refuses, by name, settings that cannot be honoured if the caller has already loaded the model.
import { UsageError } from "../../errors.ts";
import type { GRPOConfig } from "../config.ts";
import type { TrainAndEvaluateOptions } from "./train-and-evaluate.ts";

/** Properties that an engine may have. */
interface Facts {
  readonly device: string;
  readonly threads: number;
  readonly parameters: number;
  readonly trained: number;
}

/** Throws for a setting that differs from its default and cannot be honoured with the given model. */
export function refuseUnused(options: TrainAndEvaluateOptions): void {
  const { config, rewardFuncs, store, environments } = options;
  const facts = factsOf(options.model);
  const load = "leave out `model` under Node, so that it is loaded as the settings say";
  const refuse = (key: keyof GRPOConfig, remedy: string) => {
    throw new UsageError({
      what: `runTraining cannot honour ${key} with a model that is already loaded; it is`,
      value: String(config[key]),
      remedy,
    });
  };
  for (const key of ["sft_steps", "self_taught_rounds"] as const)
    if (config[key] > 0) refuse(key, `${load}, or set it to 0 and call fineTune or selfTaughtRound first`);
  if (config.use_peft && !(facts && facts.trained < facts.parameters))
    refuse("use_peft", `${load}, or load it with lora`);
  if (config.engine !== null && facts?.device !== "remote")
    refuse("engine", `${load}, or load it with loadRemoteModel`);
  if (config.device !== "auto" && config.device !== facts?.device) refuse("device", load);
  if (config.precision !== "auto" && !(["cpu", "webgpu"].includes(facts?.device ?? "") && config.precision === "fp32"))
    refuse("precision", load);
  if (config.threads !== null && config.threads !== facts?.threads) refuse("threads", load);
  if (config.max_gpu_memory !== null) refuse("max_gpu_memory", `${load}, or load it with maxGpuMemory`);
  if (config.gradient_checkpointing) refuse("gradient_checkpointing", `${load}, or load it with recompute`);
  if (config.environment_threads && !environments)
    refuse("environment_threads", "pass `environments`, or leave it out");
  if (config.reward_funcs !== null && !rewardFuncs) refuse("reward_funcs", "pass the functions as `rewardFuncs`");
  if (config.report_to === "tensorboard") refuse("report_to", "pass `callbacks: [tensorBoard(folder)]`");
  if (config.output_dir !== null && !store) refuse("output_dir", "pass `store: new RunFolder(…)`");
}

/** The facts of an engine in a thread, or of a model loaded in a web page. */
function factsOf(model: TrainAndEvaluateOptions["model"]): Facts | undefined {
  const { engine, facts } = model as { engine: { facts?: Facts }; facts?: Facts };
  return engine.facts ?? facts;
}
