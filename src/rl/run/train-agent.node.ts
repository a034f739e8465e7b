// trainAgent under Node.
import { agentTraining, type TrainAgentOptions } from "../agents/train-agent.ts";
import type { TrainingResult } from "./records.ts";
import { runTraining } from "./train.node.ts";

/**
 * Trains the model that an agent calls, evaluates before and after, and keeps the run in the store, with its settings; resolves with null
 * if aborted, with the training saved. The agent is any function that plays a task with a client of OpenAI's API.
 *
 * @example
 * import type { AgentClient } from "sqlenv/rl";
 * const run = async ({ text, id }: Task, { baseURL, fetch }: AgentClient) => {
 *   const body = JSON.stringify({ model: "policy", messages: [{ role: "user", content: text }] });
 *   const reply = await fetch(`${baseURL}/chat/completions`, { method: "POST", body });
 *   return (await reply.text()).includes(id) ? 1 : 0;
 * };
 * const tasks = [1, 2, 3, 4].map((n) => ({ id: `${n}`, text: `Say ${n}.` }));
 * await trainAgent({ model: await loadModelAndTokenizer("starter"), tasks, run, config });
 */
export async function trainAgent(options: TrainAgentOptions): Promise<TrainingResult | null> {
  return runTraining(agentTraining(options));
}
