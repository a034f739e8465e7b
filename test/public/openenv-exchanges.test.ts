// Exchanges recorded from the stock OpenEnv servers, replayed against ours: statuses, types, keys, codes, messages and order
// must agree. The recordings are made by test/reference/openenv/exchanges.py, whose stub raises for the argument "raise";
// ours raises for a step before any reset, and in a tool for a question that does not exist.
import { readFileSync } from "node:fs";
import { WIRE_ERRORS } from "sqlenv/apps/openenv";
import { afterAll, describe, expect, test } from "vitest";
import { post, serve, Talker, until, type Wire } from "../helpers/server-place.ts";

interface Exchange {
  readonly group: string;
  readonly via: "http" | "ws" | "ws-mcp" | "leave";
  readonly on?: string;
  readonly method?: string;
  readonly path?: string;
  readonly body?: string | null;
  readonly send?: string | null;
  readonly binary?: string;
  readonly expect?: Wire;
}

/** Where the MCP specification wins over the stock server, which knows only tools. */
const MCP_WINS: Readonly<Record<string, Wire>> = {
  initialize: { status: 200, content: "application/json", keys: ["id", "jsonrpc", "result"], rpc: "result" },
  ping: { status: 200, content: "application/json", keys: ["id", "jsonrpc", "result"], rpc: "result" },
  "notifications/initialized": { status: 202, content: "" },
};

/** What 0.10 sends and 0.3 did not. Clients of 0.3 ignore it. */
const STATE = ["correctness", "done_reason", "operational", "progress", "question_id", "rules", "step_budget"];
const SINCE_3 = new Set(["metadata", "reset_observation", ...STATE]);

const server = await serve({ ratePerClient: 0 });
const fresh = await serve(); // never reset
afterAll(() => Promise.all([server.close(), fresh.close()]));

const recording = (version: string) =>
  readFileSync(new URL(`../reference/openenv/exchanges-${version}.jsonl`, import.meta.url), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Exchange);

/** What the recording keeps of a reply; the same as `shape` in the script that made it. */
function shapeOf(reply: Wire, expected: Wire, session: string): Wire {
  if (Array.isArray(reply)) return { list: true };
  const shape: Wire = { keys: Object.keys(reply).sort() };
  let data = reply;
  if ("type" in reply && "data" in reply) {
    data = reply.data;
    Object.assign(shape, { type: reply.type, data: Object.keys(data).sort() });
  }
  if ("jsonrpc" in data) {
    expect("error" in data).not.toBe("result" in data);
    shape.rpc = "error" in data ? data.error.code : "result";
    if (data.error) expect(Object.keys(data.error).sort()).toEqual(["code", "data", "message"]);
    if (data.result?.session_id) {
      const { session_id: _, ...rest } = data.result;
      shape.result = rest;
    }
    data = data.error ?? data;
  }
  if (typeof data.code === "string") shape.code = data.code;
  if ("said" in expected) shape.said = String(data.message ?? data.detail).replace(session || "-----", "{session}");
  const errors = data.errors ?? data.detail;
  if (Array.isArray(errors)) shape.problems = errors.map(({ type, loc }) => [type, loc]);
  if ("done" in data) {
    shape.observation = Object.keys(data.observation).sort();
    if ("tool_name" in data.observation) shape.tool_error = data.observation.error?.error_type ?? null;
  }
  return shape;
}

/** A shape with its lists in a fixed order, without what `isOld` leaves out. */
function normal(shape: Wire, isOld: boolean): Wire {
  const keys = (list: string[]) => (isOld ? list.filter((key) => !SINCE_3.has(key)) : list);
  const entries = Object.entries(shape).map(([key, value]) => {
    if (key === "problems") return [key, value.map((problem: unknown) => JSON.stringify(problem)).sort()];
    return [key, ["keys", "data", "observation"].includes(key) ? keys(value) : value];
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** To raise, a tool is asked for a question that does not exist: tools start an episode themselves. */
const raising = (text: string) => text.replace(/"query", "arguments": \{"sql": "raise"\}/, RAISES);
const RAISES = '"start", "arguments": {"question_id": "x"}';

class Replay {
  readonly #talkers = new Map<string, Talker>();
  #session = "";

  async play(exchange: Exchange): Promise<Wire> {
    const { via, on = "", send, binary, expect: expected = {} } = exchange;
    if (via === "http") return this.#http(exchange, expected);
    if (via === "leave") {
      await this.#talkers.get(on)!.close();
      this.#talkers.delete(on);
      return {};
    }
    const raises = send?.includes('"raise"') ?? false;
    const talker = raises ? new Talker(server.url) : this.#talker(on, this.#fill(exchange.path!));
    if (binary !== undefined) await talker.send(Buffer.from(binary));
    else if (send) await talker.send(this.#fill(raising(send)));
    const { close, ...rest } = expected;
    const got = Object.keys(rest).length > 0 ? shapeOf(await talker.next(), rest, this.#session) : {};
    if (close !== undefined) {
      got.close = (await talker.closed).code;
      this.#talkers.delete(on);
    }
    if (raises) await talker.close();
    return got;
  }

  async end(): Promise<void> {
    for (const talker of this.#talkers.values()) await talker.close();
  }

  async #http({ method, path, body }: Exchange, expected: Wire): Promise<Wire> {
    const target = body?.includes('"raise"') ? fresh.url : server.url;
    const sent = body ? { body: this.#fill(raising(body)) } : {};
    const response = await fetch(target + path, { method: method!, ...sent });
    const content = (response.headers.get("content-type") ?? "").split(";")[0];
    const shape: Wire = { status: response.status, content };
    if (content !== "application/json") return shape;
    const reply = (await response.json()) as Wire;
    if (reply.result?.session_id) this.#session = reply.result.session_id;
    return { ...shape, ...shapeOf(reply, expected, this.#session) };
  }

  #talker(name: string, path: string): Talker {
    const talker = this.#talkers.get(name) ?? new Talker(server.url, path);
    this.#talkers.set(name, talker);
    return talker;
  }

  #fill(text: string): string {
    return text.replaceAll("{session}", this.#session);
  }
}

describe.each(["0.3.0", "0.10.0"])("OpenEnv %s", (version) => {
  const exchanges = recording(version);

  test.each([...new Set(exchanges.map(({ group }) => group))])("every recorded exchange agrees: %s", async (group) => {
    const replay = new Replay();
    const differing: unknown[] = [];
    for (const exchange of exchanges.filter((one) => one.group === group)) {
      const method = /"method": "([^"]+)"/.exec(exchange.body ?? "")?.[1] ?? "";
      const wanted = normal(MCP_WINS[method] ?? exchange.expect ?? {}, version === "0.3.0");
      const got = normal(await replay.play(exchange), version === "0.3.0");
      if (JSON.stringify(got) !== JSON.stringify(wanted)) differing.push({ exchange, got });
    }
    expect(differing).toEqual([]);
    await replay.end();
  });
});

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
