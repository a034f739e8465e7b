// MCP over HTTP as its specification says, and WebSockets that attach to an HTTP session.
import { afterAll, afterEach, expect, test } from "vitest";
import { serve, Talker, until, type Wire } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const server = await serve({ threads: 1, ratePerClient: 0, apiKeys: ["one", "two"] });
afterAll(() => server.close());
afterEach(() => until(() => server.sessions === 0));
const { questions } = await smallDataSet();

interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Wire;
}

async function send(body: object | string | undefined, headers: Record<string, string> = {}, method = "POST") {
  const response = await fetch(`${server.url}/mcp`, {
    method,
    headers: { authorization: "Bearer one", accept: "application/json, text/event-stream", ...headers },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : {} } as Reply;
}

const rpc = (method: string, params: object = {}, headers: Record<string, string> = {}) =>
  send({ jsonrpc: "2.0", id: 1, method, params }, headers);
const initialize = (protocolVersion: unknown = "2025-11-25") =>
  rpc("initialize", { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } });
const header = (id: string) => ({ "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" });
const end = (id: string) => send(undefined, header(id), "DELETE");
const open = async () => {
  const { headers } = await initialize();
  const id = headers.get("mcp-session-id")!;
  await send({ jsonrpc: "2.0", method: "notifications/initialized" }, header(id));
  const call = async (name: string, args: object = {}) =>
    (await rpc("tools/call", { name, arguments: args }, header(id))).body;
  return { id, call };
};
const create = async (headers = {}) => (await rpc("openenv/session/create", {}, headers)).body.result.session_id;
const attach = (id: string, key = "one") =>
  new Talker(server.url, `/ws?session_id=${id}`, { authorization: `Bearer ${key}` });

test("initialize, initialized, ping, tools, DELETE", async () => {
  const first = await initialize();
  expect(first.status).toBe(200);
  expect(first.headers.get("content-type")).toBe("application/json");
  const { protocolVersion, capabilities, serverInfo } = first.body.result;
  expect({ protocolVersion, capabilities }).toEqual({ protocolVersion: "2025-11-25", capabilities: { tools: {} } });
  expect(serverInfo.name).toBe("sqlenv");
  const id = first.headers.get("mcp-session-id")!;
  const note = await send({ jsonrpc: "2.0", method: "notifications/initialized" }, header(id));
  expect([note.status, note.body]).toEqual([202, {}]);
  expect((await rpc("ping", {}, header(id))).body).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  const { tools } = (await rpc("tools/list", {}, header(id))).body.result;
  expect(tools).toHaveLength(6);
  expect(JSON.stringify(tools)).not.toContain(":null"); // other SDKs refuse null where a key is optional
  expect(tools[3].annotations.readOnlyHint).toBe(true);
  expect((await end(id)).status).toBe(204);
  const gone = await rpc("ping", {}, header(id));
  expect([gone.status, gone.body.error.message]).toEqual([404, "Session not found"]);
  expect((await end(id)).status).toBe(404);
});

test("each session has its own environment; results are structured, errors are for the model", async () => {
  const [a, b] = [await open(), await open()];
  expect(server.sessions).toBe(2);
  const started = (await a.call("start", { question_id: questions[0]!.question_id })).result;
  await b.call("start", { question_id: questions[1]!.question_id });
  expect(started.content).toEqual([{ type: "text", text: expect.stringContaining(questions[0]!.question_text) }]);
  expect(started).toMatchObject({ isError: false, structuredContent: { done: false, reward: null } });
  const answered = (await a.call("answer", { answer: questions[0]!.gold_answer })).result;
  expect(answered.structuredContent).toMatchObject({ done: true, outcome: { correctness: 1 } });
  const looked = (await b.call("query", { sql: "SELECT 41 + 1 AS n" })).result;
  expect(looked.structuredContent).toMatchObject({ done: false, observation: { result: "n\n42" } });
  const wrong = (await b.call("query", { statement: "x" })).result;
  expect([wrong.isError, wrong.content[0].text]).toEqual([true, expect.stringContaining("Invalid arguments")]);
  expect((await b.call("drop")).error).toMatchObject({ code: -32602, message: "Unknown tool: 'drop'" });
  await Promise.all([end(a.id), end(b.id)]);
  expect(server.sessions).toBe(0);
});

test("protocol versions: a known one is kept, others get the newest, a wrong header 400", async () => {
  for (const version of ["2025-06-18", "2024-11-05", "1999-01-01"]) {
    const { body, headers } = await initialize(version);
    expect(body.result.protocolVersion).toBe(version === "1999-01-01" ? "2025-11-25" : version);
    await end(headers.get("mcp-session-id")!);
  }
  expect((await initialize(7)).body.error.code).toBe(-32602);
  const wrong = await rpc("tools/list", {}, { "mcp-protocol-version": "1999-01-01" });
  expect([wrong.status, wrong.body.error.message]).toEqual([
    400,
    expect.stringContaining("1999-01-01; use 2025-11-25"),
  ]);
  expect(server.sessions).toBe(0);
});

test("wrong requests are refused without a session", async () => {
  expect((await send(undefined, {}, "GET")).status).toBe(405);
  expect((await send(undefined, {}, "DELETE")).status).toBe(400);
  expect((await end("nobody")).status).toBe(404);
  expect((await rpc("tools/list", {}, header("nobody"))).status).toBe(404);
  expect((await send("{", header("nobody"))).body.error.code).toBe(-32700);
  expect((await rpc("ping", {}, { origin: "https://elsewhere.example" })).status).toBe(403);
  expect((await rpc("ping", {}, { authorization: "Bearer wrong" })).status).toBe(401);
  expect((await rpc("server/discover")).body.error.code).toBe(-32601);
  const { id } = await open();
  expect((await rpc("ping", {}, { ...header(id), authorization: "Bearer two" })).status).toBe(404); // another client's
  await end(id);
});

test("a WebSocket attached to a session shares its environment and its slot", async () => {
  const session_id = await create();
  const socket = attach(session_id);
  const { question_id, question_text, gold_answer } = questions[2]!;
  expect((await socket.ask({ type: "reset", data: { question_id } })).data.observation.question).toBe(question_text);
  expect(server.sessions).toBe(1);
  const call = async (name: string, args: object) =>
    (await rpc("tools/call", { name, arguments: args, session_id })).body.result.structured_content;
  expect((await call("query", { sql: "SELECT 1" })).observation).toMatchObject({
    question: question_text,
    step_count: 1,
  });
  expect((await socket.step("QUERY", "SELECT 2")).data.observation.step_count).toBe(2);
  expect((await call("answer", { answer: gold_answer })).outcome.correctness).toBe(1);
  expect((await socket.ask({ type: "state" })).data).toMatchObject({ step_count: 3, correctness: 1 });
  await socket.close();
  expect((await call("query", { sql: "SELECT 3" })).done).toBe(true); // the session outlives the socket
  expect((await rpc("openenv/session/close", { session_id })).body.result).toEqual({ session_id, closed: true });
});

test("unknown, foreign and second attachments are refused and leave the session alone", async () => {
  const session_id = await create();
  const first = attach(session_id);
  await first.ask({ type: "reset" });
  const refused = async (talker: Talker, message: string) => {
    expect(await talker.next()).toEqual({ type: "error", data: { message, code: "SESSION_ERROR" } });
    expect((await talker.closed).code).toBe(1000);
  };
  await refused(attach("zzz"), "Unknown session_id: zzz");
  await refused(attach(session_id, "two"), `Unknown session_id: ${session_id}`);
  await refused(attach(session_id), `Session ${session_id} already has an attached WebSocket`);
  await first.step("QUERY", "SELECT 1");
  expect((await first.ask({ type: "state" })).data.step_count).toBe(1);
  expect((await end(session_id)).status).toBe(204); // as soon as the socket leaves
  expect(server.sessions).toBe(1);
  first.socket.terminate();
  await until(() => server.sessions === 0);
});

test("MCP on a WebSocket", async () => {
  const talker = new Talker(server.url, "/mcp", { authorization: "Bearer one" });
  const ask = (method: string, params = {}) => talker.ask({ jsonrpc: "2.0", id: 7, method, params });
  expect((await ask("initialize", { protocolVersion: "2025-06-18" })).result.protocolVersion).toBe("2025-06-18");
  await talker.send({ jsonrpc: "2.0", method: "notifications/initialized" }); // no reply
  expect(await ask("ping")).toEqual({ jsonrpc: "2.0", id: 7, result: {} });
  await talker.close();
});
