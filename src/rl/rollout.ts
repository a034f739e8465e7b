// Rollouts: the model plays a batch of tasks, all episodes at once. The engine samples the turns that are due in one
// batch; environments step in between, or at the same time if they run on other threads.
import { messageOf, SqlEnvError } from "../errors.ts";
import { EpisodeBoundary } from "../gym/episode-boundary.ts";
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import { checkReset, checkStep } from "./check-returned.ts";
import type { GRPOConfig } from "./config.ts";
import type { Environment, EpisodePolicy, Task, TaskSplit, TextEnvironment } from "./environment.ts";
import { policyFor } from "./model-policy.ts";
import type { Episode } from "./run/records.ts";
import { type PlayedStep, textRecord } from "./text-record.ts";
import { RolloutClock } from "./timing.ts";
import type { SamplingModel } from "./trainable-model.ts";

export interface RolloutOptions {
  readonly model: SamplingModel;
  readonly config: GRPOConfig;
  /** Key of the samples' random numbers: the same key plays the same episodes. @default [seed, "rollout"] */
  readonly key?: readonly (string | number)[] | undefined;
  /** Called as each episode ends. */
  readonly onEpisode?: ((done: number, total: number) => void) | undefined;
  /** A clock shared by concurrent rollouts. @default a new one */
  readonly clock?: RolloutClock | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Plays an episode for each task; give a task several times to play a group. Episodes are in the order of the tasks.
 * An episode that the environment could not score has null rewards; an engine's failure is thrown.
 */
export async function rollOut(
  environment: Environment,
  tasks: readonly Task[],
  { model, config, key = [config.seed, "rollout"], onEpisode, clock = new RolloutClock(), signal }: RolloutOptions,
): Promise<Episode[]> {
  let done = 0;
  const episodes = tasks.map(async (task, index): Promise<Episode> => {
    const episodeSignal = signal && AbortSignal.any([signal]); // one per episode, since a signal collects listeners
    const opened = environment.open("training");
    const turns = config.step_budget;
    const own = { model, prompt: environment.prompt, config, turns, key, seed: index, signal: episodeSignal };
    const policy = policyFor(opened, own);
    const env = clock.environment(opened);
    const timeout = config.environment_timeout;
    const played = playTask(env, task, policy, {
      environment,
      split: "train",
      turns,
      timeout,
      clock,
      signal: episodeSignal,
    });
    const close = () => closeEnvironment(env, timeout);
    const failure = await played.then(close, close);
    const record = withError(await played, failure);
    if (config.environment_errors === "stop" && record.error !== null) throw stopped(environment, task, record.error);
    onEpisode?.(++done, tasks.length);
    const { messages, segments, truncated, written: completion_tokens } = policy;
    return { ...record, messages, segments, truncated, completion_tokens };
  });
  const ended = await Promise.allSettled(episodes); // none is left running when this returns
  return ended.map((end) => {
    if (end.status === "rejected") throw end.reason;
    return end.value;
  });
}

function stopped({ name }: Environment, { id }: Task, error: string): SqlEnvError {
  return new SqlEnvError("environment_failed", {
    what: `environment ${name} failed on task ${id}: ${error}`,
    remedy: "fix it and resume, or set environment_errors to skip, which leaves such episodes out",
  });
}

export interface PlayTaskOptions {
  readonly environment: Environment;
  readonly split: TaskSplit;
  /** Maximum number of turns of the model. */
  readonly turns: number;
  /** Seconds that the environment has for each reply; null: no limit. @default null */
  readonly timeout?: number | null;
  readonly clock?: RolloutClock;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Plays one episode. Errors of the environment are recorded with it, all others are thrown. This loop is not gym's
 * `playEpisode`, because a text environment has no actions, observations or rules; the two share the error boundary.
 */
export async function playTask(
  env: TextEnvironment,
  task: Task,
  policy: EpisodePolicy,
  { environment, split, turns, timeout = null, clock, signal }: PlayTaskOptions,
): Promise<EpisodeRecord> {
  const steps: PlayedStep[] = [];
  let first: string | null = null;
  let reward = 0;
  const boundary = new EpisodeBoundary(signal);
  const limited = <T>(reply: T | PromiseLike<T>) =>
    boundary.wait(isThenable(reply) ? within(timeout, Promise.resolve(reply)) : reply);
  let error: string | null = null;
  try {
    if (env.acquire) await boundary.call(() => boundary.wait(env.acquire!()));
    let { text } = await boundary.call(async () => checkReset(environment, task, await limited(env.reset(task))));
    first = text;
    for (let turn = 0; turn < turns; turn++) {
      const sample = policy.reply(text);
      const reply = await boundary.wait(clock?.sampled(sample) ?? sample);
      if (!reply) break;
      const step = await boundary.call(async () => checkStep(environment, task, await limited(env.step(reply.text))));
      steps.push({ reply: reply.text, step });
      reward += step.reward ?? 0;
      if (!Number.isFinite(reward)) await boundary.call(() => Promise.reject(tooLarge(environment, task)));
      text = step.text;
      if (step.done) break;
    }
  } catch (thrown) {
    error = boundary.errorOf(thrown);
  } finally {
    boundary.end();
  }
  const ending = { player: "model", error };
  if (!env.record) return textRecord(environment, task, { ...ending, split, turns, first, steps });
  const record = await env.record(ending);
  if (record.error !== null && signal?.aborted) throw signal.reason;
  return record;
}

/** Closes an environment. Resolves with why that failed; null if it did not. */
export async function closeEnvironment(env: TextEnvironment, timeout: number | null): Promise<string | null> {
  try {
    const closing = env.close?.();
    if (isThenable(closing)) await within(Math.min(timeout ?? CLOSE_SECONDS, CLOSE_SECONDS), Promise.resolve(closing));
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The record of an episode whose environment failed after it. */
function withError(record: EpisodeRecord, error: string | null): EpisodeRecord {
  if (error === null || record.error !== null) return record;
  return {
    ...record,
    error: `close() failed: ${error}`,
    correctness: null,
    progress: null,
    operational: null,
    reward: null,
  };
}

function tooLarge({ name }: Environment, { id }: Task): Error {
  return new Error(`environment ${name}, task ${id}: the rewards of its steps add up to more than a number can hold`);
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { readonly then?: unknown } | null | undefined)?.then === "function";
}

/** Seconds that closing an environment may take: an interrupted training waits for it. */
const CLOSE_SECONDS = 60;

/** Rejects when a promise takes longer. @param seconds null: no limit */
function within<T>(seconds: number | null, promise: Promise<T>): Promise<T> {
  if (seconds === null) return promise;
  let timer: ReturnType<typeof setTimeout>;
  const late = new Promise<never>((_, reject) => {
    const tooLate = () => reject(new Error(`it took longer than environment_timeout allows: ${seconds} seconds`));
    timer = setTimeout(tooLate, 1000 * seconds);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
