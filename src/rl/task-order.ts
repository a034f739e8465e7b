// Which tasks each batch has: TRL's order (RepeatSampler). Tasks are permuted with the seed and cut into chunks; an
// incomplete last chunk is left out; each task of a chunk is played num_generations times in a row.
import { QuestionLoadError } from "../errors.ts";
import { random } from "../random.ts";
import type { Task } from "./environment.ts";

export interface OrderOptions {
  /** Tasks of a batch. */
  readonly chunk: number;
  readonly shuffle: boolean;
  readonly seed: number;
}

/** The task indices of an epoch's batches. */
export function epochOrder(tasks: number, epoch: number, { chunk, shuffle, seed }: OrderOptions): number[][] {
  const all = Array.from({ length: tasks }, (_, i) => i);
  const order = shuffle ? random("question order", seed, epoch).shuffle(all) : all;
  return Array.from({ length: Math.floor(tasks / chunk) }, (_, i) => order.slice(i * chunk, (i + 1) * chunk));
}

/** The task indices of one batch, by its number since the training began. */
export function batchAt(batch: number, tasks: number, options: OrderOptions): number[] {
  const perEpoch = Math.floor(tasks / options.chunk);
  return epochOrder(tasks, Math.floor(batch / perEpoch), options)[batch % perEpoch]!;
}

/** Each item `times` times in a row: one group per task. */
export function repeated<T>(items: readonly T[], times: number): T[] {
  return items.flatMap((item) => Array.from({ length: times }, () => item));
}

/** The easy tasks, which a training may begin with. */
export function easyTasks(tasks: readonly Task[], environment: string): Task[] {
  const easy = tasks.filter(({ difficulty }) => difficulty === "easy");
  if (easy.length > 0) return easy;
  throw new QuestionLoadError({
    what: "no easy training questions in",
    value: environment,
    remedy: "leave easy_steps at 0, or let difficulty_filter have easy in it",
  });
}
