// The thread that runs a file's reward functions: a function that loops, exits or leaves a rejected promise cannot
// take the training down.
import { register } from "node:module";
import { pathToFileURL } from "node:url";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../../errors.ts";
import { checkMetricName, type RewardFunction } from "../rewards.ts";
import type { FromRewards, RewardBatch, ToRewards } from "./reward-protocol.ts";

const port = parentPort!;
const say = (message: FromRewards) => port.postMessage(message);
const stray = (error: unknown) => say({ stray: messageOf(error) });
process.on("unhandledRejection", stray);
process.on("uncaughtException", stray);

const functions = new Map<string, RewardFunction>();
let batch: RewardBatch = { completions: [], episodes: [], prompts: [] };

port.on("message", async (message: ToRewards) => {
  if ("batch" in message) {
    batch = message.batch;
    return;
  }
  const { id, exported, step } = message;
  const { completions, episodes, prompts } = batch;
  const logged: [string, number][] = [];
  const log_metric = (name: string, value: number) => {
    checkMetricName(name);
    logged.push([name, value]);
  };
  try {
    const scores = await functions.get(exported)!(completions, { episodes, prompts, step, log_metric });
    say({ id, scores, logged }); // throws if the scores cannot be sent, such as a function
  } catch (error) {
    say({ id, error: messageOf(error) });
  }
});

try {
  const file = workerData as string;
  if (/\.[cm]?ts$/.test(file) && !(process.features as { typescript?: unknown }).typescript)
    register(new URL("./strip-types.node.js", import.meta.url));
  const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  for (const [exported, value] of Object.entries(module))
    if (typeof value === "function") functions.set(exported, value as RewardFunction);
  say({ loaded: [...functions].map(([exported, { name }]) => ({ exported, name })) });
} catch (error) {
  say({ failed: messageOf(error) });
}
