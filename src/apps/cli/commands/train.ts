// `sqlenv train`: a model gets better at answering questions, and a folder shows it.
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { Command } from "commander";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import type { DataSet } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { rulesOf } from "../../../gym/env/index.ts";
import { usableCpus } from "../../../io/cpus.node.ts";
import type { LoadedModel } from "../../../lm/engine/index.node.ts";
import {
  checkRewards,
  type GRPOConfig,
  keepSplit,
  loadQuestionPrompts,
  overlapWarning,
  type Phase,
  type RewardFunction,
  resolveConfig,
  runTraining,
  type SelfTaughtReport,
  type SplitPart,
  type StageReport,
  splitOf,
  stepsOf,
  type TrainerCallback,
  type TrainingResult,
  type TrainingSplit,
  type WarmupStep,
  type Warning,
} from "../../../rl/index.ts";
import { RunFolder } from "../../../rl/run/folder.node.ts";
import { baseName, runStages } from "../../../rl/run/stages.node.ts";
import type { DashboardServer } from "../../dashboard/server/serve.node.ts";
import { modelCard, writeReport } from "../../reports/index.node.ts";
import { CommandEnvironments } from "../environments.ts";
import { writeModelMetadata } from "../model-metadata.ts";
import { rewardFile } from "../reward-file.ts";
import { interruptedCode, interruptSignal } from "../terminal/interrupt.ts";
import { type LostOutput, surviveLostOutput } from "../terminal/lost-output.ts";
import { formatNumber, type Output, output, printable, styled, wholeNumber } from "../terminal/output.ts";
import { aborted, startDashboard } from "./serve-dashboard.ts";
import {
  addConfigOptions,
  type ConfigFlags,
  configOf,
  configText,
  readConfigFile,
  resumedConfig,
} from "./train-config.ts";
import { dryRun } from "./train-dry.ts";
import { checkInputs } from "./train-inputs.ts";
import { trainingModel } from "./train-model.ts";
import { TrainingScreen } from "./train-screen.ts";

interface TrainFlags extends ConfigFlags {
  readonly resume?: string;
  readonly force?: boolean;
  readonly acceptChanges?: boolean;
  readonly dryRun?: boolean;
  readonly dashboard?: boolean;
  readonly dashboardPort?: number;
  readonly dashboardHost?: string;
  readonly json?: boolean;
}

/** The `train` command. */
export function trainCommand(): Command {
  const command = new Command("train")
    .description("train a model by playing; without options, the starter in a few minutes")
    .option("--resume <run>", "continue a run that was stopped, to the same result")
    .option("--force", "with --resume: take the run over from a process that seems to train in it; that one then ends")
    .option(
      "--accept-changes",
      "with --resume: continue although questions, databases, model or reward file have changed",
    )
    .option("--dry-run", "show the settings, what memory and time it would take, and stop")
    .option("--dashboard", "show the training in the browser while it goes on")
    .option(
      "--dashboard-port <number>",
      "its port; 0 for any (default: the first free from 7860)",
      wholeNumber("--dashboard-port"),
    )
    .option("--dashboard-host <address>", "the address it listens on; anything but this machine lets others read")
    .option("--json", "print one JSON object");
  return addConfigOptions(command).action(train);
}

async function train(flags: TrainFlags): Promise<void> {
  const out = output(flags);
  const lost = surviveLostOutput();
  const { config, run } = flags.resume === undefined ? newRun(flags) : oldRun(flags.resume, flags);
  const rewards = await rewardFile(config.reward_funcs);
  try {
    await trainWith(rewards.functions, config, run, flags, lost, out);
  } finally {
    await rewards.close();
  }
}

async function trainWith(
  rewardFuncs: readonly RewardFunction[],
  config: GRPOConfig,
  run: string,
  flags: TrainFlags,
  lost: readonly LostOutput[],
  out: Output,
): Promise<void> {
  const data = await resolveDataSet(config.questions_path, {
    dbDir: config.db_dir === "bundled" ? undefined : config.db_dir,
  });
  out.line(describeData(data, config));
  // What can be known to be wrong is said before anything is made.
  checkRewards(rewardFuncs, config.reward_weights);
  const asked = loadQuestionPrompts(data, config).map(({ question_id }) => question_id);
  const steps = stepsOf(config, asked.length);
  const split = await splitOf(data, config);
  for (const line of splitLines(split)) out.line(line);
  const overlap = overlapWarning(split);
  if (overlap) out.line(styled("yellow", `${overlap.message}; ${overlap.remedy}`));
  if (flags.dryRun) return dryRun(config, data, rewardFuncs, out);

  const signal = interruptSignal();
  const wasThere = existsSync(run);
  const store = new RunFolder(run);
  store.lock({ force: flags.force === true });
  process.once("exit", () => store.unlock());
  const resume = flags.resume !== undefined;
  if (!resume) store.write("config.yaml", configText({ ...config, output_dir: run }));
  keepSplit(store, split);
  const dashboard = await dashboardOf(run, flags, out);
  const screen = new TrainingScreen(out);
  let isChecked = false;
  const check = async (model: LoadedModel) => {
    if (!isChecked)
      await checkInputs({ model, data, config, store, resume, accept: flags.acceptChanges === true }, out);
    isChecked = true;
  };
  const environments = new CommandEnvironments(data, config.environment_threads, out, asked);
  let saved: string | undefined; // the last stage that is over
  const stages = {
    ...{
      data,
      config,
      split,
      store,
      signal,
      environments,
      workers: Math.max(0, Math.min(MAX_WORKERS, usableCpus() - 2)),
    },
    load: async (name: string) => {
      const model = await loadChecked(name, config, check, out);
      await environments.start(model.engine.facts.device).catch(async (error: unknown) => {
        await model.engine.close();
        throw error;
      });
      return model;
    },
    onPhase: (phase: Phase) => screen.phase(phase),
    onProgress: screen.progress.bind(screen),
    onStep: (phase: Phase, step: WarmupStep) => screen.sftStep(phase, step, phase === "sft" ? config.sft_steps : null),
    onStageEnd: (name: string, report: StageReport | SelfTaughtReport) => {
      saved = name;
      screen.stageEnd(name, report);
    },
  };
  const model = await runStages(stages).catch((error: unknown) => {
    if (signal.aborted && error === signal.reason) return null;
    store.unlock();
    if (saved)
      out.line(
        `the model after ${saved} is kept in ${printable(join(run, saved))}; sqlenv train --resume ${printable(run)} continues after it`,
      );
    else if (!resume && !isLost(error)) removeRun(run, wasThere); // nothing worth keeping was made: its name stays free
    void dashboard?.close();
    void environments.close();
    throw resumable(error, run);
  });
  if (!model) {
    await Promise.all([dashboard?.close(), environments.close()]);
    return interrupted(run, signal, out);
  }
  try {
    const result = await runTraining({
      ...{ model, data, config, rewardFuncs, store, signal, environments },
      callbacks: [screen, screen.live(steps), lostOutputWarnings(lost, store)],
      resume,
      spent: performance.now() / 1000, // since the process began
      onPhase: (phase) => screen.phase(phase),
      onProgress: screen.progress.bind(screen),
      onReach: (reach, warning) => screen.reach(reach, warning),
    });
    if (!result) return interrupted(run, signal, out);
    await saveModel(model, result, config, run);
    const { files } = await writeReport(run);
    screen.result(result, [...files.map((file) => basename(file)), ...(config.use_peft ? ["adapter/"] : []), "model/"]);
    out.result(result);
    store.unlock();
    if (dashboard && process.stdout.isTTY) {
      out.line(`the dashboard stays at ${dashboard.url} until Ctrl-C`);
      await aborted(signal);
    }
  } catch (error) {
    throw resumable(error, run);
  } finally {
    await Promise.allSettled([dashboard?.close(), model.engine.close(), environments.close()]); // never in place of the error there is
    data.databases.close();
    store.unlock();
  }
}

/** The most threads that make episodes for SFT: more than a GPU learns from. */
const MAX_WORKERS = 12;

/** Loads a model of this run; what the run is made from is checked and kept before anything is learned. */
async function loadChecked(
  name: string,
  config: GRPOConfig,
  check: (model: LoadedModel) => Promise<void>,
  out: Output,
): Promise<LoadedModel> {
  const model = await trainingModel(name, config);
  try {
    await check(model);
  } catch (error) {
    await model.engine.close();
    throw error;
  }
  const { parameters, trained, variant, threads } = model.engine.facts;
  const learned = trained === parameters ? "" : `, ${formatNumber(trained)} learned in adapters`;
  const from = name === config.model_name ? "" : ` (${basename(name)})`;
  out.line(
    `${printable(config.model_name)}${from}: ${formatNumber(parameters)} parameters${learned}, ${variant}, ${threads} threads`,
  );
  return model;
}

function isLost(error: unknown): error is SqlEnvError {
  return error instanceof SqlEnvError && ["device_lost", "engine_lost"].includes(error.code);
}

/** An error of a device or thread that was lost, with how to continue. */
function resumable(error: unknown, run: string): unknown {
  if (!isLost(error)) return error;
  const { code, what, value } = error;
  return new SqlEnvError(code, {
    ...{ what, value, cause: error },
    remedy: `the last checkpoint is whole: resume with sqlenv train --resume ${run}`,
  });
}

/** Says in warnings.jsonl that output was dropped, since the output itself cannot. */
function lostOutputWarnings(lost: readonly LostOutput[], store: RunFolder): TrainerCallback {
  let told = 0;
  return {
    on_step_end({ state: { step } }) {
      for (const { stream, code } of lost.slice(told)) {
        const message = `${stream} cannot be written (${code}): what would be shown there is dropped`;
        const remedy = "nothing else is lost: the training continues, and its folder has it all";
        store.append("warnings.jsonl", { step, code: "output_lost", message, remedy } satisfies Warning);
      }
      told = lost.length;
    },
  };
}

/** Removes what a run has written; an empty folder that was there before stays. */
function removeRun(run: string, wasThere: boolean): void {
  const paths = wasThere ? readdirSync(run).map((name) => join(run, name)) : [run];
  for (const path of paths) rmSync(path, { recursive: true, force: true });
}

/** The dashboard of this run, where one is wanted. */
async function dashboardOf(run: string, flags: TrainFlags, out: Output): Promise<DashboardServer | null> {
  const { dashboard, dashboardPort: port, dashboardHost: host } = flags;
  return dashboard || port !== undefined || host !== undefined
    ? startDashboard({ runs: [run], port, host }, out)
    : null;
}

/** A folder of its own for a new run. One that was named must not exist; one that was not gets the next free number. */
function newRun(flags: TrainFlags): { config: GRPOConfig; run: string } {
  const config = configOf(flags);
  if (config.output_dir !== null) {
    const { output_dir } = config;
    if (existsSync(output_dir) && !statSync(output_dir).isDirectory())
      throw new UsageError({ what: "the output folder is a file", value: output_dir, remedy: "name another" });
    if (existsSync(output_dir) && readdirSync(output_dir).length > 0)
      throw new UsageError({
        what: "the output folder is there already",
        value: output_dir,
        remedy: `go on with it by --resume ${output_dir}, or name another`,
      });
    return { config, run: output_dir };
  }
  const name = runName(config.model_name);
  const free = (number: number): string => {
    const run = join("runs", number === 1 ? name : `${name}-${number}`);
    return existsSync(run) ? free(number + 1) : run;
  };
  return { config, run: free(1) };
}

/** A folder's name for a model: `runs/qwen3-0.6b` for Qwen/Qwen3-0.6B, `runs/llama3.2-1b` for ollama:llama3.2:1b. */
function runName(model: string): string {
  const name = model.startsWith("ollama:") ? model.slice("ollama:".length).replaceAll(":", "-") : model;
  return basename(name)
    .toLowerCase()
    .replace(/\.gguf$/, "");
}

/** A run that goes on, with the settings it was begun with. */
function oldRun(run: string, flags: TrainFlags): { config: GRPOConfig; run: string } {
  const file = join(run, "config.yaml");
  if (!existsSync(file))
    throw new UsageError({
      what: "no run to resume",
      value: run,
      remedy: "name the folder of a training, one with a config.yaml",
    });
  return { config: resumedConfig(resolveConfig(readConfigFile(file)), flags), run };
}

/** The trained model as a folder others can load, whole or not at all; adapters by themselves too. */
async function saveModel({ engine, folder }: LoadedModel, result: TrainingResult, config: GRPOConfig, run: string) {
  const card = modelCard({ result, config });
  if (config.use_peft) await engine.saveAdapter(join(run, "adapter"), baseName(folder), { card });
  await engine.saveModel(join(run, "model"), { card });
  for (const name of config.use_peft ? ["adapter", "model"] : ["model"])
    writeModelMetadata(join(run, name), { prompt: config.prompt, shots: config.shots }, rulesOf(config));
}

function interrupted(run: string, signal: AbortSignal, out: Output): void {
  out.line(`stopped and saved; resume with: sqlenv train --resume ${printable(run)}`);
  process.exitCode = interruptedCode(signal);
}

/** Which databases each part of the training has questions on. */
function splitLines({ sft, grpo, eval: evaluated, overlap, seed }: TrainingSplit): string[] {
  const counted = (n: number, noun: string) => `${formatNumber(n)} ${noun}${n === 1 ? "" : "s"}`;
  const part = ({ databases, questions }: SplitPart) =>
    `${counted(questions, "question")} on ${counted(databases.length, "database")}`;
  if (sft.databases.length === 0) return [];
  return [
    `split by database, seed ${seed}: SFT imitates ${part(sft)}; GRPO asks ${part(grpo)}${overlap ? ", imitated ones included" : ""}`,
    `evaluation: ${part(evaluated)}`,
  ];
}

function describeData({ name, questions }: DataSet, { difficulty_filter }: GRPOConfig): string {
  const count = (split: string, filtered: boolean) =>
    questions.filter((q) => q.split === split && (!filtered || difficulty_filter.includes(q.difficulty))).length;
  const part = (split: string) => `${formatNumber(count(split, true))} of ${formatNumber(count(split, false))}`;
  return `${printable(name)}: ${part("train")} training and ${part("eval")} evaluation questions are ${difficulty_filter.join(" or ")}`;
}
