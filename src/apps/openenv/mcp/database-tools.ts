// MCP tools on a user's own database, read-only: describe, sample, query.
import { z } from "zod";
import { renderDescription, renderResult, tableName } from "../../../gym/env/index.ts";
import { type Database, quoteName, type RunResult } from "../../../gym/sql/index.ts";
import { rethrowCrash } from "../validation-errors.ts";
import { answerFrame, type RpcReply } from "./frame.ts";
import { RPC, RpcFault, type RpcRequest, type RpcResponse, rpcFailure, rpcResult } from "./json-rpc.ts";
import { initializeResult } from "./lifecycle.ts";

type Answer = { readonly text: string } | { readonly error: string };

interface Tool {
  readonly description: string;
  readonly input: z.ZodType<Record<string, string | undefined>>;
  readonly run: (database: Database, args: Record<string, string | undefined>) => Answer;
}

const table = z.string().describe("the table's name");
const TOOLS: Readonly<Record<string, Tool>> = {
  describe: {
    description: "See a table's columns, types, keys and number of rows; without a table, the names of all tables.",
    input: z.strictObject({ table: table.optional() }),
    run: (database, args) =>
      args.table === undefined
        ? { text: database.tables.map(({ name }) => quoteName(name)).join("\n") || "(no tables)" }
        : onTable(database, args.table, (found) => ({ text: renderDescription(found, database.rowCount(found)) })),
  },
  sample: {
    description: "See the first rows of a table.",
    input: z.strictObject({ table }),
    run: (database, args) => onTable(database, args.table!, (found) => shown(database.sample(found))),
  },
  query: {
    description: "Run one SELECT statement and see its result. The database cannot be changed.",
    input: z.strictObject({ sql: z.string().describe("one SELECT statement in SQLite's dialect") }),
    run: (database, args) => shown(database.run(args.sql!)),
  },
};

/** The reply to one message of an MCP client. Throws only if SQLite crashes. */
export function answerDatabaseFrame(database: Database, text: string): RpcReply {
  return answerFrame(text, (request) => answer(database, request));
}

function answer(database: Database, { id, method, params }: RpcRequest): RpcResponse {
  try {
    switch (method) {
      case "initialize":
        return rpcResult(id, initializeResult(params, `Read-only tools on the SQLite database ${database.name}.`));
      case "ping":
        return rpcResult(id, {});
      case "tools/list":
        return rpcResult(id, { tools: listTools() });
      case "tools/call":
        return rpcResult(id, callTool(database, params));
      default:
        throw new RpcFault(RPC.method, `Method not found: ${method.slice(0, 100)}`);
    }
  } catch (error) {
    rethrowCrash(error);
    return rpcFailure(id, error);
  }
}

function listTools(): object[] {
  const annotations = { readOnlyHint: true, openWorldHint: false };
  return Object.entries(TOOLS).map(([name, { description, input }]) => {
    const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: "input" });
    return { name, title: name, description, inputSchema, annotations };
  });
}

function callTool(database: Database, { name, arguments: args = {} }: Readonly<Record<string, unknown>>): object {
  const tool = typeof name === "string" && Object.hasOwn(TOOLS, name) ? TOOLS[name] : undefined;
  if (!tool) throw new RpcFault(RPC.params, `Unknown tool: '${String(name).slice(0, 100)}'`);
  const parsed = tool.input.safeParse(args);
  const said = parsed.success ? tool.run(database, parsed.data) : { error: problemsOf(parsed.error) };
  if ("error" in said) return { content: [{ type: "text", text: said.error }], isError: true }; // for the model to read
  return { content: [{ type: "text", text: said.text }], structuredContent: { result: said.text }, isError: false };
}

function problemsOf({ issues }: z.ZodError): string {
  const said = issues.map(({ path, message }) => `${path.join(".") || "arguments"}: ${message}`);
  return `invalid arguments: ${said.join("; ").slice(0, 1_000)}`;
}

function onTable(database: Database, name: string, show: (table: Database["tables"][number]) => Answer): Answer {
  const found = database.table(name.trim()) ?? database.table(tableName(name));
  if (found) return show(found);
  const names = database.tables.map((known) => quoteName(known.name)).join(", ");
  return { error: `no such table: ${name.slice(0, 100)}; tables: ${names}` };
}

function shown(result: RunResult): Answer {
  return result.ok ? { text: renderResult(result.table) } : { error: result.error.message };
}
