// The queue of tasks for trainings whose steps do not play a fixed number of them: the permutations of all epochs in
// sequence. Tasks whose last group was all right or all wrong are skipped for some epochs.
import type { Task } from "./environment.ts";
import { epochOrder, type OrderOptions } from "./task-order.ts";

/** A task of the queue. */
export interface QueuedTask {
  readonly task: Task;
  readonly epoch: number;
  /** Position in the queue after it. */
  readonly next: number;
}

/** Result of a task's last group: the epoch it was played in, and how many of its scored episodes were right. */
export type TaskOutcome = readonly [epoch: number, right: number, scored: number];
export type TaskOutcomes = Readonly<Record<string, TaskOutcome>>;

/** The state of the queue in a checkpoint. */
export interface QueueState {
  /** Number of tasks taken from the queue, including skipped ones. */
  readonly position: number;
  /** By task id. */
  readonly outcomes: TaskOutcomes;
}

export interface QueueOptions extends Pick<OrderOptions, "shuffle" | "seed"> {
  readonly outcomes: TaskOutcomes;
  /** Epochs for which a solved task is skipped. */
  readonly skip_solved: number;
}

/** The endless sequence of tasks from a position on; none is skipped for more than `skip_solved` epochs. */
export function* tasksFrom(
  position: number,
  tasks: readonly Task[],
  { shuffle, seed, outcomes, skip_solved }: QueueOptions,
): Generator<QueuedTask, never> {
  for (let at = position; ; ) {
    const epoch = Math.floor(at / tasks.length);
    const [order] = epochOrder(tasks.length, epoch, { chunk: tasks.length, shuffle, seed });
    for (; at < (epoch + 1) * tasks.length; at++) {
      const task = tasks[order![at % tasks.length]!]!;
      if (!isSkipped(outcomes[task.id], epoch, skip_solved)) yield { task, epoch, next: at + 1 };
    }
  }
}

/**
 * A task that was all right is skipped for `skip_solved` epochs; one that was all wrong for half as many, since the
 * model may have learned it meanwhile.
 */
export function isSkipped(outcome: TaskOutcome | undefined, epoch: number, skip_solved: number): boolean {
  if (!outcome) return false;
  const [asked, right, scored] = outcome;
  const epochs = right === scored ? skip_solved : right === 0 ? Math.floor(skip_solved / 2) : 0;
  return epoch > asked && epoch - asked <= epochs;
}

/** The outcome of a group; null if no episode could be scored. */
export function outcomeOf(
  episodes: readonly { readonly correctness: 0 | 1 | null }[],
  epoch: number,
): TaskOutcome | null {
  const scored = episodes.filter(({ correctness }) => correctness !== null).length;
  return scored === 0 ? null : [epoch, episodes.filter(({ correctness }) => correctness === 1).length, scored];
}
