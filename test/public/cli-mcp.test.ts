// `sqlenv mcp`: an MCP client's messages on stdin, replies on stdout, for the questions and for a database of one's own.
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { smallDataFolder, sqlenv, sqlenvInside } from "../helpers/cli-process.ts";

const folder = await smallDataFolder();
const databases = readdirSync(folder, { recursive: true, encoding: "utf8" });
const shop = join(folder, databases.find((name) => /shop\.(sqlite|db)$/.test(name))!);

const rpc = (id: number, method: string, params: object = {}) => JSON.stringify({ jsonrpc: "2.0", id, method, params });
const call = (id: number, name: string, args: object = {}) => rpc(id, "tools/call", { name, arguments: args });
const HELLO = [
  rpc(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } }),
  '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
  "",
];

async function talk(program: typeof sqlenv, args: string[], ...lines: string[]) {
  const { stdout, stderr, code } = await program(["mcp", ...args], [...HELLO, ...lines].join("\n"));
  expect([stderr, code]).toEqual(["", 0]);
  const replies = stdout.trim().split("\n");
  return replies.map((line) => JSON.parse(line));
}

test("the user's own database: describe, sample, query, and nothing that changes it", async () => {
  const before = readFileSync(shop);
  const replies = await talk(
    sqlenv, // a process of its own
    [shop],
    rpc(2, "tools/list"),
    call(3, "describe"),
    call(4, "describe", { table: "product" }),
    call(5, "sample", { table: "product" }),
    call(6, "query", { sql: "SELECT count(*) AS n FROM product WHERE colour = 'red'" }),
    call(7, "query", { sql: "DELETE FROM product" }),
    call(8, "sample", { table: "nothing" }),
    call(9, "query", { statement: "x" }),
    call(10, "start"),
    "{bad",
    "x".repeat(1_000_001),
    rpc(11, "ping"),
  );
  expect(replies.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, null, null, 11]);
  expect(replies[0].result).toMatchObject({ protocolVersion: "2025-06-18", serverInfo: { name: "sqlenv" } });
  expect(replies[1].result.tools.map(({ name }: { name: string }) => name)).toEqual(["describe", "sample", "query"]);
  const text = (i: number) => replies[i].result.content[0].text;
  expect(text(2)).toBe("maker\nproduct");
  expect(text(3)).toContain("colour TEXT");
  expect(text(4)).toContain("colour");
  expect(replies[5].result).toMatchObject({ isError: false, structuredContent: { result: "n\n3" } });
  expect([6, 7, 8].map((i) => replies[i].result.isError)).toEqual([true, true, true]);
  expect(text(7)).toBe("no such table: nothing; tables: maker, product");
  expect([9, 10, 11].map((i) => replies[i].error.code)).toEqual([-32602, -32700, -32600]);
  expect(readFileSync(shop)).toEqual(before);
});

test("the questions of a data set", async () => {
  const replies = await talk(
    sqlenvInside,
    ["--data", folder],
    call(2, "start", { index: 0, split: "eval" }),
    call(3, "answer", { answer: "x" }),
  );
  expect(replies[1].result.content[0].text).toContain("Question:");
  expect(replies[2].result.structuredContent).toMatchObject({ done: true, outcome: { done_reason: "answered" } });
});

test("a file that is missing or no database gives a one-line error", async () => {
  const missing = join(mkdtempSync(join(tmpdir(), "sqlenv-test-")), "no.sqlite");
  const { stderr, code } = await sqlenvInside(["mcp", missing]);
  expect([stderr, code]).toEqual([expect.stringMatching(/^error: cannot read the database: .*no\.sqlite/), 2]);
});
