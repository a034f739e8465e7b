// Training an agent of one's own: a function that plays tasks with a client of OpenAI's API.

import { UsageError } from "../../errors.ts";
import type { ChatModel } from "../../lm/chat/index.ts";
import { Chat } from "../../lm/chat/index.ts";
import type { Environment } from "../environment.ts";
import type { TrainAndEvaluateOptions } from "../run/train-and-evaluate.ts";
import { createTextEnvironment, type TextEnvironmentOptions } from "../text-environment.ts";
import type { TrainableModel } from "../trainable-model.ts";
import type { RunAgent } from "./agent.ts";
import { AgentEpisode, type AgentPlace } from "./agent-episode.ts";
import { places } from "./places.ts";

export interface AgentEnvironmentOptions extends Pick<TextEnvironmentOptions, "tasks" | "name" | "seed"> {
  readonly model: ChatModel;
  /** Plays one task and returns its reward. Required unless `place` is given. */
  readonly run?: RunAgent | undefined;
  /** Maximum agents running at once; others wait. @default no limit: one for each episode of a batch */
  readonly concurrency?: number | undefined;
  /** In place of `run`: resolves when an agent is free for a task, such as a process that asks a server for tasks. */
  readonly place?: ((signal: AbortSignal) => AgentPlace | Promise<AgentPlace>) | undefined;
}

/** The model has all that both training and chats need; what `loadModelAndTokenizer` returns has it. */
export type AgentModel = TrainableModel & ChatModel;

export interface TrainAgentOptions
  extends Omit<TrainAndEvaluateOptions, "environment" | "data" | "environments" | "env" | "system" | "model" | "tasks">,
    Omit<AgentEnvironmentOptions, "model" | "seed"> {
  readonly model: AgentModel;
}

/**
 * The trainer's environment for an agent. Its episodes are the agent's runs; each call of the model is a turn.
 *
 * @example
 * const agent = async ({ text, id }: Task, { fetch, baseURL }: AgentClient) => {
 *   const body = JSON.stringify({ model: "policy", messages: [{ role: "user", content: text }] });
 *   const reply = await fetch(`${baseURL}/chat/completions`, { method: "POST", body });
 *   return (await reply.text()).includes(id) ? 1 : 0;
 * };
 * const tasks = [1, 2, 3, 4].map((n) => ({ id: `${n}`, text: `Say ${n}.` }));
 * const loaded = await loadModelAndTokenizer("starter");
 * const environment = createAgentEnvironment({ model: loaded, tasks, run: agent });
 * await new GRPOTrainer({ model: loaded, environment, config }).train();
 */
export function createAgentEnvironment(options: AgentEnvironmentOptions): Environment {
  const { model, run, place, concurrency = Number.POSITIVE_INFINITY, tasks, name = "agent", seed } = options;
  if (!(concurrency >= 1)) throw new UsageError({ what: "concurrency must be at least 1", value: concurrency });
  const chat = new Chat(model);
  if (!chat.canExtend)
    throw new UsageError({
      what: "the model's chat template does not show where a reply ends, so that the ids of a history cannot be kept",
      remedy: "use a model whose generation prompt opens the reply, such as Qwen's and Llama's",
    });
  const wait = place ?? (run && places(concurrency, run));
  if (!wait || (place && run))
    throw new UsageError({
      what: "an agent needs either `run` or `place`",
      remedy: "give `run: async (task, openai) => reward`, or the `place` of a server's rollouts",
    });
  return createTextEnvironment({ env: () => new AgentEpisode({ chat, place: wait }), tasks, name, seed });
}

/** The options of a training in an agent's environment. */
export function agentTraining(options: TrainAgentOptions): TrainAndEvaluateOptions {
  const { tasks: _, run: __, place: ___, concurrency: ____, name: _____, ...rest } = options;
  return { ...rest, environment: createAgentEnvironment({ ...options, seed: options.config.seed }) };
}
