// `sqlenv mcp`: MCP on stdin and stdout, for desktop assistants: the environment's questions, or the user's own
// database.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { Command } from "commander";
import { messageOf, UsageError } from "../../../errors.ts";
import { resolveDataSet } from "../../../gym/datasets.node.ts";
import { Database, loadSqlite } from "../../../gym/sql/index.ts";
import { SERVER_STEP_BUDGET } from "../../openenv/index.ts";
import { answerDatabaseFrame } from "../../openenv/mcp/database-tools.ts";
import { RPC, rpcError } from "../../openenv/mcp/json-rpc.ts";
import { openSession } from "../../openenv/session.ts";
import { DATA, DB_DIR, STEP_BUDGET } from "../options/common.ts";
import { addRulesOptions, type RulesFlags, rulesNamed } from "../options/rules.ts";
import { wholeNumber } from "../terminal/output.ts";
import { readLines } from "../terminal/read-lines.ts";
import { MAX_LINE_BYTES } from "./play-stdio.ts";

interface McpFlags extends RulesFlags {
  readonly data: string;
  readonly dbDir?: string;
  readonly stepBudget: number;
}

/** The reply to a line; null for none. */
type Answer = (line: string) => string | null;

/** The `mcp` command. */
export function mcpCommand(): Command {
  const command = new Command("mcp")
    .description("serve MCP tools on stdin and stdout, for desktop assistants")
    .argument("[database]", "SQLite file of your own: tools that describe, sample and query it, read-only")
    .option("--data <name>", DATA, "bundled")
    .option("--db-dir <folder>", DB_DIR)
    .option("--step-budget <number>", STEP_BUDGET, wholeNumber("--step-budget"), SERVER_STEP_BUDGET);
  return addRulesOptions(command).action(run);
}

async function run(file: string | undefined, flags: McpFlags, command: Command): Promise<void> {
  if (file !== undefined && command.getOptionValueSource("data") === "cli")
    throw new UsageError({
      what: "a database cannot be combined with --data",
      value: file,
      remedy: "give one of them",
    });
  const answer = file === undefined ? await ofQuestions(flags) : await ofDatabase(file);
  for await (const line of readLines(process.stdin as AsyncIterable<Uint8Array>, MAX_LINE_BYTES)) {
    if (line !== null && line.trim() === "") continue;
    const text = line === null ? TOO_LONG : answer(line);
    // Wait for a slow reader, so that replies do not pile up in memory.
    if (text !== null && !process.stdout.write(`${text}\n`)) await once(process.stdout, "drain");
  }
}

const TOO_LONG = JSON.stringify(rpcError(null, RPC.request, `the line is longer than ${MAX_LINE_BYTES} bytes`));

async function ofQuestions(flags: McpFlags): Promise<Answer> {
  const data = await resolveDataSet(flags.data, { dbDir: flags.dbDir });
  const session = openSession("stdio", data, { step_budget: flags.stepBudget, ...rulesNamed(flags) });
  return (line) => session.rpcFrame(line, "mcp").text;
}

async function ofDatabase(file: string): Promise<Answer> {
  await loadSqlite();
  const database = new Database(basename(file), read(file));
  return (line) => answerDatabaseFrame(database, line).text;
}

function read(file: string): Uint8Array {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new UsageError({ what: "cannot read the database", value: file, remedy: messageOf(cause), cause });
  }
}
