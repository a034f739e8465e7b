// Rollouts: the model plays a batch of tasks, all episodes at once. The engine samples the turns that are due in one
// batch; environments step in between, or at the same time if they run on other threads.
import { EpisodeBoundary } from "../gym/episode-boundary.ts";
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { TextPolicy } from "../gym/players/index.ts";
import type { GRPOConfig } from "./config.ts";
import { type Environment, type Task, type TaskSplit, type TextEnvironment, textRecord } from "./environment.ts";
import { modelPolicy } from "./model-policy.ts";
import type { Episode } from "./run/records.ts";
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
    const env = clock.environment(environment.open("training"));
    const policy = modelPolicy({ model, prompt: environment.prompt, config, key, seed: index, signal: episodeSignal });
    const options = { environment, split: "train", turns: config.step_budget, clock, signal: episodeSignal } as const;
    const record = await playTask(env, task, policy, options).finally(() => env.close?.());
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

export interface PlayTaskOptions {
  readonly environment: Environment;
  readonly split: TaskSplit;
  /** Maximum number of turns of the model. */
  readonly turns: number;
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
  policy: TextPolicy,
  { environment, split, turns, clock, signal }: PlayTaskOptions,
): Promise<EpisodeRecord> {
  const rewards: (number | null)[] = [];
  const boundary = new EpisodeBoundary(signal);
  let error: string | null = null;
  try {
    let { text } = await boundary.call(() => boundary.wait(env.reset(task)));
    for (let turn = 0; turn < turns; turn++) {
      const sample = policy.reply(text);
      const reply = await boundary.wait(clock?.sampled(sample) ?? sample);
      if (!reply) break;
      const step = await boundary.call(() => boundary.wait(env.step(reply.text)));
      rewards.push(step.reward);
      text = step.text;
      if (step.done) break;
    }
  } catch (thrown) {
    error = boundary.errorOf(thrown);
  } finally {
    boundary.end();
  }
  const ending = { player: "model", error };
  if (!env.record) return textRecord(environment, task, { ...ending, split, rewards });
  const record = await env.record(ending);
  if (record.error !== null && signal?.aborted) throw signal.reason;
  return record;
}
