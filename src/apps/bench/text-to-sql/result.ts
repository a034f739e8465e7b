// A benchmark's result: model, data, protocol, scores and each question's outcome.
import { type DataSet, evalIdsSha256, idsSha256, type RejectionReason } from "../../../gym/data/index.ts";
import type { QuestionOutcome } from "./outcomes.ts";
import { type BenchScores, scoresOf } from "./scores.ts";

/** Incremented when the meaning of a field changes. */
export const BENCH_FORMAT = "sqlenv-bench-1";

/** How the questions were asked. Results under different protocols measure different things. */
export interface Protocol {
  readonly benchmark: "spider" | "bird";
  /** Whether the model must explore the database, or is given the schema and writes one query. */
  readonly schema: "unknown" | "given";
  /** Id of the environment's rules; null if the schema is given. */
  readonly rules: string | null;
  /** Id of the prompt; null for players without one. */
  readonly prompt: string | null;
  readonly step_budget: number | null;
  /** Attempts per question; with several, the majority decides. */
  readonly votes: number;
  readonly temperature: number;
  readonly max_tokens: number;
  /** Whether BIRD's questions include their evidence; null for Spider, which has none. */
  readonly evidence: boolean | null;
  /** Version and number of perturbed twins, such as `twins-1x2`; null if there are none. */
  readonly twins: string | null;
}

/** Which questions were asked. */
export interface AskedData {
  readonly name: string;
  /** Hash of the ids of all evaluation questions in the data set. */
  readonly eval_ids_sha256: string;
  /** Hash of the ids of the questions asked, which may be a subset. */
  readonly ids_sha256: string;
  /** Hash of the ids, texts and gold queries of the questions asked. */
  readonly content_sha256: string;
  readonly questions: number;
  readonly databases: number;
  /** Number of evaluation questions that the data set rejected, by reason. */
  readonly rejected: Readonly<Partial<Record<RejectionReason, number>>>;
}

export interface BenchedModel {
  readonly player: string;
  readonly name: string;
  /** Hash of the weight file, or of the list of the files' hashes; null if the weights are elsewhere. */
  readonly weights_sha256: string | null;
}

export interface BenchResult {
  readonly format: typeof BENCH_FORMAT;
  readonly sqlenv: string;
  readonly command: string;
  readonly protocol: Protocol;
  readonly data: AskedData;
  readonly model: BenchedModel;
  readonly seed: number;
  readonly scores: BenchScores;
  /**
   * Number of queries that are right by Spider's rule, how many of them twins reject, and questions without any twin.
   */
  readonly twins: {
    readonly right_looking: number;
    readonly rejected: number;
    readonly without: number;
  } | null;
  /** Number of questions with a failed attempt; they count as wrong. */
  readonly errors: number;
  readonly first_error: string | null;
  /** Number of questions whose verdict depends on the machine, because a statement hit the time limit. */
  readonly stopped: number;
  /** Means per question: new tokens, prompt tokens, and seconds. */
  readonly per_question: {
    readonly tokens: number | null;
    readonly prompt_tokens: number | null;
    readonly seconds: number;
  };
  /** Seconds from the first question to the last reply, excluding loading and judging. */
  readonly seconds: number;
  readonly questions: readonly QuestionOutcome[];
}

/** Assembles a result. */
export function resultOf(
  outcomes: readonly QuestionOutcome[],
  facts: Pick<BenchResult, "sqlenv" | "command" | "protocol" | "data" | "model" | "seed" | "seconds">,
): BenchResult {
  const { sqlenv, command, protocol, data, model, seed, seconds } = facts;
  const broken = outcomes.filter(({ error }) => error !== null);
  return {
    format: BENCH_FORMAT,
    sqlenv,
    command,
    protocol,
    data,
    model,
    seed,
    scores: scoresOf(outcomes),
    twins: protocol.twins === null ? null : countTwins(outcomes),
    errors: broken.length,
    first_error: broken[0]?.error ?? null,
    stopped: outcomes.filter((outcome) => outcome.stopped).length,
    per_question: {
      tokens: mean(outcomes.map(({ tokens }) => tokens)),
      prompt_tokens: mean(outcomes.map(({ prompt_tokens }) => prompt_tokens)),
      seconds: round(seconds / outcomes.length),
    },
    seconds: round(seconds),
    questions: outcomes,
  };
}

function countTwins(outcomes: readonly QuestionOutcome[]): BenchResult["twins"] {
  const looking = outcomes.filter(({ spider }) => spider === true);
  return {
    right_looking: looking.length,
    rejected: looking.filter(({ twins }) => twins === false).length,
    without: outcomes.filter(({ tried_twins }) => tried_twins === 0).length,
  };
}

/** Describes which questions of a data set were asked. */
export async function askedData(data: DataSet, outcomes: readonly QuestionOutcome[]): Promise<AskedData> {
  const rejected: Partial<Record<RejectionReason, number>> = {};
  for (const { split, reason } of data.rejected) {
    if (split === "eval") rejected[reason] = (rejected[reason] ?? 0) + 1;
  }
  const asked = new Set(outcomes.map(({ id }) => id));
  return {
    name: data.name,
    eval_ids_sha256: await evalIdsSha256(data.questions),
    ids_sha256: await idsSha256([...asked]),
    content_sha256: await idsSha256(
      data.questions.flatMap(({ question_id, question_text, gold_sql }) =>
        asked.has(question_id) ? [JSON.stringify([question_id, question_text, gold_sql])] : [],
      ),
    ),
    questions: outcomes.length,
    databases: new Set(outcomes.map(({ database }) => database)).size,
    rejected,
  };
}

function mean(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : round(known.reduce((sum, count) => sum + count, 0) / known.length);
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
