// `rolloutFunc`: a rollout on SQL questions without a trainer, under TRL's name.
import { UsageError } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import type { EnvironmentSource } from "../../gym/evaluation/index.ts";
import type { TokenSampler } from "../../gym/players/index.ts";
import { bundledDataSet } from "../../gym/worlds/index.ts";
import { createTurnEncoder, type Tokenizer, type TurnEncoder } from "../../lm/model/index.ts";
import type { GRPOConfig } from "../config.ts";
import { type RolloutOptions, rollOut } from "../rollout.ts";
import type { Episode } from "../run/records.ts";
import { RolloutClock } from "../timing.ts";
import { findQuestion, type QuestionPrompt } from "./questions.ts";
import { createSqlEnvironment } from "./sql-environment.ts";

export { parseModelOutput } from "../../gym/players/index.ts";

export interface RolloutFuncOptions extends Omit<RolloutOptions, "model" | "config"> {
  /** The data set with the questions. @default the bundled set, if questions_path is "bundled" */
  readonly data?: DataSet;
  /** @default ChatML turns for the tokenizer */
  readonly turns?: TurnEncoder;
  /** Where the environments run. @default in this thread */
  readonly environments?: EnvironmentSource | undefined;
  /** Called with the seconds in which nothing was sampled because of environments, and the seconds that they worked. */
  readonly onEnvironment?: (waited: number, worked: number) => void;
}

/**
 * Plays an episode for each question, by prompt or by its text; give a prompt several times to play a group. Episodes are
 * in the order of the prompts. An episode that the environment could not score has null rewards; an engine's failure is
 * thrown.
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
  options: RolloutFuncOptions = {},
): Promise<Episode[]> {
  const { turns = createTurnEncoder(tokenizer), environments, onEnvironment } = options;
  const data = options.data ?? bundledData(config);
  const environment = createSqlEnvironment({ data, config, environments });
  const { clock = new RolloutClock(environment) } = options;
  const tasks = prompts.map((prompt) => {
    const { question_id: id, question_text: text } = findQuestion(prompt, data);
    return { id, text };
  });
  try {
    return await rollOut(environment, tasks, { ...options, model: { engine, tokenizer, turns }, config, clock });
  } finally {
    onEnvironment?.(clock.waited, clock.worked + clock.elsewhere);
  }
}

function bundledData({ questions_path }: GRPOConfig): DataSet {
  if (questions_path === "bundled") return bundledDataSet();
  throw new UsageError({
    what: "rolloutFunc does not read files; questions_path is",
    value: questions_path,
    remedy: "open the data set and pass it as the option `data`",
  });
}
