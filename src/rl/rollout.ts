// Rollouts: a batch of questions is played by the model, all episodes together. The engine samples whoever has the turn
// in one batch; environments step in between, or at the same time where they have threads of their own.
import { UsageError } from "../errors.ts";
import type { DataSet } from "../gym/data/index.ts";
import { type EnvironmentSource, localEnvironments, playEpisode } from "../gym/evaluation/index.ts";
import {
  type ModelPlayerOptions,
  ModelPolicy,
  type Player,
  promptId,
  type TokenSampler,
} from "../gym/players/index.ts";
import { bundledDataSet } from "../gym/worlds/index.ts";
import { createTurnEncoder, type Tokenizer, type TurnEncoder } from "../lm/model/index.ts";
import { type GRPOConfig, trainingEnvironmentOptions } from "./config.ts";
import { type QuestionPrompt, questionOf, trainedDatabases } from "./prompts.ts";
import { RolloutClock } from "./rollout-clock.ts";
import type { Episode } from "./run/records.ts";

export { parseModelOutput } from "../gym/players/index.ts";

export interface RolloutOptions {
  /** Where the questions are. @default the bundled set, when questions_path says so */
  readonly data?: DataSet;
  /** @default ChatML turns for the tokenizer */
  readonly turns?: TurnEncoder;
  /** Names the samples' random numbers: the same key plays the same episodes. @default [seed, "rollout"] */
  readonly key?: readonly (string | number)[];
  /** Called as each episode ends. */
  readonly onEpisode?: (done: number, all: number) => void;
  /** Where the environments are. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
  /** Measures rollouts that run at the same time together. @default one for this alone */
  readonly clock?: RolloutClock | undefined;
  /** Told the seconds in which nothing was sampled because of environments, and the seconds that they worked. */
  readonly onEnvironment?: (waited: number, worked: number) => void;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Plays an episode for each prompt; give a prompt several times to play a group. Episodes come back in the order of the
 * prompts. What the environment could not score has null rewards; an engine that fails throws.
 *
 * @example
 * const { engine, tokenizer, turns } = model;
 * const [prompt] = loadQuestionPrompts(data, config);
 * const group = await rolloutFunc([prompt!, prompt!, prompt!, prompt!], engine, tokenizer, config, { data, turns });
 */
export async function rolloutFunc(
  prompts: readonly (QuestionPrompt | string)[],
  engine: TokenSampler,
  tokenizer: Tokenizer,
  config: GRPOConfig,
  options: RolloutOptions = {},
): Promise<Episode[]> {
  const { turns = createTurnEncoder(tokenizer), key = [config.seed, "rollout"], onEpisode, signal } = options;
  const data = options.data ?? dataOf(config);
  const environments = options.environments ?? localEnvironments(data);
  const environment = trainingEnvironmentOptions(config);
  const prompt_id = promptId({ prompt: config.prompt, shots: config.shots });
  const trained = trainedDatabases(data);
  const clock = options.clock ?? new RolloutClock();
  const sampler = clock.sampler(engine);
  const workedBefore = environments.workSeconds ?? 0;
  let done = 0;
  const episodes = prompts.map(async (prompt, index) => {
    const question = questionOf(prompt, data);
    const own = signal && AbortSignal.any([signal]); // one each: they collect listeners
    const opened = environments.open(environment);
    const env = clock.environment(opened);
    const { rules } = opened;
    const policy = new ModelPolicy(
      { ...samplingOf(config, tokenizer), engine: sampler, turns, key },
      { seed: index, signal: own, rules },
    );
    const player: Player = { name: "model", prompt_id, start: () => (observation) => policy.decide(observation) };
    const seen = trained.has(question.database_name);
    const record = await playEpisode(env, player, { question, seen, signal: own }).finally(() => env.close?.());
    onEpisode?.(++done, prompts.length);
    const { messages, segments, truncated, written: completion_tokens } = policy;
    return { ...record, messages, segments, truncated, completion_tokens };
  });
  const ended = await Promise.allSettled(episodes); // none is left running when this returns
  options.onEnvironment?.(clock.waited, clock.worked + (environments.workSeconds ?? 0) - workedBefore);
  return ended.map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}

/** How the model speaks in training and in sampled evaluations. */
export function samplingOf(
  config: GRPOConfig,
  tokenizer: Tokenizer,
): Pick<
  ModelPlayerOptions,
  | "decode"
  | "texts"
  | "prompt"
  | "temperature"
  | "top_k"
  | "top_p"
  | "min_p"
  | "max_new_tokens"
  | "max_completion_length"
  | "max_context_tokens"
> {
  const { temperature, top_k, top_p, min_p, max_new_tokens, max_completion_length, max_context_tokens } = config;
  const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
  const { prompt, shots } = config;
  const words = { decode, texts: prompt === "compact" ? undefined : tokenizer.texts, prompt: { prompt, shots } };
  const lengths = { max_new_tokens, max_completion_length, max_context_tokens };
  return { ...words, temperature, top_k, top_p, min_p: min_p ?? 0, ...lengths };
}

function dataOf({ questions_path }: GRPOConfig): DataSet {
  if (questions_path === "bundled") return bundledDataSet();
  throw new UsageError({
    what: "rolloutFunc does not read files; questions_path is",
    value: questions_path,
    remedy: "open the data set and pass it as the option `data`",
  });
}
