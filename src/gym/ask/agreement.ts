// How many samples agree with an answer, and whether it should be trusted.
import type { DoneReason } from "../env/index.ts";
import { type FoundAnswer, sameAnswer } from "./answer.ts";

/** Below this share of agreeing samples, an answer is unsure. */
export const MIN_AGREEMENT = 0.6;

/** Why an answer is unsure. */
export const UNSURE_REASONS = [
  "no_answer", // the episode ended without one
  "no_rows", // its query found nothing
  "not_in_results", // a value of the answer was in no result
  "samples_disagree", // fewer samples agree than MIN_AGREEMENT
] as const;

export type UnsureReason = (typeof UNSURE_REASONS)[number];

export interface Unsure {
  readonly reason: UnsureReason;
  /** The reason in words, such as "1 of 5 samples agrees". */
  readonly text: string;
}

/** An answer and the samples that gave an equal one. */
export interface AnswerGroup {
  /** Null for episodes that ended without an answer. */
  readonly answer: string | null;
  readonly sql: string | null;
  /** Number of samples with this answer; the greedy episode is not one of them. */
  readonly samples: number;
}

/** How many samples of a question agree. */
export interface Agreement {
  /** Share of the samples that gave the same answer; null without samples. */
  readonly agreement: number | null;
  /** The given answer first, then those of other samples, the most frequent first. */
  readonly answers: readonly AnswerGroup[];
}

/** Compares the samples' answers with the given one. */
export function measureAgreement(given: FoundAnswer, samples: readonly FoundAnswer[]): Agreement {
  const groups = [{ first: given, samples: 0 }];
  for (const sample of samples) {
    const equal = ({ first }: { first: FoundAnswer }) =>
      sameAnswer(first, sample) || (first.text === null && sample.text === null);
    const group = groups.find(equal);
    if (group) group.samples++;
    else groups.push({ first: sample, samples: 1 });
  }
  const [own, ...others] = groups;
  return {
    agreement: samples.length === 0 ? null : own!.samples / samples.length,
    answers: [own!, ...others.sort((a, b) => b.samples - a.samples)].map(({ first, samples }) => ({
      answer: first.text,
      sql: first.sql,
      samples,
    })),
  };
}

export interface Evidence extends Agreement {
  readonly given: FoundAnswer;
  readonly done_reason: DoneReason | null;
  readonly minAgreement: number;
}

/** The first reason not to trust an answer; null if there is none. */
export function whyUnsure({ given, done_reason, minAgreement, agreement, answers }: Evidence): Unsure | null {
  if (given.text === null) return { reason: "no_answer", text: NO_ANSWER[done_reason ?? "stopped"] };
  if (given.result?.rows.every((row) => row.every((cell) => cell === null)))
    return {
      reason: "no_rows",
      text: given.result.rows.length === 0 ? "the query found no rows" : "the query found nothing but NULL",
    };
  if (given.support === "none") return { reason: "not_in_results", text: "the answer is in no result that was seen" };
  if (agreement === null || agreement >= minAgreement) return null;
  const total = answers.reduce((sum, { samples }) => sum + samples, 0);
  return { reason: "samples_disagree", text: agreementText(answers[0]!.samples, total) };
}

const NO_ANSWER: Readonly<Record<DoneReason | "stopped", string>> = {
  answered: "there is no answer",
  budget: "the episode ended without an answer: no steps left",
  stuck: "the episode ended without an answer: the same action failed too often",
  stopped: "the episode ended without an answer: the model's context or tokens are used up",
};

/** Such as "4 of 5 samples agree". */
export function agreementText(agree: number, samples: number): string {
  return `${agree} of ${samples} ${samples === 1 ? "sample" : "samples"} ${agree === 1 ? "agrees" : "agree"}`;
}
