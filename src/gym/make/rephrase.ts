// Makes questions sound natural with a model. A new wording is kept only if the model, given nothing but the schema and
// that wording, writes a query with the gold result: so the wording still asks the same.
import { type QuestionRecord, SPLITS } from "../data/index.ts";
import { runGold, verifyResult } from "../env/index.ts";
import { ChatError, givenPrompt, readSql, type Writer } from "../players/index.ts";
import type { Database } from "../sql/index.ts";

export interface RephraseOptions {
  /** Requests at once. @default 4 */
  readonly concurrency?: number;
  readonly seed?: number;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** How many wordings were asked for, kept and refused. */
export interface RephraseReport {
  readonly model: string;
  readonly asked: number;
  readonly kept: number;
  /** New wordings that were not kept, by reason. */
  readonly refused: Readonly<Partial<Record<RephraseRefusal, number>>>;
}

export type RephraseRefusal =
  | "no_reply"
  | "unusable"
  | "unchanged"
  | "taken"
  | "no_query"
  | "query_fails"
  | "other_result";

/** What each reason means. */
export const REFUSAL_WORDS: Readonly<Record<RephraseRefusal, string>> = {
  no_reply: "the endpoint did not reply",
  unusable: "the reply was not one question",
  unchanged: "the reply was the question itself",
  taken: "another question has these words",
  no_query: "the second pass gave no query",
  query_fails: "the query of the second pass fails",
  other_result: "the query of the second pass gives another result",
};

const SYSTEM =
  "You rewrite questions about a database so that they sound as a person would ask them. You keep what is asked exactly: every name, number, value, condition, order and requested column.";

const MAX_LENGTH = 300;

/** Replaces the questions' texts where a natural wording passes the check; ids, queries and answers stay. */
export async function rephraseQuestions(
  questions: readonly QuestionRecord[],
  databaseOf: (name: string) => Database,
  writer: Writer,
  { concurrency = 4, seed = 42, onProgress, signal }: RephraseOptions = {},
): Promise<{ readonly questions: readonly QuestionRecord[]; readonly report: RephraseReport }> {
  const texts = new Map(questions.map(({ question_id, question_text }) => [question_id, question_text]));
  const taken = new Set(questions.map(keyOf));
  const candidates = new Map<string, string>();
  const refusals = new Map<string, RephraseRefusal>();
  let [next, done, replies] = [0, 0, 0];

  async function ask(
    question: QuestionRecord,
    pass: string,
    system: string,
    user: string,
  ): Promise<string | undefined> {
    const key = `${seed}/${question.question_id}/${pass}`;
    try {
      const { text } = await writer.write({ question_id: question.question_id, system, user, key, signal });
      replies++;
      return text ?? undefined;
    } catch (error) {
      // An endpoint that never answered is an error; one that fails now and then is not.
      if (!(error instanceof ChatError) || replies === 0) throw error;
      return undefined;
    }
  }

  async function rephrase(question: QuestionRecord): Promise<void> {
    const refuse = (reason: RephraseRefusal) => void refusals.set(question.question_id, reason);
    const database = databaseOf(question.database_name);
    const reply = await ask(question, "rephrase", SYSTEM, requestFor(question));
    if (reply === undefined) return refuse("no_reply");
    const text = oneQuestion(reply);
    if (text === undefined) return refuse("unusable");
    if (text.toLowerCase() === question.question_text.toLowerCase()) return refuse("unchanged");
    const { system, user } = givenPrompt(database, text, 3);
    const written = await ask(question, "check", system, user);
    const sql = written === undefined ? null : readSql(written);
    if (sql === null) return refuse(written === undefined ? "no_reply" : "no_query");
    const result = database.run(sql);
    if (!result.ok) return refuse("query_fails");
    if (!verifyResult(result.table, runGold(question, database))) return refuse("other_result");
    candidates.set(question.question_id, text);
  }

  async function work(): Promise<void> {
    while (next < questions.length) {
      signal?.throwIfAborted();
      await rephrase(questions[next++]!);
      onProgress?.(++done, questions.length);
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, questions.length) }, work));

  // In the questions' order, so that the result does not depend on which reply came first.
  for (const split of SPLITS) {
    for (const question of questions.filter((one) => one.split === split)) {
      const text = candidates.get(question.question_id);
      if (text === undefined) continue;
      const key = keyOf({ ...question, question_text: text });
      if (taken.has(key)) refusals.set(question.question_id, "taken");
      else {
        taken.add(key);
        texts.set(question.question_id, text);
      }
    }
  }
  const refused: Partial<Record<RephraseRefusal, number>> = {};
  for (const reason of refusals.values()) refused[reason] = (refused[reason] ?? 0) + 1;
  return {
    questions: questions.map((question) => ({ ...question, question_text: texts.get(question.question_id)! })),
    report: { model: writer.name, asked: questions.length, kept: questions.length - refusals.size, refused },
  };
}

function keyOf({ database_name, question_text }: Pick<QuestionRecord, "database_name" | "question_text">): string {
  return `${database_name}\n${question_text.toLowerCase()}`;
}

function requestFor({ question_text, gold_sql }: QuestionRecord): string {
  return `### Question
${question_text}

### What it means
${gold_sql}

### Task
Write the question in other, natural words. A reader who sees only the tables must still be able to answer it with the same rows and columns. Answer with nothing but the question, in one line.`;
}

/** The question in a reply; undefined if the reply is anything else. */
function oneQuestion(reply: string): string | undefined {
  const said = reply.replace(/^[\s\S]*<\/think>/, "").trim();
  const text = said
    .replace(/^(?:question|rewritten(?: question)?):\s*/i, "")
    .replace(/^["“](.*)["”]$/s, "$1")
    .trim();
  const isOne =
    text !== "" && text.length <= MAX_LENGTH && !/[\n\r\t`]/.test(text) && !/\bSELECT\b.*\bFROM\b/.test(text);
  return isOne && /[?.!]$/.test(text) ? text : undefined;
}
