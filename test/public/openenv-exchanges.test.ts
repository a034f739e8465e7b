// Exchanges recorded from the stock OpenEnv server, played against ours: types, keys, codes and order must agree.
// The recording's environment was a stub, so its own fields and texts were left out, and its two magic words mean
// something else here: "raise" makes an environment raise, which ours does for a step before any reset; "nan" is any query.
import { readFileSync } from "node:fs";
import { WIRE_ERRORS } from "sqlenv/apps/openenv";
import { afterAll, expect, test } from "vitest";
import { post, serve, Talker, until, type Wire } from "../helpers/server-place.ts";

interface Exchange {
  readonly via: "http" | "ws" | "ws-mcp";
  readonly method?: string;
  readonly path?: string;
  readonly body?: string | null;
  readonly send?: string;
  readonly binary?: string;
  readonly expect: Wire;
}

const file = new URL("../reference/openenv-exchanges.jsonl", import.meta.url);
const exchanges = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Exchange);

const server = await serve();
const fresh = await serve(); // never reset
afterAll(() => Promise.all([server.close(), fresh.close()]));

const sortedProblems = (problems: Wire[]) =>
  problems.map(({ type, loc }) => [type, loc]).sort((a, b) => (String(a) < String(b) ? -1 : 1));
const bySpelling = (problems: unknown[]) => [...problems].sort((a, b) => (String(a) < String(b) ? -1 : 1));

function rpcShape(reply: Wire): number | "result" {
  expect("error" in reply).not.toBe("result" in reply);
  if (!("error" in reply)) return "result";
  expect(Object.keys(reply.error).sort()).toEqual(["code", "data", "message"]);
  return reply.error.code;
}

/** The parts of a reply that the recording specifies. */
function shapeOf(reply: Wire, expected: Wire): Wire {
  const { type, data = reply } = reply;
  const shape: Wire = {};
  if ("type" in expected) shape.type = type;
  if ("rpc" in expected) shape.rpc = rpcShape(data);
  if ("code" in expected) shape.code = data.code;
  if ("keys" in expected) shape.keys = Object.keys(data).sort();
  if ("problems" in expected) shape.problems = sortedProblems(data.errors ?? data.detail);
  if ("has" in expected) shape.has = expected.has.filter((key: string) => key in data);
  if ("observation" in expected) shape.observation = Object.keys(data.observation).sort();
  if ("tool_error" in expected) shape.tool_error = data.observation.error?.error_type ?? null;
  return shape;
}

let sessionId = "";

async function overHttp({ method, path, body, expect: expected }: Exchange): Promise<Wire> {
  const text = body?.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, sessionId);
  const raises = text?.includes('"raise"') ?? false;
  const target = raises ? fresh.url : server.url;
  // Tools start an episode themselves, so to raise, a missing question is requested.
  const sent = raises
    ? text!.replace('"query", "arguments": {"sql": "raise"}', '"start", "arguments": {"question_id": "x"}')
    : text;
  const response = await fetch(target + path, { method: method!, ...(sent !== undefined && { body: sent }) });
  const content = response.headers.get("content-type")!.split(";")[0];
  const reply = content === "application/json" ? ((await response.json()) as Wire) : {};
  if (reply.result?.session_id) sessionId = reply.result.session_id;
  const { status: _status, content: _content, ...rest } = expected;
  return { status: response.status, content, ...shapeOf(reply, rest) };
}

test("every recorded exchange agrees", async () => {
  const talkers = new Map<string, Talker>();
  const differing: unknown[] = [];
  for (const exchange of exchanges) {
    const { via, send, binary, expect: expected } = exchange;
    const wanted = { ...expected, ...(expected.problems && { problems: bySpelling(expected.problems) }) };
    let got: Wire;
    if (via === "http") got = await overHttp(exchange);
    else {
      const raises = send?.includes('"raise"') ?? false;
      const talker = raises
        ? new Talker(server.url) // without an episode
        : (talkers.get(via) ?? new Talker(server.url, via === "ws" ? "/ws" : "/mcp"));
      if (!raises) talkers.set(via, talker);
      const message = raises
        ? send!.replace('"query", "arguments": {"sql": "raise"}', '"start", "arguments": {"question_id": "x"}')
        : send;
      await talker.send(message ?? Buffer.from(binary!));
      const { close, ...rest } = wanted as Wire;
      got = Object.keys(rest).length > 0 ? shapeOf(await talker.next(), rest) : {};
      if (close !== undefined) {
        got.close = (await talker.closed).code;
        talkers.delete(via);
      }
      if (raises) await talker.close();
    }
    if (JSON.stringify(sorted(got)) !== JSON.stringify(sorted(wanted))) differing.push({ exchange, got });
  }
  expect(differing).toEqual([]);
  expect(exchanges.length).toBeGreaterThan(70);
  for (const talker of talkers.values()) await talker.close();
});

function sorted(value: Wire): Wire {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

test("pipelined requests are answered in order", async () => {
  const talker = new Talker(server.url);
  await talker.send({ type: "reset", data: { seed: 1 } });
  await talker.send({ type: "step", data: { action_type: "QUERY", argument: "SELECT 1" } });
  await talker.send({ type: "state" });
  const replies = [await talker.next(), await talker.next(), await talker.next()];
  expect(replies.map(({ type }) => type)).toEqual(["observation", "observation", "state"]);
  expect(replies[2]!.data.step_count).toBe(1);
  await talker.close();
});

test("at capacity: the handshake succeeds, an unprompted error follows, the socket closes with 1000, HTTP still resets", async () => {
  const full = await serve({ maxSessions: 2 });
  const talkers = [new Talker(full.url), new Talker(full.url)];
  for (const talker of talkers) expect((await talker.ask({ type: "state" })).data.step_count).toBe(0);
  const third = new Talker(full.url);
  expect(await third.next()).toEqual({
    type: "error",
    data: {
      message: "Server at capacity: 2/2 sessions active. Cannot accept new connections.",
      code: "CAPACITY_REACHED",
      active_sessions: 2,
      max_sessions: 2,
    },
  });
  expect((await third.closed).code).toBe(1000);
  const create = { jsonrpc: "2.0", method: "openenv/session/create", id: 1 };
  const { body } = await post(`${full.url}/mcp`, create);
  expect(body).toMatchObject({ id: 1, error: { code: -32000, data: { active_sessions: 2, max_sessions: 2 } } });
  const overMcp = new Talker(full.url, "/mcp");
  expect((await overMcp.next()).error.code).toBe(-32000);
  expect((await post(`${full.url}/reset`)).status).toBe(200);
  await talkers[0]!.ask({ type: "reset" });
  await talkers[0]!.close();
  const next = new Talker(full.url);
  expect((await next.ask({ type: "state" })).type).toBe("state"); // the slot is free again
  await full.close();
});

test("all seven error codes are produced, each leaving the connection as the protocol says", async () => {
  const seen: string[] = [];
  const talker = new Talker(server.url);
  const code = async (message: object | string) => seen.push((await talker.ask(message)).data.code);
  await code("{");
  await code({ type: "jump" });
  await code({ type: "step" });
  await code({ type: "step", data: { action_type: "QUERY", argument: "SELECT 1" } }); // before any reset
  expect((await talker.ask({ type: "reset" })).type).toBe("observation"); // still usable
  await code("null");
  expect((await talker.closed).code).toBe(1000);

  const full = await serve({ maxSessions: 1 });
  const holder = new Talker(full.url);
  await holder.opened;
  const refused = new Talker(full.url);
  seen.push((await refused.next()).data.code);
  expect((await refused.closed).code).toBe(1000);
  await full.close();

  const broken = await serve({ rewards: { exec_ok: -1 } }); // no environment can be created with these
  const unlucky = new Talker(broken.url);
  const { data } = await unlucky.next();
  seen.push(data.code);
  expect(data.factory_name).toBe("SQLEnvironment");
  expect((await unlucky.closed).code).toBe(1000);
  await until(() => broken.sessions === 0);
  await broken.close();
  expect([...seen].sort()).toEqual([...WIRE_ERRORS].sort());
});
