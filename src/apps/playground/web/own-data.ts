// A visitor's own database in the worker: read from files, asked about, and with questions written about it.
import { QuestionLoadError, UsageError } from "../../../errors.ts";
import { agreementText, askQuestion } from "../../../gym/ask/index.ts";
import type { DataSet, QuestionRecord } from "../../../gym/data/index.ts";
import type { EnvironmentRules } from "../../../gym/env/index.ts";
import { makeQuestions } from "../../../gym/make/make.ts";
import { databaseFromFiles } from "../../../gym/make/sources/files.ts";
import { MAX_CHECKED_BYTES } from "../../../gym/make/sources/limits.ts";
import type { Player } from "../../../gym/players/index.ts";
import { type Database, DatabasePool, loadSqlite, type ResultTable } from "../../../gym/sql/index.ts";
import { cellText, rowsOf, schemaOf } from "./schema-tables.ts";
import type {
  AskChoice,
  OwnAnswer,
  OwnDatabase,
  OwnQuestions,
  ShownResult,
  TableRows,
  WorkerEvent,
} from "./worker-protocol.ts";

/** Maximum bytes of all files: they are held in this tab's memory, twice while they are read. */
const MAX_BYTES = 200_000_000;
const MAX_FILES = 100;
const SHOWN_ROWS = 50;
const EXAMPLES = 8;

/** Who asks, and who plays the samples. */
export interface Asking {
  readonly player: Player;
  readonly sampler: Player;
  readonly rules: EnvironmentRules;
  readonly step_budget?: number | undefined;
  readonly signal: AbortSignal;
  readonly emit: (event: WorkerEvent) => void;
}

export class OwnData {
  readonly facts: OwnDatabase;
  readonly #bytes: Uint8Array;
  readonly #guessed: boolean;
  readonly #databases: DatabasePool;
  #questions: readonly QuestionRecord[] | undefined;

  private constructor(facts: OwnDatabase, bytes: Uint8Array, guessed: boolean, databases: DatabasePool) {
    this.facts = facts;
    this.#bytes = bytes;
    this.#guessed = guessed;
    this.#databases = databases;
  }

  /** Reads the files; throws an error with one clear line if they are no database. */
  static async open(files: readonly File[]): Promise<OwnData> {
    const total = files.reduce((sum, { size }) => sum + size, 0);
    if (total > MAX_BYTES)
      throw new QuestionLoadError({
        what: `more than ${MAX_BYTES / 1e6} MB, which is the limit in a tab`,
        value: `${Math.round(total / 1e6)} MB`,
        remedy: "copy the tables you ask about into a smaller database, or use sqlenv ask",
      });
    if (files.length > MAX_FILES)
      throw new UsageError({ what: `more than ${MAX_FILES} files`, value: files.length, remedy: "choose fewer" });
    await loadSqlite();
    const read = await Promise.all(
      files.map(async (file) => ({ name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) })),
    );
    const { name, bytes, guessed = false, notes = [] } = await databaseFromFiles(read);
    const databases = new DatabasePool({ names: [name], read: () => bytes });
    try {
      const database = databases.get(name);
      checkDamage(database);
      const schema = schemaOf(database);
      if (schema.length === 0)
        throw new QuestionLoadError({ what: "the database has no tables", value: read[0]!.name });
      const lines = notes.map((note) => `${note.name}: ${note.reason}`);
      return new OwnData({ name, schema, notes: lines }, bytes, guessed, databases);
    } catch (error) {
      databases.close();
      throw error;
    }
  }

  close(): void {
    this.#databases.close();
  }

  browse(table: string, offset: number): TableRows {
    return rowsOf(this.#database, table, offset) ?? { rows: [], error: `no such table: ${table}` };
  }

  /** Asks a question; the steps of the answer are reported as they are taken. */
  async ask({ question, samples }: AskChoice, { signal, emit, ...asking }: Asking): Promise<OwnAnswer> {
    const told = await askQuestion({
      databases: this.#databases,
      question,
      samples,
      ...asking,
      signal,
      onStart: () => emit({ event: "asked" }),
      onStep: (step) => emit({ event: "askStep", step }),
      onSample: (done, total) => emit({ event: "askSample", done, total }),
    });
    const [own, ...others] = told.answers;
    return {
      answer: told.answer,
      sql: told.sql,
      result: told.result && firstRows(told.result),
      agreement: samples === 0 ? null : agreementText(own!.samples, samples),
      unsure: told.unsure,
      others: others.map(({ answer, samples }) => ({ answer, samples })),
    };
  }

  /** Writes questions with gold queries, some of them for tests. Easy ones are examples, and the watched one. */
  write(): OwnQuestions {
    const { name } = this.facts;
    const { questions, report } = makeQuestions([{ name, bytes: this.#bytes, guessed: this.#guessed }]);
    const isEasy = ({ difficulty }: QuestionRecord) => difficulty === "easy";
    const watched = questions.find((one) => one.split === "eval" && isEasy(one)) ?? questions[0]!;
    const easy = questions.filter(isEasy);
    const every = Math.max(1, Math.floor(easy.length / EXAMPLES));
    this.#questions = questions;
    return {
      ...report.questions,
      examples: easy
        .filter((_, i) => i % every === 0)
        .map((one) => one.question_text)
        .slice(0, EXAMPLES),
      watched: watched.question_id,
      left_out: report.databases[0]!.left_out.map((note) => `${note.name}: ${note.reason}`),
    };
  }

  /** The written questions as a data set. */
  get data(): DataSet {
    if (!this.#questions) throw new UsageError({ what: "no questions are written yet" });
    return { name: this.facts.name, questions: this.#questions, databases: this.#databases, rejected: [] };
  }

  get #database(): Database {
    return this.#databases.get(this.facts.name);
  }
}

function checkDamage(database: Database): void {
  const [damage] = database.byteLength > MAX_CHECKED_BYTES ? [] : database.integrityErrors();
  // A check that was given up because it took too long says nothing about the file.
  if (damage === undefined || damage.startsWith("the check was given up")) return;
  throw new QuestionLoadError(
    { what: "the database is damaged, so its answers could be wrong", value: damage, remedy: "repair it first" },
    "bad_database",
  );
}

/** The first rows of a result, as text. */
function firstRows({ columns, rows, has_more = false, truncated }: ResultTable): ShownResult {
  return {
    columns,
    rows: rows.slice(0, SHOWN_ROWS).map((row) => row.map(cellText)),
    more: has_more || truncated !== null ? null : Math.max(0, rows.length - SHOWN_ROWS),
  };
}
