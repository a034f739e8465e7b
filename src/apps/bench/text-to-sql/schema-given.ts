// The protocol of most papers: the prompt contains the schema, and the model writes one query.
import { messageOf } from "../../../errors.ts";
import { type DataSet, formatCell, type QuestionRecord } from "../../../gym/data/index.ts";
import { sampleQuestions } from "../../../gym/evaluation/index.ts";
import type { WriteRequest, Writer } from "../../../gym/players/index.ts";
import { type Database, quoteName, type Table } from "../../../gym/sql/index.ts";
import type { Attempt, AttemptOptions, Attempts } from "./attempts.ts";
import { readSql } from "./read-sql.ts";

/** Incremented when the prompt below changes. */
const GIVEN_VERSION = "given-1";

/** The prompt's name in results: `given-1`, or `given-1+rows3` with sample rows. */
export function givenPromptId(sampleRows: number): string {
  return sampleRows > 0 ? `${GIVEN_VERSION}+rows${sampleRows}` : GIVEN_VERSION;
}

const SYSTEM = "You are a helpful assistant who writes SQLite queries.";

/** Builds the request for one question. */
export function givenPrompt(
  database: Database,
  question: string,
  sampleRows: number,
): Pick<WriteRequest, "system" | "user"> {
  const user = `### Schema of the SQLite database
${schemaText(database, sampleRows)}

### Question
${question}

### Task
Write one SQLite SELECT statement that answers the question. Return exactly the columns that the question asks for, and use only tables and columns of the schema. Answer with nothing but the SQL, in a \`\`\`sql block.`;
  return { system: SYSTEM, user };
}

/** CREATE TABLE statements with types and keys, each with its first rows if requested. */
export function schemaText(database: Database, sampleRows = 0): string {
  return database.tables
    .map((table) => {
      const rows = sampleRows > 0 ? sampleText(database, table, sampleRows) : "";
      return createStatement(table) + rows;
    })
    .join("\n\n");
}

function createStatement({ name, columns, foreign_keys }: Table): string {
  const keys = columns.filter(({ primary_key }) => primary_key).map((column) => quoteName(column.name));
  const lines = [
    ...columns.map((column) => {
      const key = column.primary_key && keys.length === 1 ? " PRIMARY KEY" : "";
      return `${quoteName(column.name)}${column.type ? ` ${column.type}` : ""}${key}`;
    }),
    ...(keys.length > 1 ? [`PRIMARY KEY (${keys.join(", ")})`] : []),
    ...foreign_keys.map(
      ({ column, table, references }) =>
        `FOREIGN KEY (${quoteName(column)}) REFERENCES ${quoteName(table)}(${quoteName(references)})`,
    ),
  ];
  return `CREATE TABLE ${quoteName(name)} (\n${lines.map((line) => `  ${line}`).join(",\n")}\n);`;
}

const SHOWN_CELL = 40; // maximum characters of a cell in a sample row

function sampleText(database: Database, table: Table, rows: number): string {
  const sampled = database.sample(table, rows);
  if (!sampled.ok || sampled.table.rows.length === 0) return "";
  const { types } = sampled.table;
  const lines = sampled.table.rows.map((row) =>
    row.map((cell, i) => formatCell(cell, types[i]!).replace(/\s+/g, " ").slice(0, SHOWN_CELL)).join(" | "),
  );
  return `\n/* first rows:\n${lines.join("\n").replaceAll("*/", "* /")}\n*/`;
}

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
