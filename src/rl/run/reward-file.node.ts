// Reward functions from a file (`reward_funcs`). They run in their own thread and are called like any others; TypeScript
// works on every supported Node.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Worker } from "node:worker_threads";
import { SqlEnvError, UsageError } from "../../errors.ts";
import { REWARD_FUNCTIONS, type RewardFunction } from "../rewards.ts";
import type { FromRewards, ToRewards } from "./reward-protocol.ts";

export interface RewardFile {
  /** The environment's three functions, then all functions that the file exports, sorted by name. */
  readonly functions: readonly RewardFunction[];
  /** Terminates the file's thread. */
  close(): Promise<void>;
}

/** Loads a file's functions; null gives only the environment's. */
export async function rewardFile(file: string | null): Promise<RewardFile> {
  if (file === null) return { functions: REWARD_FUNCTIONS, close: async () => {} };
  if (!existsSync(file)) throw new UsageError({ what: "no such reward file", value: file });
  const thread = new RewardThread(file);
  try {
    const functions = await thread.load();
    if (functions.length === 0)
      throw new UsageError({
        what: "the reward file exports no functions",
        value: file,
        remedy: "export function myReward(completions, context) { return completions.map(() => 0) }",
      });
    return { functions: [...REWARD_FUNCTIONS, ...functions], close: () => thread.close() };
  } catch (error) {
    await thread.close();
    throw error;
  }
}

interface Pending {
  readonly resolve: (reply: Extract<FromRewards, { scores: unknown }>) => void;
  readonly reject: (error: Error) => void;
}

class RewardThread {
  readonly #file: string;
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #names: readonly string[] = [];
  #next = 0;
  #batch: unknown;
  #failure: SqlEnvError | undefined;

  constructor(file: string) {
    this.#file = file;
    this.#worker = new Worker(new URL("./reward-thread.node.js", import.meta.url), { workerData: resolve(file) });
  }

  load(): Promise<readonly RewardFunction[]> {
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      const refuse = (why: string) =>
        reject(new UsageError({ what: `the reward file cannot be loaded: ${why}`, value: this.#file }));
      const onExit = (code: number) => refuse(`it ended its thread with exit code ${code}`);
      worker.once("exit", onExit);
      worker.once("error", ({ message }: Error) => refuse(message));
      worker.once("message", (message: FromRewards) => {
        if (!("loaded" in message)) {
          refuse("failed" in message ? message.failed : "stray" in message ? message.stray : "");
          return;
        }
        worker.off("exit", onExit);
        worker.on("message", (reply: FromRewards) => this.#hear(reply));
        worker.on("error", ({ message: why }: Error) => this.#fail(`failed: ${why}`));
        worker.on("exit", (code) => this.#fail(`ended its thread, as process.exit(${code}) does`));
        worker.unref(); // an idle thread must not keep the process alive
        const functions = message.loaded.map(({ exported, name }) => this.#proxy(exported, name));
        this.#names = functions.map(({ name }) => name);
        resolve(functions);
      });
    });
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Calls the function in the thread; forwards what it throws and logs. */
  #proxy(exported: string, ownName: string): RewardFunction {
    const call: RewardFunction = async (completions, { episodes, prompts, step, log_metric }) => {
      if (this.#failure) throw this.#failure;
      if (this.#batch !== episodes) this.#post({ batch: { completions, episodes, prompts } });
      this.#batch = episodes;
      const id = this.#next++;
      const { scores, logged } = await new Promise<Parameters<Pending["resolve"]>[0]>((resolve, reject) => {
        this.#pending.set(id, { resolve, reject });
        this.#worker.ref();
        this.#post({ id, exported, step });
      });
      for (const [name, value] of logged) log_metric(name, value);
      return scores as readonly (number | null)[];
    };
    // A default export may have no name of its own.
    const isNamed = ownName !== "" && ownName !== "default";
    const name = isNamed ? ownName : exported === "default" ? "custom_reward" : exported;
    return Object.defineProperty(call, "name", { value: name });
  }

  #post(message: ToRewards): void {
    this.#worker.postMessage(message);
  }

  #hear(message: FromRewards): void {
    if ("stray" in message) this.#fail(`failed in a stray promise or timer: ${message.stray}`);
    if (!("id" in message)) return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (this.#pending.size === 0) this.#worker.unref();
    if ("error" in message) pending?.reject(new Error(message.error));
    else pending?.resolve(message);
  }

  /** Fails all pending and future calls. */
  #fail(what: string): void {
    const functions =
      this.#names.length === 1 ? `reward function ${this.#names[0]}` : `reward functions ${this.#names.join(", ")}`;
    this.#failure ??= new SqlEnvError("reward_failed", { what: `${functions} ${what}`, value: this.#file });
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
    this.#worker.unref();
  }
}
