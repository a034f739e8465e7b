// The report of a made data set as Markdown: what was made, what was not, and why.
import type { ColumnReport } from "./infer.ts";
import type { DatabaseReport, MakeReport } from "./make.ts";
import type { DropReason } from "./questions.ts";
import { REFUSAL_WORDS, type RephraseRefusal, type RephraseReport } from "./rephrase.ts";

/** What each reason means. */
export const DROP_WORDS: Readonly<Record<DropReason, string>> = {
  gold_fails: "the query fails or takes too long",
  empty: "no rows",
  nulls: "the answer has missing values",
  zero: "the answer is 0",
  too_long: "the answer is too long to write out",
  one_row_expected: "one row is asked for and several match",
  several_rows_expected: "several rows are asked for and one matches",
  repeated_rows: "rows of the answer are equal",
  ties: "a tie decides the answer",
  redundant: "a column is used twice",
  trivial_condition: "the condition changes nothing",
  unclear_text: "the words would be unclear",
  answer_in_text: "the question contains its answer",
  ambiguous_text: "two queries have the same words",
  common_answer: "too many questions have this answer",
  verifier_refuses: "the verifier does not accept the answer",
};

/** Columns that look personal, as "people.email (email addresses)". */
export function personalColumns({ columns }: DatabaseReport): string[] {
  return columns
    .filter((column): column is ColumnReport & { personal: string } => column.personal !== undefined)
    .map(({ table, column, personal }) => `${table}.${column} (${personal})`);
}

/** Reasons why wordings were not kept, most frequent first. */
export function refusals({ refused }: RephraseReport): string[] {
  return Object.entries(refused)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, count]) => `${count}: ${REFUSAL_WORDS[reason as RephraseRefusal]}`);
}

/** Writes the report as Markdown. */
export function reportMarkdown({ databases, questions, seed, held_out_databases, rephrased }: MakeReport): string {
  const lines = [
    "# Questions made",
    "",
    `${questions.train} training and ${questions.eval} evaluation questions on ${databases.length} ${databases.length === 1 ? "database" : "databases"}, seed ${seed}.`,
  ];
  if (held_out_databases.length > 0) lines.push("", `Held out whole for evaluation: ${held_out_databases.join(", ")}.`);
  if (rephrased) {
    lines.push("", `${rephrased.kept} of ${rephrased.asked} questions in words of ${rephrased.model}; not kept:`, "");
    lines.push(...refusals(rephrased).map((line) => `- ${line}`));
  }
  for (const database of databases) lines.push("", ...section(database));
  return `${lines.join("\n")}\n`;
}

function section(database: DatabaseReport): string[] {
  const { name, tables, rows, questions, queries, by_difficulty, references, left_out, dropped } = database;
  const { easy, medium, hard } = by_difficulty;
  const lines = [
    `## ${name}`,
    "",
    `${tables} tables, ${rows} rows; ${questions} questions (${easy} easy, ${medium} medium, ${hard} hard) with ${queries} different queries.`,
  ];
  const guessed = references.filter(({ declared }) => !declared);
  if (guessed.length > 0) {
    lines.push("", "References guessed from names and values, since the schema does not declare them:", "");
    lines.push(...guessed.map(({ table, column, to, key }) => `- ${table}.${column} → ${to}.${key}`));
  }
  const personal = personalColumns(database);
  if (personal.length > 0) {
    lines.push("", "Columns that look like personal data; `--exclude` leaves them out:", "");
    lines.push(...personal.map((column) => `- ${column}`));
  }
  if (left_out.length > 0) {
    lines.push("", "Not asked about:", "", ...left_out.map(({ name, reason }) => `- ${name}: ${reason}`));
  }
  const reasons = Object.entries(dropped).sort(([, a], [, b]) => b - a);
  if (reasons.length > 0) {
    lines.push("", "Drawn and not kept:", "");
    lines.push(...reasons.map(([reason, count]) => `- ${count}: ${DROP_WORDS[reason as DropReason]}`));
  }
  lines.push("", "| column | read as | called |", "|---|---|---|");
  lines.push(
    ...database.columns.map(
      ({ table, column, kind, phrase }) => `| ${cell(`${table}.${column}`)} | ${kind} | ${cell(phrase)} |`,
    ),
  );
  return lines;
}

function cell(text: string): string {
  return text.replace(/[|\n\r]/g, " ");
}
