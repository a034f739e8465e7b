// Rollouts of agents over HTTP: hands tasks to agents, answers their calls of the model, and takes their rewards. The
// trainer sees each as an agent that runs in a place (rl/agents).
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { messageOf } from "../../../errors.ts";
import { parseJson } from "../../../io/json.ts";
import { LlmError } from "../../../lm/chat/openai/error.ts";
import type { AgentClient, AgentPlace, AgentResult, AgentReward, Task } from "../../../rl/index.ts";

/** Seconds that an agent waits for a task before it is told to ask again; proxies end silent requests after 30. */
const POLL_SECONDS = 20;
/** Number of ended rollouts that are remembered, to tell late requests that they have ended. */
const REMEMBERED = 4_096;

/** What an agent gets. */
interface Offer {
  readonly rollout_id: string;
  readonly task: Task;
}

/** An agent that waits for a task. */
interface Worker {
  /** Answers the agent's request; null: there is no task now. */
  give(offer: Offer | null): void;
  /** Whether it has closed the connection. */
  isGone: boolean;
}

/** A rollout that is being played. */
interface Open {
  readonly task: Task;
  readonly openai: AgentClient;
  resolve(reward: AgentReward): void;
  reject(error: Error): void;
}

const number = z.number("expected a finite number");
const numbers = z.record(z.string(), number).optional();
const reportSchema = z.union([
  z.object({ error: z.string() }),
  z.object({ reward: number.nullable(), solved: z.boolean().optional(), rewards: numbers, metrics: numbers }),
]);

/**
 * Rollouts that agents in other processes play. `place` is for the trainer, the other methods answer requests.
 *
 * @example
 * const rollouts = new Rollouts();
 * const server = await startServer(data, { port: 8000, rollouts });
 * await trainAgent({ model, tasks, place: rollouts.place, config });
 */
export class Rollouts {
  readonly #episodes: ((place: AgentPlace) => void)[] = [];
  readonly #workers: Worker[] = [];
  readonly #open = new Map<string, Open>();
  readonly #over = new Map<string, string>();
  #isClosed = false;

  /** Number of rollouts that are being played. */
  get playing(): number {
    return this.#open.size;
  }

  /** Waits for an agent that asks for a task. */
  readonly place = (signal: AbortSignal): Promise<AgentPlace> =>
    new Promise((resolve, reject) => {
      const leave = () => {
        this.#episodes.splice(this.#episodes.indexOf(take), 1);
        reject(signal.reason);
      };
      const take = (place: AgentPlace) => {
        signal.removeEventListener("abort", leave);
        resolve(place);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#episodes.push(take);
      this.#match();
    });

  /** POST /rollouts/next: waits for a task. 204: ask again; 410: the training has ended. */
  async next(signal: AbortSignal): Promise<Response> {
    const offer = this.#isClosed ? null : await this.#offered(signal);
    if (offer) return Response.json(offer);
    return this.#isClosed ? refused(410, "the training has ended") : new Response(null, { status: 204 });
  }

  /** POST /v1/chat/completions of a rollout. */
  async complete(id: string | undefined, body: string, signal: AbortSignal): Promise<Response> {
    if (id === undefined)
      return new LlmError(400, {
        message: "this server records rollouts: send the header x-rollout-id, with the id from POST /rollouts/next",
        code: "rollout_missing",
      }).response;
    const open = this.#open.get(id);
    if (!open) return new LlmError(404, { message: this.#unknown(id), code: "rollout_over" }).response;
    const { baseURL, fetch } = open.openai;
    return fetch(`${baseURL}/chat/completions`, { method: "POST", body, signal });
  }

  /** GET /v1/models. */
  models(): object {
    return { object: "list", data: [{ id: "policy", object: "model", created: 0, owned_by: "sqlenv" }] };
  }

  /** POST /rollouts/:id/reward: ends the rollout with `{reward}` or `{error}`. */
  report(id: string, body: string): Response {
    const open = this.#open.get(id);
    if (!open) return refused(this.#over.has(id) ? 410 : 404, this.#unknown(id));
    try {
      const report = reportSchema.parse(parseJson(body));
      if ("error" in report) open.reject(new Error(report.error));
      else open.resolve(resultOf(report));
      return Response.json({ rollout_id: id, task_id: open.task.id });
    } catch (error) {
      const reason = error instanceof z.ZodError ? shapeOf(body) : messageOf(error);
      const message = `the reward of task ${open.task.id} is not {"reward": number or null} or {"error": text}: ${reason}`;
      open.reject(new Error(message));
      return refused(400, message);
    }
  }

  /** Ends the training for agents: those that wait or ask later are told so. */
  close(): void {
    this.#isClosed = true;
    for (const worker of this.#workers.splice(0)) worker.give(null);
  }

  #offered(signal: AbortSignal): Promise<Offer | null> {
    return new Promise((resolve) => {
      const worker: Worker = {
        isGone: signal.aborted,
        give: (offer) => {
          clearTimeout(timer);
          signal.removeEventListener("abort", abort);
          resolve(offer);
        },
      };
      const leave = () => {
        const at = this.#workers.indexOf(worker);
        if (at >= 0) this.#workers.splice(at, 1)[0]!.give(null);
      };
      const abort = () => {
        worker.isGone = true;
        leave();
      };
      const timer = setTimeout(leave, POLL_SECONDS * 1000);
      signal.addEventListener("abort", abort, { once: true });
      this.#workers.push(worker);
      this.#match();
    });
  }

  /** Gives episodes that wait to agents that wait, both in order. */
  #match(): void {
    while (this.#episodes.length > 0 && this.#workers.length > 0)
      this.#episodes.shift()!(this.#placeOf(this.#workers.shift()!));
  }

  #placeOf(worker: Worker): AgentPlace {
    let isUsed = false;
    return {
      run: (task, openai) => {
        isUsed = true;
        return this.#play(task, openai, worker);
      },
      free: () => {
        if (isUsed) return;
        if (this.#isClosed) return worker.give(null);
        this.#workers.unshift(worker);
        this.#match();
      },
    };
  }

  /** Offers a task to an agent; resolves with the reward that it reports. */
  #play(task: Task, openai: AgentClient, worker: Worker): Promise<AgentReward> {
    const id = randomUUID();
    return new Promise<AgentReward>((resolve, reject) => {
      if (worker.isGone) return reject(new Error("it has closed the connection before it got the task"));
      openai.signal.addEventListener("abort", () => reject(openai.signal.reason), { once: true });
      this.#open.set(id, { task, openai, resolve, reject });
      worker.give({ rollout_id: id, task });
    }).finally(() => {
      this.#open.delete(id);
      this.#over.set(id, task.id);
      if (this.#over.size > REMEMBERED) this.#over.delete(this.#over.keys().next().value!);
    });
  }

  #unknown(id: string): string {
    const task = this.#over.get(id);
    if (task === undefined) return `there is no rollout ${id.slice(0, 100)}`;
    return `the rollout of task ${task} is over: it was rewarded, or had no reward within environment_timeout`;
  }
}

/** The agent's result, without the keys that the report does not have. */
function resultOf(report: Extract<z.infer<typeof reportSchema>, { reward: unknown }>): AgentResult {
  return Object.fromEntries(
    Object.entries(report).filter(([, value]) => value !== undefined),
  ) as unknown as AgentResult;
}

function refused(status: 400 | 404 | 410, detail: string): Response {
  return Response.json({ detail }, { status });
}

/** A body as a message shows it. */
function shapeOf(body: string): string {
  return body.length > 100 ? `${body.slice(0, 100)}…` : body;
}
