// An agent as the trainer sees it: a function that plays one task with a client of OpenAI's API and returns the reward.
import { quoted, SqlEnvError } from "../../errors.ts";
import type { Task, TextStep } from "../environment.ts";

/**
 * What an agent gives to its client of OpenAI's API. `fetch` answers without a network: every call is one turn of the
 * model, sampled as the config says and recorded. The names are those of the clients' options.
 */
export interface AgentClient {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly fetch: (input: string | URL | Request, init?: RequestInit) => Promise<Response>;
  /** The model's name. */
  readonly model: string;
  /** Aborted when the rollout ends, such as by environment_timeout. */
  readonly signal: AbortSignal;
}

/** How an episode of an agent went; a number alone is its reward. Null: it cannot be scored. */
export type AgentReward = number | null | AgentResult;

export interface AgentResult extends Pick<TextStep, "solved" | "rewards" | "metrics"> {
  readonly reward: number | null;
}

/** Plays a task and returns the reward. */
export type RunAgent = (task: Task, openai: AgentClient) => AgentReward | Promise<AgentReward>;

/** The last step of an episode, from what the agent returned. Throws if that is no reward. */
export function lastStep({ id }: Task, returned: AgentReward): TextStep {
  const result = typeof returned === "object" && returned !== null ? returned : { reward: returned };
  const { reward, solved, rewards, metrics } = result;
  if (reward !== null && !Number.isFinite(reward))
    throw new SqlEnvError("environment_failed", {
      what: `the agent's reward for task ${id} is neither a finite number nor null`,
      value: quoted(reward),
      remedy: "null says that the episode cannot be scored",
    });
  const more = { ...(solved !== undefined && { solved }), ...(rewards && { rewards }), ...(metrics && { metrics }) };
  return { text: "", reward, done: true, ...more };
}
