// `sqlenv data make`: questions with gold SQL for databases that have none.
import { readFileSync } from "node:fs";
import { Command } from "commander";
import { z } from "zod";
import { messageOf, UsageError } from "../../../errors.ts";
import { makeDataSet } from "../../../gym/make/index.node.ts";
import {
  type DatabaseReport,
  DROP_WORDS,
  type DropReason,
  type MakeReport,
  personalColumns,
  refusals,
} from "../../../gym/make/index.ts";
import { chatWriter, type Writer } from "../../../gym/players/index.ts";
import { JSON_OUTPUT } from "../options/common.ts";
import {
  counted,
  countFromOne,
  drawTable,
  type Output,
  output,
  printable,
  styled,
  wholeNumber,
} from "../terminal/output.ts";

const SHOWN = 8;

interface RephraseFlags {
  readonly rephrase?: boolean;
  readonly baseUrl?: string;
  readonly model?: string;
  readonly apiKeyEnv: string;
}

interface MakeFlags extends RephraseFlags {
  readonly out: string;
  readonly columns?: readonly string[];
  readonly exclude?: readonly string[];
  readonly maxRows?: number;
  readonly schema?: string;
  readonly names?: Readonly<Record<string, string>>;
  readonly seed: number;
  readonly questions: number;
  readonly phrasings: number;
  readonly evalShare: number;
  readonly json?: boolean;
}

/** Makes a data set and says what was made, what was not, and why. */
export function makeCommand(): Command {
  return new Command("make")
    .description("write questions with gold SQL for databases that have none")
    .argument("<source...>", "SQLite files, CSV files, folders of either, or postgres://user@host/database")
    .requiredOption("--out <dir>", "a new or empty folder for databases, questions and the report")
    .option("--questions <number>", "questions per database", countFromOne("--questions"), 300)
    .option("--phrasings <number>", "maximum phrasings of one query", countFromOne("--phrasings"), 3)
    .option("--columns <patterns...>", "copy and ask about these columns only: table.column, with * for any text")
    .option("--exclude <patterns...>", "leave these columns out, such as people.email or *.phone")
    .option(
      "--max-rows <number>",
      "rows per table; larger tables are sampled, rows they refer to are kept (default: SQLite all, else 50,000)",
      countFromOne("--max-rows"),
    )
    .option("--schema <name>", "schema of a PostgreSQL database (default: public)")
    .option(
      "--names <file>",
      'JSON with words for tables and columns: { "tbl7": "guest", "tbl7.dob": "birthday" }',
      readNames,
    )
    .option(
      "--eval-share <share>",
      "share of the questions, and of the databases if there are three or more, held out for evaluation",
      share,
      0.2,
    )
    .option("--seed <number>", "seed of the questions and of samples", wholeNumber("--seed"), 42)
    .option(
      "--rephrase",
      "ask a model for natural wordings; each is kept only if a query written for it has the gold result",
    )
    .option("--base-url <url>", "for --rephrase: an OpenAI-compatible endpoint, such as http://localhost:8000/v1")
    .option("--model <name>", "for --rephrase: the endpoint's model")
    .option("--api-key-env <variable>", "for --rephrase: environment variable with the key", "OPENAI_API_KEY")
    .option("--json", JSON_OUTPUT)
    .action(async (sources: string[], { out: dir, json, ...options }: MakeFlags) => {
      const out = output({ json });
      const onDatabase = (name: string) => out.progress(`writing questions about ${printable(name)}`);
      const rephraser = rephraserOf(options);
      const onRephrased = (done: number, total: number) => out.progress(`rephrasing: ${done} of ${total}`);
      const report = await makeDataSet(sources, dir, {
        ...options,
        onDatabase,
        onRephrased,
        ...(rephraser && { rephraser }),
      });
      draw(report, dir, out);
      out.result(report);
    });
}

function rephraserOf({ rephrase, baseUrl, model, apiKeyEnv }: RephraseFlags): Writer | undefined {
  if (!rephrase) {
    if (baseUrl === undefined && model === undefined) return undefined;
    throw new UsageError({ what: "--base-url and --model are for --rephrase", remedy: "add --rephrase" });
  }
  if (baseUrl === undefined || model === undefined)
    throw new UsageError({
      what: "--rephrase needs --base-url and --model",
      remedy: "for example --base-url http://localhost:11434/v1 --model qwen2.5-coder:7b",
    });
  return chatWriter({ baseUrl, model, apiKey: process.env[apiKeyEnv] || undefined });
}

function readNames(file: string): Readonly<Record<string, string>> {
  try {
    return namesSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    const remedy = cause instanceof z.ZodError ? cause.issues[0]!.message : messageOf(cause);
    throw new UsageError({ what: "--names takes a JSON file with a text for each name", value: file, remedy, cause });
  }
}

const namesSchema = z.record(z.string(), z.string().trim().min(1));

function share(value: string): number {
  const number = Number(value);
  if (value.trim() !== "" && number >= 0 && number < 1) return number;
  throw new UsageError({ what: "--eval-share takes a number from 0 to below 1", value, remedy: "for example 0.2" });
}

function draw({ databases, questions, held_out_databases, rephrased }: MakeReport, dir: string, out: Output): void {
  out.line(
    `${styled("bold", dir)}: ${counted(questions.train, "training question")} and ${counted(questions.eval, "evaluation question")}\n`,
  );
  out.line(
    drawTable(
      ["database", "tables", "rows", "questions", "queries", "easy", "medium", "hard", "train", "eval"],
      databases.map(({ name, tables, rows, questions, queries, by_difficulty: { easy, medium, hard }, by_split }) => [
        name,
        tables,
        rows,
        questions,
        queries,
        easy,
        medium,
        hard,
        by_split.train,
        by_split.eval,
      ]),
    ),
  );
  if (rephrased) {
    out.line(
      `\nin words of ${rephrased.model}: ${rephrased.kept} of ${counted(rephrased.asked, "question")}; not kept:`,
    );
    for (const line of refusals(rephrased)) out.line(`  ${line}`);
  }
  if (held_out_databases.length > 0) out.line(`\nheld out whole for evaluation: ${held_out_databases.join(", ")}`);
  for (const database of databases) drawDetails(database, databases.length > 1, out);
  out.line(`\nthe whole report: ${dir}/report.md`);
  out.line(`check it with: sqlenv data check --data ${dir}`);
}

function drawDetails(database: DatabaseReport, isOne: boolean, out: Output): void {
  const { name, references, left_out, dropped } = database;
  const guessed = references.filter(({ declared }) => !declared);
  const personal = personalColumns(database);
  const blocks: [string, readonly string[]][] = [
    [
      "references guessed from names and values",
      guessed.map(({ table, column, to, key }) => `${table}.${column} → ${to}.${key}`),
    ],
    [styled("yellow", "columns that look like personal data (--exclude leaves them out)"), personal],
    ["not asked about", left_out.map(({ name, reason }) => `${name}: ${reason}`)],
    [
      "drawn and not kept",
      Object.entries(dropped)
        .sort(([, a], [, b]) => b - a)
        .map(([reason, count]) => `${count}: ${DROP_WORDS[reason as DropReason]}`),
    ],
  ];
  for (const [title, lines] of blocks) {
    if (lines.length === 0) continue;
    out.line(`\n${isOne ? `${printable(name)}: ` : ""}${title}`);
    for (const line of lines.slice(0, SHOWN)) out.line(printable(`  ${line}`));
    if (lines.length > SHOWN) out.line(`  … and ${lines.length - SHOWN} more`);
  }
}
