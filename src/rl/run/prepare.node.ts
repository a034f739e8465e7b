// What a training needs before its model is loaded: its folder, data set, reward functions and split, all checked.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { UsageError } from "../../errors.ts";
import { type DataSet, holdOut } from "../../gym/data/index.ts";
import { resolveDataSet } from "../../gym/datasets.node.ts";
import { type GRPOConfig, type GRPOConfigInput, resolveConfig, stepsOf } from "../config.ts";
import { openServerEnvironment } from "../openenv/prepare.node.ts";
import type { ServerEnvironment } from "../openenv/server-environment.ts";
import { checkRewards, REWARD_FUNCTIONS, type RewardFunction, rewardEnvironment } from "../rewards.ts";
import { loadQuestionPrompts } from "../sql/questions.ts";
import { resumedConfig } from "./config-file.node.ts";
import type { TrainingSplit } from "./records.ts";
import { rewardFile } from "./reward-file.node.ts";
import { splitOf } from "./split.ts";

export interface PrepareOptions {
  /** Settings that differ from the defaults, or from those of the run that is resumed. */
  readonly config?: GRPOConfigInput | undefined;
  /** The folder of a run to continue. */
  readonly resume?: string | undefined;
  /** Replaces `questions_path` and `db_dir`; the caller closes it. */
  readonly data?: DataSet | undefined;
  /** Replaces `reward_funcs`. */
  readonly rewardFuncs?: readonly RewardFunction[] | undefined;
  /** Called with notes for people, one line each. */
  readonly onNote?: ((text: string) => void) | undefined;
}

/** A validated training, ready to start. */
export interface PreparedTraining {
  readonly config: GRPOConfig;
  /** The run's folder; not created yet. */
  readonly run: string;
  /** Whether the run is continued. */
  readonly resume: boolean;
  /** Undefined for an environment on a server. */
  readonly data: DataSet | undefined;
  /** An environment on a server; undefined for SQL. */
  readonly environment: ServerEnvironment | undefined;
  readonly rewardFuncs: readonly RewardFunction[];
  /** Ids of the questions or tasks that GRPO asks. */
  readonly asked: readonly string[];
  /** Optimizer steps of GRPO. */
  readonly steps: number;
  /** Undefined for an environment on a server. */
  readonly split: TrainingSplit | undefined;
  /** Training questions held out for evaluation, since the data set has no evaluation questions. */
  readonly heldOut: number;
  /** Ends the reward functions' thread, and closes the databases or the server's sessions. */
  close(): Promise<void>;
}

/** Opens what the config names and checks what can be checked; nothing is written. The caller closes the result. */
export async function prepareTraining({ config, resume, ...given }: PrepareOptions): Promise<PreparedTraining> {
  return prepare(resume === undefined ? resolveConfig(config) : resumedConfig(resume, config), { resume, ...given });
}

/** Like `prepareTraining`, with a complete config. */
export async function prepare(
  config: GRPOConfig,
  { resume, data: givenData, rewardFuncs: givenRewards, onNote }: Omit<PrepareOptions, "config"> = {},
): Promise<PreparedTraining> {
  const run = resume ?? newRunFolder(config);
  const rewards = givenRewards
    ? { functions: givenRewards, close: async () => {} }
    : await rewardFile(config.reward_funcs);
  let data: DataSet | undefined;
  let environment: ServerEnvironment | undefined;
  const close = async () => {
    if (!givenData) data?.databases.close();
    environment?.close();
    await rewards.close();
  };
  const common = { config, run, resume: resume !== undefined, close };
  try {
    environment = await openServerEnvironment(config, onNote);
    if (environment) {
      const rewardFuncs = givenRewards ?? onServer(rewards.functions);
      checkRewards(rewardFuncs, config.reward_weights);
      const asked = environment.tasks("train").map(({ id }) => id);
      const steps = stepsOf(config, asked.length);
      return { ...common, data, environment, rewardFuncs, asked, steps, split: undefined, heldOut: 0 };
    }
    const opened = givenData ? { data: givenData, heldOut: 0 } : await openTrainingData(config, resume);
    data = opened.data;
    const { heldOut } = opened;
    checkRewards(rewards.functions, config.reward_weights);
    const asked = loadQuestionPrompts(data, config).map(({ question_id }) => question_id);
    const steps = stepsOf(config, asked.length);
    const split = await splitOf(data, config);
    const rewardFuncs = rewards.functions;
    return { ...common, data, environment, rewardFuncs, asked, steps, split, heldOut };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The environment's own reward, then the functions of the reward file. */
function onServer(functions: readonly RewardFunction[]): RewardFunction[] {
  return [rewardEnvironment, ...functions.filter((one) => !REWARD_FUNCTIONS.includes(one))];
}

/** The data set that a config names; if it has no evaluation questions, some training questions are held out. */
export async function openTrainingData(
  config: GRPOConfig,
  run?: string,
): Promise<{ readonly data: DataSet; readonly heldOut: number }> {
  const { questions_path, db_dir } = config;
  const opened = await resolveDataSet(questions_path, { dbDir: db_dir === "bundled" ? undefined : db_dir });
  const data = isWithoutEvaluation(run) ? opened : withHeldOut(opened, config);
  return { data, heldOut: data === opened ? 0 : data.questions.filter(({ split }) => split === "eval").length };
}

function withHeldOut(data: DataSet, { difficulty_filter: difficulty, seed }: GRPOConfig): DataSet {
  const questions = holdOut(data.questions, { difficulty, seed });
  return questions === data.questions ? data : { ...data, questions };
}

/** Whether a run that is resumed was begun without evaluation questions, as earlier versions did. */
function isWithoutEvaluation(run: string | undefined): boolean {
  const file = run && join(run, "split.json");
  if (!file || !existsSync(file)) return false;
  try {
    return (JSON.parse(readFileSync(file, "utf8")) as TrainingSplit).eval.questions === 0;
  } catch {
    return false; // a damaged file is refused when the split is compared
  }
}

/** The folder of a new run: the configured one, which must be missing or empty, or the next free name under runs/. */
function newRunFolder({ output_dir, model_name }: GRPOConfig): string {
  if (output_dir !== null) {
    if (existsSync(output_dir) && !statSync(output_dir).isDirectory())
      throw new UsageError({ what: "the output folder is a file", value: output_dir, remedy: "name another" });
    if (existsSync(output_dir) && readdirSync(output_dir).length > 0)
      throw new UsageError({
        what: "the output folder already exists",
        value: output_dir,
        remedy: `continue it with --resume ${output_dir}, or name another`,
      });
    return output_dir;
  }
  const name = runName(model_name);
  const free = (number: number): string => {
    const run = join("runs", number === 1 ? name : `${name}-${number}`);
    return existsSync(run) ? free(number + 1) : run;
  };
  return free(1);
}

/** A folder's name for a model: `runs/qwen3-0.6b` for Qwen/Qwen3-0.6B, `runs/llama3.2-1b` for ollama:llama3.2:1b. */
function runName(model: string): string {
  const name = model.startsWith("ollama:") ? model.slice("ollama:".length).replaceAll(":", "-") : model;
  return basename(name)
    .toLowerCase()
    .replace(/\.gguf$/, "");
}
