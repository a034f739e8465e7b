// `sqlenv data show`: databases, schemas and questions of a data set; gold answers only with --gold.
import { Command } from "commander";
import { nearest, UsageError } from "../../../errors.ts";
import type { DataSet, QuestionRecord } from "../../../gym/data/index.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import type { Database, Table } from "../../../gym/sql/index.ts";
import { DATA, DATA_SEED, JSON_OUTPUT } from "../options/common.ts";
import {
  drawTable,
  formatBytes,
  formatNumber,
  type Output,
  output,
  printable,
  styled,
  wholeNumber,
} from "../terminal/output.ts";

const SHOWN_QUESTIONS = 5;

interface ShowFlags {
  readonly data: string;
  readonly question?: string;
  readonly sql?: boolean;
  readonly gold?: boolean;
  readonly seed?: number;
  readonly json?: boolean;
}

/** Lists the databases, or shows one: tables, columns, keys, row counts and sample questions. */
export function showCommand(): Command {
  return new Command("show")
    .description("list databases, or show a database or a question")
    .argument("[database]", "show this database")
    .option("--data <name>", DATA, "bundled")
    .option("--question <id>", "show this question")
    .option("--sql", "show the schema as SQL")
    .option("--gold", "include gold queries and answers")
    .option("--seed <number>", DATA_SEED, wholeNumber("--seed"))
    .option("--json", JSON_OUTPUT)
    .action(async (name: string | undefined, options: ShowFlags) => {
      const out = output(options);
      const dataset = await resolveDataSet(options.data, options);
      if (options.question !== undefined) showQuestion(dataset, options.question, options, out);
      else if (name !== undefined) showDatabase(dataset, pick("database", name, dataset.databases.names), options, out);
      else showAll(dataset, out);
    });
}

function showAll({ name, questions, databases }: DataSet, out: Output): void {
  const rows = databases.names.map((database) => {
    const ours = questions.filter(({ database_name }) => database_name === database);
    const opened = open(databases, database);
    return {
      database,
      tables: opened?.tables.length ?? 0,
      bytes: opened?.byteLength ?? 0,
      train: ours.filter(({ split }) => split === "train").length,
      eval: ours.filter(({ split }) => split === "eval").length,
    };
  });
  out.line(`${styled("bold", name)}: ${rows.length} databases, ${questions.length} questions\n`);
  out.line(
    drawTable(
      ["database", "tables", "size", "train", "eval"],
      rows.map((row) => [row.database, row.tables, formatBytes(row.bytes), row.train, row.eval]),
    ),
  );
  out.result({ name, databases: rows });
}

/** Databases that no question uses may be unreadable; they are still listed. */
function open(databases: DataSet["databases"], name: string): Database | undefined {
  try {
    return databases.get(name);
  } catch {
    return undefined;
  }
}

function showDatabase({ questions, databases }: DataSet, name: string, options: ShowFlags, out: Output): void {
  const database = databases.get(name);
  const ours = questions.filter(({ database_name }) => database_name === name);
  const statements = options.sql ? schemaSql(database) : undefined;
  out.line(
    `${styled("bold", printable(name))}: ${database.tables.length} tables, ${formatBytes(database.byteLength)}\n`,
  );
  if (statements) for (const statement of statements) out.line(`${statement.split("\n").map(printable).join("\n")};\n`);
  else for (const table of database.tables) drawSchema(table, database, out);
  if (ours.length > 0) {
    out.line(styled("bold", `${ours.length} questions, for example:`));
    for (const question of spread(ours)) drawQuestion(question, options, out);
  }
  out.result({
    database: name,
    bytes: database.byteLength,
    tables: database.tables.map((table) => ({ ...table, rows: database.rowCount(table) })),
    ...(statements && { sql: statements }),
    questions: ours.map((question) => shown(question, options)),
  });
}

function showQuestion({ questions }: DataSet, id: string, options: ShowFlags, out: Output): void {
  const found = pick(
    "question",
    id,
    questions.map(({ question_id }) => question_id),
  );
  const question = questions.find(({ question_id }) => question_id === found)!;
  drawQuestion(question, options, out);
  out.result(shown(question, options));
}

function drawSchema(table: Table, database: Database, out: Output): void {
  const count = database.rowCount(table);
  const kind = table.kind === "view" ? ", a view" : "";
  out.line(
    `${styled("cyan", printable(table.name))}  ${styled("dim", count === null ? "" : `${formatNumber(count)} rows${kind}`)}`,
  );
  const rows = table.columns.map((column) => {
    const key = table.foreign_keys.find((foreign) => foreign.column.toLowerCase() === column.name.toLowerCase());
    const notes = [
      column.primary_key ? "primary key" : "",
      key ? `→ ${key.table}.${key.references}` : "",
      column.not_null && !column.primary_key ? "not null" : "",
    ];
    return [column.name, column.type.toLowerCase(), notes.filter(Boolean).join(", ")].map(printable);
  });
  const sizes = [0, 1].map((i) => Math.max(0, ...rows.map((row) => row[i]!.length)));
  for (const [name, type, notes] of rows) {
    out.line(`  ${name!.padEnd(sizes[0]!)}  ${styled("dim", type!.padEnd(sizes[1]!))}  ${notes}`.trimEnd());
  }
  out.line();
}

function drawQuestion(question: QuestionRecord, { gold }: ShowFlags, out: Output): void {
  const { question_id, question_text, database_name, difficulty, answer_type, gold_sql, gold_answer } = question;
  out.line(`  ${styled("dim", printable(`${question_id} (${difficulty}, ${answer_type}, ${database_name})`))}`);
  out.line(`  ${printable(question_text)}`);
  if (gold) {
    out.line(`    ${styled("green", printable(gold_sql))}`);
    for (const line of gold_answer.split("\n")) out.line(`    ${printable(line)}`);
  }
  out.line();
}

/** A question as JSON, without its answer unless --gold is given. */
function shown(question: QuestionRecord, { gold }: ShowFlags): Partial<QuestionRecord> {
  if (gold) return question;
  const { gold_sql: _sql, gold_answer: _answer, ...rest } = question;
  return rest;
}

/** A few questions, evenly spaced over the list. */
function spread(questions: readonly QuestionRecord[]): QuestionRecord[] {
  const step = Math.max(1, questions.length / SHOWN_QUESTIONS);
  return Array.from(
    { length: Math.min(SHOWN_QUESTIONS, questions.length) },
    (_, i) => questions[Math.floor(i * step)]!,
  );
}

function schemaSql(database: Database): string[] {
  const result = database.run("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid");
  return result.ok ? result.table.rows.map(([sql]) => String(sql)) : [];
}

function pick(what: string, name: string, names: readonly string[]): string {
  const exact =
    names.find((known) => known === name) ?? names.find((known) => known.toLowerCase() === name.toLowerCase());
  if (exact !== undefined) return exact;
  const guess = nearest(name, names);
  throw new UsageError({
    what: `no such ${what}`,
    value: name,
    remedy: guess
      ? `did you mean ${guess}?`
      : `sqlenv data show lists the databases, with a database and --json its questions`,
  });
}
