// The queue of questions for trainings that do not ask a fixed number in each step: every epoch's permutation, one after
// the other, without the questions whose last group had nothing to teach.
import { epochOrder, type OrderOptions } from "./order.ts";
import type { QuestionPrompt } from "./prompts.ts";

/** A question of the queue. */
export interface QueuedQuestion {
  readonly prompt: QuestionPrompt;
  readonly epoch: number;
  /** Position in the queue after it. */
  readonly next: number;
}

/** How a question's last group went: the epoch it was asked in, and how many of its scored episodes were right. */
export type QuestionOutcome = readonly [epoch: number, right: number, scored: number];
export type QuestionOutcomes = Readonly<Record<string, QuestionOutcome>>;

/** What a checkpoint holds of the queue. */
export interface QueueState {
  /** Questions taken from it, those that were skipped included. */
  readonly position: number;
  /** By question id. */
  readonly outcomes: QuestionOutcomes;
}

export interface QueueOptions extends Pick<OrderOptions, "shuffle" | "seed"> {
  readonly outcomes: QuestionOutcomes;
  /** Epochs for which a question is skipped. */
  readonly skip_solved: number;
}

/** The questions from a position on, without end: no question is skipped for more than `skip_solved` epochs. */
export function* questionsFrom(
  position: number,
  prompts: readonly QuestionPrompt[],
  { shuffle, seed, outcomes, skip_solved }: QueueOptions,
): Generator<QueuedQuestion, never> {
  for (let at = position; ; ) {
    const epoch = Math.floor(at / prompts.length);
    const [order] = epochOrder(prompts.length, epoch, { chunk: prompts.length, shuffle, seed });
    for (; at < (epoch + 1) * prompts.length; at++) {
      const prompt = prompts[order![at % prompts.length]!]!;
      if (!isSkipped(outcomes[prompt.question_id], epoch, skip_solved)) yield { prompt, epoch, next: at + 1 };
    }
  }
}

/** Right throughout: skipped for so many epochs; wrong throughout: for half as many, since the model may have learned it meanwhile. */
export function isSkipped(outcome: QuestionOutcome | undefined, epoch: number, skip_solved: number): boolean {
  if (!outcome) return false;
  const [asked, right, scored] = outcome;
  const epochs = right === scored ? skip_solved : right === 0 ? Math.floor(skip_solved / 2) : 0;
  return epoch > asked && epoch - asked <= epochs;
}

/** How a group went; null where nothing could be scored. */
export function outcomeOf(
  episodes: readonly { readonly correctness: 0 | 1 | null }[],
  epoch: number,
): QuestionOutcome | null {
  const scored = episodes.filter(({ correctness }) => correctness !== null).length;
  return scored === 0 ? null : [epoch, episodes.filter(({ correctness }) => correctness === 1).length, scored];
}
