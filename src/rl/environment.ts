// An environment as the trainer sees it: tasks in splits; text in, text and reward out. A complete one:
//
//     class Echo implements TextEnvironment {
//       #wanted = "";
//       reset({ id, text }: Task) {
//         this.#wanted = id;
//         return { text };
//       }
//       step(reply: string) {
//         return { text: "", reward: reply.trim() === this.#wanted ? 1 : 0, done: true };
//       }
//     }
//     const tasks = [1, 2, 3, 4].map((n) => ({ id: `${n}`, text: `Say ${n}.` }));
//     await new GRPOTrainer({ model, env: () => new Echo(), tasks, config }).train();
//
// `env` and `tasks` become an `Environment` in text-environment.ts; SQL is another one (sql/sql-environment.ts).

import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { Exchange, Message, Prompt, Segment } from "../gym/players/index.ts";
import type { GRPOConfig } from "./config.ts";
import type { RewardFunction } from "./rewards.ts";
import type { Episode, JudgedEpisode } from "./run/records.ts";
import type { Milestone } from "./turn-credit.ts";

export type TaskSplit = "train" | "eval";

/** A task of the environment, such as a question. */
export interface Task {
  readonly id: string;
  /** The task in words, for reward functions and logs; the model gets what `reset` returns. */
  readonly text: string;
  /** Tasks of one group are correlated, so evaluation intervals are over groups. SQL: the database. @default the environment's name */
  readonly group?: string;
  /** Evaluation tasks only: whether training has tasks of the same group. @default false */
  readonly seen?: boolean;
  /** Tasks with the difficulty "easy" are the ones that `easy_steps` begins a training with. */
  readonly difficulty?: string;
  /** The expected answer, shown beside wrong ones; the trainer does not read it. */
  readonly answer?: string;
}

/** The first text of an episode. */
export interface TextReset {
  readonly text: string;
}

export interface TextStep {
  /** What the model reads next; ignored when done. */
  readonly text: string;
  /** Reward of this step; null if the episode cannot be scored. */
  readonly reward: number | null;
  readonly done: boolean;
  /** Whether the task was solved; read when done. @default as the environment's `solvedReward` says */
  readonly solved?: boolean;
  /** The reward by component, shown in transcripts and logged as `environment/reward/NAME`. The reward is `reward`. */
  readonly rewards?: Readonly<Record<string, number>>;
  /** Numbers to log as `environment/NAME`, averaged over steps, then over episodes. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/**
 * Plays one episode after another. A method that throws, takes longer than environment_timeout, or returns something else
 * ends the episode, which is logged with the error and not scored; environment_errors says whether the training continues.
 */
export interface TextEnvironment {
  /**
   * How the model's replies of the next episode are sampled and recorded. @default as one conversation of the texts, see
   * model-policy.ts
   */
  policy?(options: EpisodePolicyOptions): EpisodePolicy;
  /** Called before `reset`; waits for what an episode needs, such as a free session, for as long as it takes. */
  acquire?(): void | Promise<void>;
  reset(task: Task): TextReset | Promise<TextReset>;
  step(reply: string): TextStep | Promise<TextStep>;
  /** The log's record of the episode that has just ended. @default one made from the steps, see text-record.ts */
  record?(ending: Ending): EpisodeRecord | Promise<EpisodeRecord>;
  close?(): void | Promise<void>;
}

/** How the model is sampled in one episode. */
export interface EpisodePolicyOptions {
  readonly config: GRPOConfig;
  /** Maximum number of turns of the model. */
  readonly turns: number;
  /** Key of the samples' random numbers; the episode's seed is its last part. */
  readonly key: readonly (string | number)[];
  readonly seed: string | number;
  /** Take the likeliest token instead of sampling. @default false */
  readonly greedy?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The model in one episode: its replies, and all tokens that it read and wrote. */
export interface EpisodePolicy {
  readonly messages: readonly Message[];
  readonly segments: readonly Segment[];
  /** Number of tokens the model has generated. */
  readonly written: number;
  /** Whether the last turn was truncated, or no tokens are left. */
  readonly truncated: boolean;
  /** The model's reply to a text; null if its tokens are used up. */
  reply(text: string): Promise<{ readonly text: string } | null>;
}

/** How an episode ended. */
export interface Ending {
  /** Who played it. */
  readonly player: string;
  /** Why the episode was aborted; null if it was not. */
  readonly error: string | null;
}

/** What an environment is opened for; its limits may depend on it. */
export type EpisodePurpose = "training" | "evaluation" | "preview";

/** What the trainer needs of an environment. */
export interface Environment {
  readonly name: string;
  /** System prompt, examples and stop rule. */
  readonly prompt: EnvironmentPrompt;
  /** Every call returns the same tasks in the same order. */
  tasks(split: TaskSplit): readonly Task[];
  /** Opens an environment; several are open at once. */
  open(purpose: EpisodePurpose): TextEnvironment;
  /** An episode whose rewards add up to this is solved, where its last step does not say. @default to more than 0 */
  readonly solvedReward?: number | undefined;
  /** Seconds that environments have worked on other threads so far, summed over the threads. */
  readonly workSeconds?: number | undefined;
  /** Metrics of a batch, in addition to the ones that every environment has. */
  metrics?(episodes: readonly Episode[]): Readonly<Record<string, number>>;
  /** How near an episode came to its goal, and after how many turns. Needed by turn_credit. */
  milestone?(episode: Episode): Milestone;
  /**
   * For each episode of a group: failed turns of other episodes, for the teacher's context. Needed by
   * self_distillation.
   */
  failures?(group: readonly Episode[]): readonly (readonly Exchange[])[];
  /** Reward functions of a training that names none. @default the environment's own reward */
  readonly rewardFuncs?: readonly RewardFunction[];
  /** Judges evaluation episodes by other rules too. */
  judge?(records: readonly EpisodeRecord[]): Promise<JudgedEpisode[]>;
}

/**
 * The prompt of an environment. `id` names it in records, so another text needs another id; `stop` is the rule that ends
 * a reply early, null if only the model ends it.
 */
export type EnvironmentPrompt = Pick<Prompt, "id" | "system" | "examples" | "tools" | "stop">;

/**
 * A prompt that is a system prompt only.
 *
 * @example
 * const prompt = chatPrompt("echo-1", "Repeat the number.");
 */
export function chatPrompt(id: string, system: string): EnvironmentPrompt {
  return { id, system, examples: [], tools: null, stop: null };
}
