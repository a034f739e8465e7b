// Exports a data set in the native layout: databases/<name>/<name>.sqlite and questions/questions_{train,eval}.json.
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { QuestionLoadError } from "../../../errors.ts";
import { Database } from "../../sql/index.ts";
import type { DataSet } from "../dataset.ts";
import { checkGold } from "../gold.ts";
import { type QuestionRecord, SPLITS, type Split } from "../question.ts";
import { withPlainStrings } from "./quotes.ts";

export interface ExportedDataSet {
  readonly path: string;
  readonly databases: number;
  readonly questions: Readonly<Record<Split, number>>;
  /**
   * Ids of questions that were left out, because the double-quoted strings of their gold query could not be rewritten.
   */
  readonly left_out: readonly string[];
}

/**
 * Writes the usable questions and their databases into a new or empty folder. Strings in gold queries get single
 * quotes.
 *
 * @example
 * exportDataSet(bundledDataSet(), "bundled"); // opens again with openDataSet("bundled")
 */
export function exportDataSet({ name, questions, file }: DataSet, dir: string): ExportedDataSet {
  if (!file) {
    throw new QuestionLoadError({ what: "data set does not give its database files", value: name });
  }
  const target = resolve(dir);
  if (existsSync(target) && readdirSync(target).length > 0) {
    throw new QuestionLoadError({ what: "folder is not empty", value: dir, remedy: "choose a new one" });
  }
  mkdirSync(dirname(target), { recursive: true });
  const aside = mkdtempSync(join(dirname(target), `.${basename(target)}-`));
  try {
    const databases = [...new Set(questions.map(({ database_name }) => database_name))].sort();
    const written = new Map<string, QuestionRecord>();
    for (const database of databases) {
      const folder = join(aside, "databases", database);
      mkdirSync(folder, { recursive: true });
      const bytes = file(database);
      writeFileSync(join(folder, `${database}.sqlite`), bytes);
      const ours = questions.filter(({ database_name }) => database_name === database);
      for (const question of plain(ours, database, bytes)) written.set(question.question_id, question);
    }
    mkdirSync(join(aside, "questions"));
    const counts = SPLITS.map((split) => {
      const part = questions
        .flatMap(({ question_id }) => written.get(question_id) ?? [])
        .filter((question) => question.split === split);
      if (part.length > 0) {
        writeFileSync(join(aside, "questions", `questions_${split}.json`), `${JSON.stringify(part, null, 2)}\n`);
      }
      return [split, part.length];
    });
    rmSync(target, { recursive: true, force: true }); // an existing target is empty here
    renameSync(aside, target);
    const left_out = questions.map(({ question_id }) => question_id).filter((id) => !written.has(id));
    return { path: target, databases: databases.length, questions: Object.fromEntries(counts), left_out };
  } catch (error) {
    rmSync(aside, { recursive: true, force: true });
    throw error;
  }
}

/** Rewrites gold queries so that they give the same answer when double quotes mean only names. */
function plain(questions: readonly QuestionRecord[], name: string, bytes: Uint8Array): QuestionRecord[] {
  const database = new Database(name, bytes);
  try {
    return questions
      .map((question) => ({ ...question, gold_sql: withPlainStrings(question.gold_sql, database.tables) }))
      .filter((question) => checkGold(question, database).ok);
  } finally {
    database.close();
  }
}
