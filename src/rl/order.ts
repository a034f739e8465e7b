// Which questions each generation asks: TRL's order (RepeatSampler). Questions are permuted with the seed and cut into
// chunks; an incomplete last chunk is left out; each question of a chunk is asked num_generations times in a row.
import { random } from "../random.ts";

export interface OrderOptions {
  /** Questions a generation asks. */
  readonly chunk: number;
  readonly shuffle: boolean;
  readonly seed: number;
}

/** The question numbers of an epoch's generations. */
export function epochOrder(questions: number, epoch: number, { chunk, shuffle, seed }: OrderOptions): number[][] {
  const all = Array.from({ length: questions }, (_, i) => i);
  const order = shuffle ? random("question order", seed, epoch).shuffle(all) : all;
  return Array.from({ length: Math.floor(questions / chunk) }, (_, i) => order.slice(i * chunk, (i + 1) * chunk));
}

/** The question numbers of one generation, by its number since the training began. */
export function generationAt(generation: number, questions: number, options: OrderOptions): number[] {
  const perEpoch = Math.floor(questions / options.chunk);
  return epochOrder(questions, Math.floor(generation / perEpoch), options)[generation % perEpoch]!;
}

/** Each item `times` times in a row: a group for each question. */
export function repeated<T>(items: readonly T[], times: number): T[] {
  return items.flatMap((item) => Array.from({ length: times }, () => item));
}
