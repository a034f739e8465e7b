// An environment as the trainer sees it: tasks in splits; text in, text and reward out. SQL is one implementation
// (sql/sql-environment.ts). Another one, complete:
//
//     const echo: Environment = {
//       name: "echo",
//       prompt: chatPrompt("echo-1", "Repeat the number."),
//       tasks: (split) => (split === "train" ? [1, 2, 3] : [4]).map((n) => ({ id: `${n}`, text: `Say ${n}.` })),
//       open() {
//         let wanted = "";
//         return {
//           reset: ({ id, text }) => {
//             wanted = id;
//             return { text };
//           },
//           step: (reply) => ({ text: "", reward: reply.trim() === wanted ? 1 : 0, done: true }),
//         };
//       },
//     };
//     await new GRPOTrainer({ model, environment: echo, config, rewardFuncs: [rewardEnvironment] }).train();

import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { Exchange, Prompt } from "../gym/players/index.ts";
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
}

/**
 * Plays one episode after another. A method that throws ends the episode, which is logged with the error and not scored;
 * the training continues.
 */
export interface TextEnvironment {
  reset(task: Task): TextReset | Promise<TextReset>;
  step(reply: string): TextStep | Promise<TextStep>;
  /** The log's record of the episode that has just ended. @default one with the sum of the rewards, correct if it is above 0 */
  record?(ending: Ending): EpisodeRecord | Promise<EpisodeRecord>;
  close?(): void | Promise<void>;
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
  /** Judges evaluation episodes by other rules too. */
  judge?(records: readonly EpisodeRecord[]): Promise<JudgedEpisode[]>;
}

/** Its `id` names it in records and changes with its text; `stop` is the stop rule of replies, null if only the model ends them. */
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

/** The record of an episode in an environment that makes none itself: fields of SQL questions are null, empty or 0, except
 * difficulty ("easy") and answer_type ("string"), which must have a value. */
export function textRecord(
  environment: Environment,
  task: Task,
  played: Ending & { readonly split: TaskSplit; readonly rewards: readonly (number | null)[] },
): EpisodeRecord {
  const { player, error, split, rewards } = played;
  const isScored = error === null && rewards.every((reward) => reward !== null);
  const reward = isScored ? rewards.reduce<number>((sum, value) => sum + (value ?? 0), 0) : null;
  return {
    player,
    question_id: task.id,
    question: task.text,
    database_name: task.group ?? environment.name,
    difficulty: "easy",
    answer_type: "string",
    split,
    prompt: environment.prompt.id,
    seen: split === "train" || (task.seen ?? false),
    start: null,
    steps: [],
    correctness: reward === null ? null : reward > 0 ? 1 : 0,
    progress: null,
    operational: null,
    reward,
    step_count: rewards.length,
    done_reason: null,
    parse_failures: 0,
    repeats: 0,
    invalid: 0,
    error,
  };
}
