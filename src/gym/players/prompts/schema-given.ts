// The prompt of most papers: it contains the schema, and the model writes one query.
import { formatCell } from "../../data/index.ts";
import { type Database, quoteName, type Table } from "../../sql/index.ts";
import type { WriteRequest } from "./writer.ts";

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
