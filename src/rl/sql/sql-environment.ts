// The SQL environment behind the trainer's interface: questions become tasks, observations and actions become text.
import { messageOf } from "../../errors.ts";
import { type DataSet, filterQuestions } from "../../gym/data/index.ts";
import { type EnvironmentOptions, rulesOf, type SQLObservation } from "../../gym/env/index.ts";
import {
  type EnvironmentSource,
  localEnvironments,
  type OpenedEnvironment,
  recordEpisode,
  type StepRecord,
  UNSCORED,
} from "../../gym/evaluation/index.ts";
import { type Prompt, promptFor } from "../../gym/players/index.ts";
import { environmentOptionsOf, type GRPOConfig, trainingEnvironmentOptions } from "../config.ts";
import type {
  Ending,
  Environment,
  EpisodePurpose,
  Task,
  TextEnvironment,
  TextReset,
  TextStep,
} from "../environment.ts";
import { evaluationConfig } from "../model-policy.ts";
import { REWARD_FUNCTIONS } from "../rewards.ts";
import { judgeEpisodes } from "../run/outcomes.ts";
import { behaviourMetrics } from "./behaviour-metrics.ts";
import { failedTurns } from "./failures.ts";
import { milestoneOf } from "./milestone.ts";
import { findQuestion, loadQuestionPrompts, trainedDatabases } from "./questions.ts";

export interface SqlEnvironmentOptions {
  readonly data: DataSet;
  readonly config: GRPOConfig;
  /** Where the environments run. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
}

/**
 * The environment that a config describes, over the questions of a data set.
 *
 * @example
 * const environment = createSqlEnvironment({ data, config });
 * const [task] = environment.tasks("eval");
 */
export function createSqlEnvironment({ data, config, environments }: SqlEnvironmentOptions): Environment {
  const source = environments ?? localEnvironments(data);
  const prompt = promptFor({ prompt: config.prompt, shots: config.shots }, rulesOf(config));
  const tasks = { train: memo(() => trainingTasks(data, config)), eval: memo(() => evaluationTasks(data, config)) };
  return {
    name: data.name,
    prompt,
    tasks: (split) => tasks[split](),
    open: (purpose) => new SqlTextEnvironment(source.open(optionsFor(purpose, config)), data, prompt),
    get workSeconds() {
      return source.workSeconds;
    },
    metrics: behaviourMetrics,
    milestone: (episode) => milestoneOf(episode, config.reward.progress),
    failures: (group) => failedTurns(group, prompt),
    rewardFuncs: REWARD_FUNCTIONS,
    judge: (records) => judgeEpisodes(records, data),
  };
}

/** Step budget, rewards and rules of the environments for training episodes, for evaluations, and for other uses. */
export function optionsFor(purpose: EpisodePurpose, config: GRPOConfig): EnvironmentOptions {
  if (purpose === "training") return trainingEnvironmentOptions(config);
  return environmentOptionsOf(purpose === "evaluation" ? evaluationConfig(config) : config);
}

function trainingTasks(data: DataSet, config: GRPOConfig): Task[] {
  const difficulty = new Map(data.questions.map((question) => [question.question_id, question.difficulty]));
  return loadQuestionPrompts(data, config).map(({ question_id, text }) => ({
    id: question_id,
    text,
    difficulty: difficulty.get(question_id)!,
  }));
}

function evaluationTasks(data: DataSet, { difficulty_filter: difficulty }: GRPOConfig): Task[] {
  const trained = trainedDatabases(data);
  return filterQuestions(data.questions, { split: "eval", difficulty }).map((question) => ({
    id: question.question_id,
    text: question.question_text,
    group: question.database_name,
    seen: trained.has(question.database_name),
  }));
}

/**
 * A text environment on top of one SQL environment. Its methods are synchronous if those of the SQL environment are.
 */
class SqlTextEnvironment implements TextEnvironment {
  readonly #env: OpenedEnvironment;
  readonly #data: DataSet;
  readonly #prompt: Prompt;
  #task: Task | undefined;
  #start: SQLObservation | null = null;
  #steps: StepRecord[] = [];

  constructor(env: OpenedEnvironment, data: DataSet, prompt: Prompt) {
    this.#env = env;
    this.#data = data;
    this.#prompt = prompt;
  }

  reset(task: Task): TextReset | Promise<TextReset> {
    this.#task = task;
    this.#start = null;
    this.#steps = [];
    return then(this.#env.reset({ question_id: task.id }), (observation) => {
      this.#start = observation;
      return { text: this.#prompt.format(observation) };
    });
  }

  step(text: string): TextStep | Promise<TextStep> {
    const { action, error } = this.#prompt.parse(text);
    return then(this.#env.step(action), (observation) => {
      const { reward_breakdown, reward, done } = observation;
      this.#steps.push({ action, text, parse_error: error?.message ?? null, observation, reward_breakdown });
      return { text: this.#prompt.format(observation), reward, done };
    });
  }

  async record({ player, error }: Ending) {
    const question = findQuestion({ question_id: this.#task!.id, text: "" }, this.#data);
    const { outcome, failure } = await this.#outcome(error);
    return recordEpisode(question, {
      player,
      prompt: this.#prompt.id,
      rules: this.#env.rules,
      seen: trainedDatabases(this.#data).has(question.database_name),
      start: this.#start,
      steps: this.#steps,
      outcome,
      error: failure,
    });
  }

  async #outcome(error: string | null) {
    if (error !== null) return { outcome: UNSCORED, failure: error };
    try {
      return { outcome: await this.#env.outcome, failure: null };
    } catch (cause) {
      return { outcome: UNSCORED, failure: messageOf(cause) };
    }
  }

  close(): void | Promise<void> {
    return this.#env.close?.();
  }
}

function then<T, R>(value: T | Promise<T>, next: (value: T) => R): R | Promise<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

function memo<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
