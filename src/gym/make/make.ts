// Makes a data set from databases that have no questions: reads each schema, writes questions, splits them, reports.
import { SqlEnvError, UsageError } from "../../errors.ts";
import { random } from "../../random.ts";
import { DIFFICULTIES, type Difficulty, type QuestionRecord, type Split, splitByQuery } from "../data/index.ts";
import { Database } from "../sql/index.ts";
import { type ColumnReport, inferWorlds } from "./infer.ts";
import type { Names } from "./phrases.ts";
import { type DropReason, type WriteOptions, type Written, writeQuestions } from "./questions.ts";
import type { RephraseReport } from "./rephrase.ts";
import { type Note, type Reference, readSchema } from "./schema.ts";

/** One database to write questions about. */
export interface SourceDatabase {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Whether its references, which the file declares, were guessed when it was imported. */
  readonly guessed?: boolean;
  /** What importing it left out or changed. */
  readonly notes?: readonly Note[];
}

export interface MakeOptions {
  /** @default 42 */
  readonly seed?: number;
  /** Questions per database. @default 300 */
  readonly questions?: number;
  /** Maximum phrasings of one query. @default 3 */
  readonly phrasings?: number;
  /** Words for tables and columns whose names do not say enough: { "people": "guest", "people.dob": "birthday" }. */
  readonly names?: Names;
  /** Share of the questions that is held out for evaluation. @default 0.2 */
  readonly evalShare?: number;
  /** Called before each database. */
  readonly onDatabase?: (name: string, index: number) => void;
}

/** What was made of one database. */
export interface DatabaseReport {
  readonly name: string;
  readonly bytes: number;
  readonly tables: number;
  readonly rows: number;
  readonly questions: number;
  /** Number of different gold queries. */
  readonly queries: number;
  readonly by_difficulty: Readonly<Record<Difficulty, number>>;
  readonly by_split: Readonly<Record<Split, number>>;
  readonly references: readonly Reference[];
  readonly columns: readonly ColumnReport[];
  /** Tables, columns and references that no question uses, and why. */
  readonly left_out: readonly Note[];
  /** Drawn questions that were not kept, by reason. */
  readonly dropped: Readonly<Partial<Record<DropReason, number>>>;
  readonly unused_forms: readonly string[];
}

export interface MakeReport {
  readonly seed: number;
  readonly databases: readonly DatabaseReport[];
  readonly questions: Readonly<Record<Split, number>>;
  /** Databases without training questions. */
  readonly held_out_databases: readonly string[];
  /** How many natural wordings were kept and refused; undefined if no model was asked for any. */
  readonly rephrased?: RephraseReport;
}

export interface Made {
  readonly questions: readonly QuestionRecord[];
  readonly report: MakeReport;
}

/** From this many databases on, some are held out whole. */
const MIN_TO_HOLD_OUT = 3;

/**
 * Writes questions with gold queries about each database; `loadSqlite()` must have been awaited. The same databases,
 * options and seed give the same questions.
 *
 * @example
 * await loadSqlite();
 * const { questions, report } = makeQuestions([{ name: "shop", bytes: readFileSync("shop.sqlite") }]);
 * console.log(questions.length, report.databases[0]!.left_out);
 */
export function makeQuestions(
  sources: readonly SourceDatabase[],
  { seed = 42, questions = 300, phrasings = 3, evalShare = 0.2, names = {}, onDatabase }: MakeOptions = {},
): Made {
  const made = sources.map((source, i) => {
    onDatabase?.(source.name, i);
    return makeOne(source, { seed, questions, phrasings, names });
  });
  const held = heldOut(
    made.filter(({ written }) => written.length > 0).map(({ report }) => report.name),
    evalShare,
    seed,
  );
  const records = made.flatMap(({ report, written }) => split(written, held.has(report.name), evalShare, seed));
  if (records.length === 0) {
    throw new UsageError({
      what: "no question can be made",
      value: sources.map(({ name }) => name).join(", "),
      remedy: made.flatMap(({ report }) => report.left_out)[0]?.reason ?? "its tables have no rows",
    });
  }
  const count = (of: readonly QuestionRecord[]) => ({
    train: of.filter(({ split }) => split === "train").length,
    eval: of.filter(({ split }) => split === "eval").length,
  });
  const report: MakeReport = {
    seed,
    databases: made.map(({ report }) => ({
      ...report,
      by_split: count(records.filter(({ database_name }) => database_name === report.name)),
    })),
    questions: count(records),
    held_out_databases: [...held].sort(),
  };
  return { questions: records, report };
}

function makeOne(
  { name, bytes, guessed = false, notes = [] }: SourceDatabase,
  { names, ...options }: WriteOptions & { readonly names: Names },
): { readonly written: readonly Written[]; readonly report: Omit<DatabaseReport, "by_split"> } {
  const database = new Database(name, bytes);
  try {
    const [damage] = database.integrityErrors();
    // A check that was given up because it took too long says nothing about the file.
    if (damage !== undefined && !damage.startsWith("the check was given up"))
      throw new SqlEnvError("bad_database", {
        what: `database ${name} is damaged`,
        value: damage,
        remedy: "export it again with sqlite3's .backup, or leave it out",
      });
    const schema = readSchema(database);
    const worlds = inferWorlds(name, schema, names);
    const { questions, queries, dropped, unused_forms } = writeQuestions(worlds.variants, database, options);
    return {
      written: questions,
      report: {
        name,
        bytes: bytes.length,
        tables: schema.tables.length,
        rows: schema.tables.reduce((sum, { count }) => sum + count, 0),
        questions: questions.length,
        queries,
        by_difficulty: Object.fromEntries(
          DIFFICULTIES.map((one) => [one, questions.filter(({ difficulty }) => difficulty === one).length]),
        ) as Record<Difficulty, number>,
        references: schema.references.map((one) => ({ ...one, declared: one.declared && !guessed })),
        columns: worlds.columns,
        left_out: [...notes, ...schema.notes, ...worlds.notes],
        dropped,
        unused_forms,
      },
    };
  } finally {
    database.close();
  }
}

/** Databases that are held out whole: about this share of them, at least one of three. */
function heldOut(names: readonly string[], share: number, seed: number): Set<string> {
  if (share === 0 || names.length < MIN_TO_HOLD_OUT) return new Set();
  const count = Math.min(names.length - 1, Math.max(1, Math.round(share * names.length)));
  return new Set(random("make-hold-out", seed).sample([...names].sort(), count));
}

function split(written: readonly Written[], isHeldOut: boolean, share: number, seed: number): QuestionRecord[] {
  const parts = isHeldOut
    ? written.map((question) => ({ ...question, split: "eval" as const }))
    : splitByQuery(written, Math.round(share * written.length), seed);
  const counts = { train: 0, eval: 0 };
  return parts.map(({ form: _, ...question }) => ({
    question_id: `${question.database_name}_${question.split}_${String(counts[question.split]++).padStart(3, "0")}`,
    ...question,
  }));
}
