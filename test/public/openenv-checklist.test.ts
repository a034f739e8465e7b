// OpenEnv's server checklist, item by item, and the six criteria of `openenv validate --url`.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { smallDataFolder } from "../helpers/cli-process.ts";
import { serveProcess } from "../helpers/serve-process.ts";
import { ENDED, post, SLOW, serve, Talker, until, type Wire } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const server = await serve({ ratePerClient: 0 });
afterAll(() => server.close());
const get = async (path: string) => (await fetch(server.url + path)).json() as Promise<Wire>;

describe("port, address, PORT", () => {
  test("honours PORT; loopback unless --host is given, with a warning without a key; a signal stops it", async () => {
    const data = await smallDataFolder();
    const local = await serveProcess(["--data", data]);
    expect(new URL(local.url).hostname).toBe("127.0.0.1");
    expect(await (await fetch(`${local.url}/health`)).json()).toEqual({ status: "healthy" });
    const root = await fetch(local.url, { redirect: "manual" });
    expect([root.status, root.headers.get("location")]).toEqual([302, "/web/"]);
    expect(local.warnings()).not.toContain("warning:");
    expect(await local.stop()).toBe(0);
    const open = await serveProcess(["--data", data, "--host", "0.0.0.0", "--port", "0"]);
    await until(() => open.warnings().includes("warning: anyone who reaches 0.0.0.0"));
    expect(await open.stop()).toBe(0);
  });

  test("8000 is the default", () => {
    const source = readFileSync(
      resolve(fileURLToPath(new URL("../..", import.meta.url)), "src/apps/cli/commands/serve.ts"),
      "utf8",
    );
    expect(source).toContain("return 8000");
  });
});

describe("HTTP routes", () => {
  test("each returns its schema", async () => {
    expect(Object.keys(await get("/metadata")).sort()).toEqual(
      ["author", "description", "documentation_url", "name", "readme_content", "version"].sort(),
    );
    expect(Object.keys(await get("/schema")).sort()).toEqual(["action", "observation", "reset_observation", "state"]);
    for (const body of [undefined, "", "{}", '{"seed":null,"anything":[1]}'])
      expect((await post(`${server.url}/reset`, body)).status).toBe(200);
    const { body } = await post(`${server.url}/step`, { action: { action_type: "QUERY", argument: "SELECT 1" } });
    expect(body.observation.step_count).toBe(1); // reset and step share the client's HTTP session
    expect(await get("/state")).toMatchObject({ step_count: 1, step_budget: 15, correctness: 0, rules: "env-1" });
    for (const page of ["/docs", "/redoc"])
      expect((await fetch(server.url + page)).headers.get("content-type")).toContain("text/html");
  });

  test("422, 500, 404 and 405", async () => {
    const bad = await post(`${server.url}/step`, { action: { action_type: "DROP", argument: "x" } });
    expect(bad.status).toBe(422);
    expect(bad.body.detail[0]).toMatchObject({ type: "literal_error", loc: ["action_type"], input: "DROP" });
    const unknown = await post(`${server.url}/reset`, { question_id: "nope" });
    expect([unknown.status, unknown.body.detail[0].msg]).toEqual([422, expect.stringContaining("no such question_id")]);
    const fresh = await serve({ threads: 1 });
    const action = { action_type: "QUERY", argument: "SELECT 1" };
    const raised = await fetch(`${fresh.url}/step`, { method: "POST", body: JSON.stringify({ action }) });
    expect([raised.status, raised.headers.get("content-type"), await raised.text()]).toEqual([
      500,
      "text/plain; charset=utf-8",
      "Internal Server Error",
    ]);
    await fresh.close();
    const missing = await fetch(`${server.url}/nope`);
    expect([missing.status, await missing.json()]).toEqual([404, { detail: "Not Found" }]);
    const method = await fetch(`${server.url}/reset`);
    expect([method.status, await method.json()]).toEqual([405, { detail: "Method Not Allowed" }]);
  });

  test("POST /mcp {} is answered with 200 and -32600", async () => {
    const { status, body } = await post(`${server.url}/mcp`, {});
    expect([status, body.jsonrpc, body.error.code]).toEqual([200, "2.0", -32600]);
  });
});

test("openenv validate --url: its six criteria hold", async () => {
  const api = await get("/openapi.json");
  expect(api.openapi).toBe("3.1.0");
  expect(api.info.version).toMatch(/^1\./);
  const health = await fetch(`${server.url}/health`);
  expect([health.status, ((await health.json()) as Wire).status]).toEqual([200, "healthy"]);
  const about = await get("/metadata");
  expect([typeof about.name, typeof about.description]).toEqual(["string", "string"]);
  const { action, observation, state } = await get("/schema");
  for (const schema of [action, observation, state]) expect(schema).toBeTypeOf("object");
  const rpc = await post(`${server.url}/mcp`, {});
  expect([rpc.status, rpc.body.jsonrpc]).toEqual([200, "2.0"]);
  for (const path of ["/reset", "/step", "/state", "/metadata", "/health", "/schema", "/mcp"])
    expect(api.paths).toHaveProperty([path]);
});

test("text actions: the action's schema has one required field, text; a reply goes in as it is, over HTTP and sockets", async () => {
  const plain = await serve({ textActions: true, threads: 1 });
  const schemas = (await (await fetch(`${plain.url}/schema`)).json()) as Wire;
  expect([schemas.action.required, schemas.action.properties.text.type]).toEqual([["text"], "string"]);
  expect(schemas.observation).toEqual((await get("/schema")).observation);
  const api = (await (await fetch(`${plain.url}/openapi.json`)).json()) as Wire;
  expect(api.components.schemas.Action).toEqual(schemas.action);
  await post(`${plain.url}/reset`, { seed: 1 });
  const { body } = await post(`${plain.url}/step`, { action: { text: "Let me see.\nQUERY: SELECT 7" } });
  expect(body.observation.result).toBe("7\n7");
  expect((await post(`${plain.url}/step`, { action: {} })).body.detail[0]).toMatchObject({
    type: "missing",
    loc: ["text"],
  });
  const talker = new Talker(plain.url);
  await talker.ask({ type: "reset", data: { seed: 1 } });
  const spoken = await talker.ask({ type: "step", data: { text: "QUERY: SELECT 8" } });
  const typed = await talker.step("QUERY", "SELECT 9");
  expect([spoken, typed].map(({ data }) => data.observation.result)).toEqual(["8\n8", "9\n9"]);
  await talker.close();
  await plain.close();
});

test("slots: taken at the handshake, released on every exit path", async () => {
  const ways: [string, (talker: Talker) => Promise<unknown>][] = [
    ["close message", (talker) => talker.send({ type: "close" })],
    ["close frame", (talker) => talker.close()],
    ["no close frame", async (talker) => talker.socket.terminate()],
    ["binary frame", (talker) => talker.send(Buffer.from("x"))],
    ["not an object", (talker) => talker.send("[]")],
    [
      "in the middle of a query",
      async (talker) => {
        await talker.ask({ type: "reset" });
        await talker.send({ type: "step", data: { action_type: "QUERY", argument: SLOW } });
        talker.socket.terminate();
      },
    ],
  ];
  for (const [, leave] of ways) {
    const talker = new Talker(server.url);
    await talker.ask({ type: "state" });
    expect(server.sessions).toBe(1);
    await leave(talker);
    await until(() => server.sessions === 0);
  }
  const create = { jsonrpc: "2.0", method: "openenv/session/create", id: 1 };
  const { session_id } = (await post(`${server.url}/mcp`, create)).body.result;
  expect(server.sessions).toBe(1);
  await post(`${server.url}/mcp`, { jsonrpc: "2.0", method: "openenv/session/close", params: { session_id }, id: 2 });
  expect(server.sessions).toBe(0);
});

test("half-open and idle sockets lose their slot", async () => {
  const strict = await serve({ pingSeconds: 0.05, silentSeconds: 0.2, idleSeconds: 3600, threads: 1 });
  const deaf = new Talker(strict.url);
  await deaf.ask({ type: "state" });
  deaf.socket.pause(); // no longer answers pings
  await until(() => strict.sessions === 0);
  await strict.close();
  const quick = await serve({ idleSeconds: 0.2, threads: 1 });
  const idle = new Talker(quick.url);
  await idle.ask({ type: "state" });
  const { body } = await post(`${quick.url}/mcp`, { jsonrpc: "2.0", method: "openenv/session/create", id: 1 });
  expect(body.result.session_id).toBeTypeOf("string");
  expect(await idle.closed).toEqual({ code: 1000, reason: "idle" });
  await until(() => quick.sessions === 0);
  await quick.close();
});

test("pings are answered while a query runs, and other sessions continue", async () => {
  const [slow, other] = [new Talker(server.url), new Talker(server.url)];
  await slow.ask({ type: "reset" });
  await other.ask({ type: "reset" });
  let isAnswered = false;
  const answer = slow.step("QUERY", SLOW).then((reply) => {
    isAnswered = true;
    return reply;
  });
  const pong = new Promise((resolve) => slow.socket.once("pong", resolve));
  slow.socket.ping();
  await pong;
  for (let i = 0; i < 20; i++) await other.step("QUERY", `SELECT ${i}`);
  expect(isAnswered).toBe(false); // twenty steps and a ping fit into one slow query
  const { data } = await answer;
  expect(data.observation.error_class).toMatch(ENDED); // and it ends by its limits, far below ten seconds
  await Promise.all([slow.close(), other.close()]);
});

test("metadata is empty and never required, and no gold is revealed", async () => {
  const { questions } = await smallDataSet();
  const talker = new Talker(server.url);
  const said: string[] = [];
  for (const { question_id } of questions) {
    said.push(JSON.stringify(await talker.ask({ type: "reset", data: { question_id } })));
    said.push(JSON.stringify(await talker.ask({ type: "state" })));
    said.push(JSON.stringify(await talker.step("ANSWER", "surely not this")));
    said.push(JSON.stringify(await talker.ask({ type: "state" })));
    said.push(JSON.stringify(await talker.ask({ type: "step", data: { action_type: "QUERY", argument: "oops" } })));
  }
  for (const split of ["train", "eval"]) said.push(JSON.stringify(await post(`${server.url}/sqlenv/tasks`, { split })));
  for (const path of ["/schema", "/metadata", "/openapi.json"]) said.push(JSON.stringify(await get(path)));
  const all = said.join("\n");
  expect(all).toContain('"metadata":{}');
  for (const { gold_sql } of questions) expect(all).not.toContain(JSON.stringify(gold_sql).slice(1, -1));
  expect(all).not.toContain("gold_");
  expect(all).not.toContain("tables_involved");
  await talker.close();
});

test("reward and done are next to the observation, not in it; nothing changes after the end", async () => {
  const { questions } = await smallDataSet();
  const { question_id, gold_answer } = questions[0]!;
  const talker = new Talker(server.url);
  const first = await talker.ask({ type: "reset", data: { question_id } });
  expect([first.data.reward, first.data.done]).toEqual([null, false]);
  for (const key of ["reward", "done"]) expect(first.data.observation).not.toHaveProperty(key);
  const right = await talker.step("ANSWER", gold_answer);
  expect(right.data.done).toBe(true);
  expect(right.data.reward).toBeGreaterThan(1);
  const after = await talker.step("QUERY", "SELECT 1");
  expect([after.data.reward, after.data.done]).toEqual([0, true]);
  expect(after.data.observation).toMatchObject({ error_class: "episode_done", budget_remaining: 14, step_count: 1 });
  expect((await talker.ask({ type: "state" })).data).toMatchObject({
    correctness: 1,
    done_reason: "answered",
    progress: 1,
  });
  await talker.close();
});

test("reset: extra keys are ignored, null is random, a seed is reproducible, a task selects its question", async () => {
  const talkers = [new Talker(server.url), new Talker(server.url)];
  const asked = async (data: object) =>
    Promise.all(talkers.map(async (talker) => (await talker.ask({ type: "reset", data })).data.observation.question));
  for (const seed of [0, 7, -1, "x"]) {
    const [a, b] = await asked({ seed, extra: { deep: true } });
    expect(a).toBe(b);
  }
  const drawn = new Set<string>();
  for (let i = 0; i < 8; i++) for (const question of await asked({ seed: null })) drawn.add(question);
  expect(drawn.size).toBeGreaterThan(2);
  expect(await get("/list_environments")).toEqual(["sqlenv"]);
  expect(await get("/sqlenv/splits")).toEqual([
    { name: "train", type: "train" },
    { name: "eval", type: "validation" },
  ]);
  const { num_tasks } = (await post(`${server.url}/sqlenv/num_tasks`, { split: "validation" })).body;
  expect(num_tasks).toBe(15);
  const { task } = (await post(`${server.url}/sqlenv/task`, { split: "eval", index: 3 })).body;
  expect(await asked({ split: "eval", index: 3 })).toEqual([task.question, task.question]);
  const { tasks } = (await post(`${server.url}/sqlenv/task_range`, { split: "eval", start: 2, stop: 4 })).body;
  expect(tasks[1]).toEqual(task);
  expect((await post(`${server.url}/sqlenv/task`, { split: "eval", index: 15 })).status).toBe(400);
  expect((await post(`${server.url}/other/tasks`, { split: "eval" })).status).toBe(404);
  await Promise.all(talkers.map((talker) => talker.close()));
});

test("MCP: an agent plays a whole episode with tools alone", async () => {
  const rpc = async (method: string, params: object = {}) =>
    (await post(`${server.url}/mcp`, { jsonrpc: "2.0", method, params, id: 1 })).body;
  const { session_id } = (await rpc("openenv/session/create")).result;
  const tools = (await rpc("tools/list", { session_id })).result.tools as Wire[];
  expect(tools.map(({ name }) => name)).toEqual(["start", "describe", "sample", "query", "answer", "act"]);
  for (const { inputSchema, input_schema } of tools) expect(inputSchema).toEqual(input_schema);
  const call = async (name: string, args: object) =>
    (await rpc("tools/call", { name, arguments: args, session_id })).result;
  const { questions } = await smallDataSet();
  const { question_id, question_text, gold_answer } = questions[1]!;
  const started = await call("start", { question_id });
  expect(started.data).toContain(question_text);
  expect(started.structured_content.system_prompt).toContain("ANSWER");
  expect((await call("describe", { table: "product" })).data).toContain("colour TEXT");
  expect((await call("act", { text: "query: SELECT count(*) FROM product WHERE colour = 'red'" })).data).toContain("3");
  const { structured_content } = await call("answer", { answer: gold_answer });
  expect(structured_content).toMatchObject({ done: true, outcome: { correctness: 1, done_reason: "answered" } });
  await rpc("openenv/session/close", { session_id });
});
