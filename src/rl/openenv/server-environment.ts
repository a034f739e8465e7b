// Any OpenEnv server as the trainer's environment: replies become actions by a template, observations become text.
import { SqlEnvError } from "../../errors.ts";
import {
  describeServer,
  type JsonObject,
  type OpenEnvSession,
  type SessionOptions,
  type SessionReply,
} from "../../gym/client/index.ts";
import { random } from "../../random.ts";
import type { Environment, Task, TextEnvironment, TextReset, TextStep } from "../environment.ts";
import { createTextEnvironment } from "../text-environment.ts";
import { type ActionTemplate, checkTemplate, defaultTemplate, parseTemplate } from "./action-template.ts";
import { defaultField, observationText } from "./observation-text.ts";
import { isOutage, SessionPool } from "./session-pool.ts";
import { resetOptions, type ServerTask, trainerTasks } from "./tasks.ts";

export interface ConnectOptions extends Pick<SessionOptions, "apiKey" | "socket"> {
  readonly tasks: readonly ServerTask[];
  /** System prompt. @default none */
  readonly system?: string | null | undefined;
  /** JSON with a place for the model's reply, such as {"message": "{text}"}. @default one for the server's only field */
  readonly action_template?: string | null | undefined;
  /** The field of observations that the model reads. @default the only text; where there are several, all fields as JSON */
  readonly observation_field?: string | null | undefined;
  /** Reward of a reply that is no valid action. @default 0 */
  readonly invalid_action_reward?: number | undefined;
  /** An episode is solved if its rewards add up to at least this. @default more than 0 */
  readonly solved_reward?: number | null | undefined;
  /** Seconds to wait for each reply, and for a lost connection to be restored; null: no limit. @default 600 */
  readonly environment_timeout?: number | null | undefined;
  /** Seed of the held-out tasks, and of resets without one. @default 0 */
  readonly seed?: number | undefined;
  /** Called with notes for people, one line each. */
  readonly onNote?: ((text: string) => void) | undefined;
}

/** An environment on a server; `close` ends its sessions. */
export interface ServerEnvironment extends Environment {
  readonly url: string;
  readonly serverTasks: readonly ServerTask[];
  /** The template that is used, as JSON. */
  readonly action_template: string;
  /** The field that is read; null: the whole observation as JSON. */
  readonly observation_field: string | null;
  close(): void;
}

const MAX_SECONDS = 2_147_483; // the longest time of a timer

/** How often a reset is sent again after the connection was lost. */
const RESETS = 3;

/**
 * Connects to an OpenEnv server and checks that actions and observations are as the settings say.
 *
 * @example
 * const tasks = [1, 2, 3].map((seed) => ({ id: `${seed}`, reset: { seed } }));
 * const environment = await connectEnvironment("http://localhost:8000", { tasks, action_template: '{"message": "{text}"}' });
 * await new GRPOTrainer({ model, environment, config }).train();
 * environment.close();
 */
export async function connectEnvironment(url: string, options: ConnectOptions): Promise<ServerEnvironment> {
  const { tasks, apiKey, socket, environment_timeout = 600, seed = 0, onNote, invalid_action_reward = 0 } = options;
  const described = await describeServer(url, { apiKey });
  const { action_template, observation_field } = options;
  const template = action_template ? parseTemplate(action_template) : defaultTemplate(described.action);
  checkTemplate(template, described.action);
  const field = observation_field ?? defaultField(described.observation);
  const seconds = Math.min(environment_timeout ?? MAX_SECONDS, MAX_SECONDS);
  const pool = new SessionPool(url, {
    ...{ apiKey, onNote },
    ...(socket && { socket }),
    connectSeconds: Math.min(10, seconds),
    replySeconds: seconds,
    patience: environment_timeout,
  });
  const resets = new Map(tasks.map((task) => [task.id, resetOptions(task, seedOf(task.id, seed))]));
  const report = reporter(onNote);
  const play = { name: described.name, pool, template, field, resets, invalid_action_reward, report };
  const environment = createTextEnvironment({
    env: () => new ServerEpisodes(play),
    tasks: trainerTasks(tasks),
    system: options.system ?? "",
    name: described.name,
    solvedReward: options.solved_reward ?? undefined,
    seed,
  });
  const connected = {
    ...environment,
    url,
    serverTasks: tasks,
    action_template: template.text,
    observation_field: field,
    close: () => pool.close(),
  };
  try {
    await tryTask({ ...play, report: () => {} }, connected.tasks("train")[0]!);
  } catch (error) {
    pool.close();
    throw error;
  }
  return connected;
}

/** Resets the server for one task, so that errors are reported before a model is loaded. */
async function tryTask(play: Play, task: Task): Promise<void> {
  const env = new ServerEpisodes(play);
  try {
    await env.acquire();
    await env.reset(task);
  } finally {
    env.close();
  }
}

function seedOf(id: string, seed: number): number {
  return random("reset", seed, id).int(0, 2 ** 31 - 1);
}

interface Play {
  readonly name: string;
  readonly pool: SessionPool;
  readonly template: ActionTemplate;
  readonly field: string | null;
  readonly resets: ReadonlyMap<string, JsonObject>;
  readonly invalid_action_reward: number;
  /** Called with the reason when an episode fails. */
  readonly report: (error: SqlEnvError) => void;
}

/** Maximum kinds of errors that become notes; the records have all of them. */
const TOLD = 5;

/** Makes a function that passes each kind of error on as a note, once. */
function reporter(onNote?: (text: string) => void): (error: SqlEnvError) => void {
  const told = new Set<unknown>();
  return (error) => {
    const { what: kind } = error.cause as SqlEnvError;
    if (told.has(kind) || told.size >= TOLD) return;
    told.add(kind);
    onNote?.(`an episode cannot be scored: ${error.message}`);
  };
}

/** Plays one episode after another, each in a session of its own or in the last one's. */
class ServerEpisodes implements TextEnvironment {
  readonly #play: Play;
  #session: OpenEnvSession | undefined;
  #task = "";
  #isClosed = false;

  constructor(play: Play) {
    this.#play = play;
  }

  async acquire(): Promise<void> {
    if (this.#session && !(this.#session.isOpen && !this.#session.isBusy)) this.#release(); // it failed in the last episode
    if (this.#session) return;
    this.#session = await this.#play.pool.acquire();
    if (this.#isClosed) this.#release(); // nobody waits for it any more
  }

  async reset(task: Task): Promise<TextReset> {
    this.#task = task.id;
    return this.#named(async () => {
      const { observation, done } = await this.#start(this.#play.resets.get(task.id) ?? {});
      if (done) throw failed("the episode was over before the first action");
      return { text: task.text === "" ? observationText(observation, this.#play.field) : task.text };
    });
  }

  async step(reply: string): Promise<TextStep> {
    const { template } = this.#play;
    const filled = template.fill(reply);
    if ("problem" in filled) return this.#invalid(filled.problem);
    return this.#named(async () => {
      try {
        return this.#read(await this.#current().step(filled.action));
      } catch (error) {
        const problem = refusal(error, template);
        if (problem === undefined) throw error;
        return this.#invalid(problem);
      }
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  #release(): void {
    if (this.#session) this.#play.pool.release(this.#session);
    this.#session = undefined;
  }

  /** A reset is sent again if the connection was lost: the session may have been closed since its last episode. */
  async #start(options: JsonObject): Promise<SessionReply> {
    for (let attempt = 1; ; attempt++) {
      await this.acquire();
      try {
        return await this.#current().reset(options);
      } catch (error) {
        if (attempt === RESETS || !isOutage(error) || (error as SqlEnvError).code === "timeout") throw error;
        this.#release();
      }
    }
  }

  #current(): OpenEnvSession {
    if (this.#session) return this.#session;
    throw failed("no episode is running");
  }

  /** A step's reply. A step may come without reward, the last one may not: NaN is sent as null. */
  #read({ observation, reward, done }: SessionReply): TextStep {
    const metrics = { invalid_action: 0 };
    if (!done) return { text: observationText(observation, this.#play.field), reward: reward ?? 0, done, metrics };
    this.#release(); // another episode may have the session
    if (reward === null) throw failed("the server sent no reward at the end of the episode (NaN is sent as null)");
    return { text: "", reward, done, metrics };
  }

  #invalid(problem: string): TextStep {
    const reward = this.#play.invalid_action_reward;
    return { text: problem, reward, done: false, metrics: { invalid_action: 1 } };
  }

  /** Adds the environment's name and the task's id to errors. */
  async #named<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SqlEnvError)) throw error;
      const { what, value } = error;
      const remedy = isOutage(error) ? undefined : error.remedy; // another episode connects again
      const where = `environment ${this.#play.name}, task ${this.#task}`;
      const named = new SqlEnvError(error.code, { what: `${where}: ${what}`, value, remedy, cause: error });
      this.#play.report(named);
      throw named;
    }
  }
}

/** One of a server's validation errors. */
interface FieldError {
  readonly loc?: readonly (string | number)[];
  readonly msg?: string;
}

/**
 * What the model is told if the server refuses an action because of what comes from the reply. Throws if the template's
 * own part is refused, which no reply can repair; undefined for other errors.
 */
function refusal(error: unknown, template: ActionTemplate): string | undefined {
  if (!(error instanceof SqlEnvError) || error.code !== "VALIDATION_ERROR") return undefined;
  const errors = (Array.isArray(error.cause) ? error.cause : []) as readonly FieldError[];
  const shown = ({ loc = [], msg = "invalid" }: FieldError) => `${loc.join(".") || "action"}: ${msg}`;
  const own = errors.find(({ loc = [] }) => !template.isFromReply(loc));
  if (errors.length > 0 && !own) return `Error: ${errors.map(shown).join("; ")}`;
  throw new SqlEnvError("environment_failed", {
    what: "the server refuses the action's field",
    value: own ? shown(own) : error.message,
    remedy: `action_template is ${template.text}`,
  });
}

function failed(what: string): SqlEnvError {
  return new SqlEnvError("environment_failed", { what });
}
