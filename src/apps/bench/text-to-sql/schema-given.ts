// The protocol of most papers, run on a data set: the prompt contains the schema, and the model writes one query.
import { messageOf } from "../../../errors.ts";
import type { DataSet, QuestionRecord } from "../../../gym/data/index.ts";
import { sampleQuestions } from "../../../gym/evaluation/index.ts";
import { givenPrompt, readSql, type Writer } from "../../../gym/players/index.ts";
import type { Attempt, AttemptOptions, Attempts } from "./attempts.ts";

export interface GivenOptions extends AttemptOptions {
  /** Number of sample rows shown per table. */
  readonly sample_rows: number;
}

/** Asks a writer for one query per question; resolves with undefined if interrupted. */
export async function writeAttempts(
  data: DataSet,
  writer: Writer,
  { sample_rows, concurrency, seed, onProgress, signal, ...options }: GivenOptions,
): Promise<Attempts | undefined> {
  const sample = sampleQuestions(data.questions, { ...options, seed, split: "eval" });
  const attempts = new Map<string, Attempt[]>();
  let [next, done, errors] = [0, 0, 0];

  async function work(): Promise<void> {
    while (next < sample.length && !signal?.aborted) {
      const { question, round } = sample[next++]!;
      const attempt = await writeAttempt(question, `${seed}/${question.question_id}/${round}`);
      if (attempt.error !== null) errors++;
      const list = attempts.get(question.question_id) ?? [];
      list[round] = attempt;
      attempts.set(question.question_id, list);
      onProgress?.({ done: ++done, total: sample.length, correct: 0, errors });
    }
  }

  async function writeAttempt(question: QuestionRecord, key: string): Promise<Attempt> {
    const request = givenPrompt(data.databases.get(question.database_name), question.question_text, sample_rows);
    try {
      const { text, tokens, prompt_tokens } = await writer.write({
        ...request,
        key,
        question_id: question.question_id,
        signal: signal && AbortSignal.any([signal]), // a signal each, since listeners accumulate on a signal
      });
      if (text === null) return { ...NO_QUERY, prompt_tokens, why: TOO_LONG };
      const shown = `${request.user}\n\n${text}`;
      return { ...NO_QUERY, sql: readSql(text), tokens, prompt_tokens, shown };
    } catch (error) {
      return { ...NO_QUERY, error: messageOf(error) };
    }
  }

  await Promise.all(Array.from({ length: Math.min(concurrency, sample.length) }, work));
  return signal?.aborted ? undefined : attempts;
}

/** The reason if a schema does not fit the context; the question then counts as wrong. */
export const TOO_LONG = "schema too long";

const NO_QUERY: Attempt = { sql: null, answer: null, tokens: null, prompt_tokens: null, error: null };
