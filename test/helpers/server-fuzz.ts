// Sends almost valid messages: each gets a protocol message or a close, and no thread is lost.
import fc from "fast-check";
import { expect } from "vitest";
import type { RunningServer } from "../../src/apps/openenv/index.ts";
import { Talker, until, type Wire } from "./server-place.ts";

type Way = "ws" | "ws-mcp" | "reset" | "step" | "mcp" | "tasks";

interface Case {
  readonly way: Way;
  readonly text: string;
}

const action = { action_type: "QUERY", argument: "SELECT 1" };
const rpc = (method: string, params: object) => ({ jsonrpc: "2.0", id: 1, method, params });
const call = rpc("tools/call", { name: "query", arguments: { sql: "SELECT 1" } });
const VALID: Readonly<Record<Way, readonly object[]>> = {
  ws: [
    { type: "reset", data: { seed: 1, episode_id: "e", split: "train", index: 0 } },
    { type: "reset", data: { question_id: "q" } },
    { type: "step", data: action },
    { type: "step", data: { text: "QUERY: SELECT 1" } },
    { type: "step", data: { action_type: "DESCRIBE", argument: "product" } },
    { type: "step", data: { type: "call_tool", tool_name: "sample", arguments: { table: "product" } } },
    { type: "state" },
    { type: "mcp", data: call },
    { type: "close" },
  ],
  "ws-mcp": [
    call,
    rpc("tools/list", {}),
    rpc("openenv/session/create", {}),
    rpc("openenv/session/close", { session_id: "s" }),
  ],
  reset: [{ seed: 1, episode_id: "e" }, { question_id: "q" }, {}],
  step: [{ action, timeout_s: 3, request_id: "r" }, { action: { text: "ANSWER: 3" } }],
  mcp: [call, rpc("tools/list", { session_id: null }), rpc("openenv/session/close", { session_id: "s" })],
  tasks: [
    { split: "train", index: 1 },
    { split: "eval", start: 0, stop: 2 },
  ],
};

/** Values that often break parsers. */
const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.constantFrom(1e308, -0, 2 ** 53, "__proto__", "constructor", "toString", "\u0000", "\ud800", "", [], {}, null),
  fc.integer({ min: 1, max: 200 }).map((depth) => JSON.parse("[".repeat(depth) + "]".repeat(depth)) as unknown),
  fc.string({ unit: "binary", maxLength: 40 }),
);

/** Puts a value somewhere into a message, under a key it has or a new one. */
const graft = fc.record({ key: fc.oneof(fc.nat(20), fc.string({ maxLength: 12 })), value: odd, depth: fc.nat(3) });
function grafted(
  message: unknown,
  { key, value, depth }: { key: number | string; value: unknown; depth: number },
): unknown {
  if (typeof message !== "object" || message === null) return value;
  const copy = structuredClone(message) as Record<string, unknown>;
  const keys = Object.keys(copy);
  const name = typeof key === "string" ? key : (keys[key % Math.max(1, keys.length)] ?? "x");
  copy[name] = depth > 0 ? grafted(copy[name], { key, value, depth: depth - 1 }) : value;
  return copy;
}

/** Cuts, repeats or overwrites part of a text. */
const edit = fc.record({
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  length: fc.nat(12),
  insert: fc.oneof(
    fc.string({ unit: "binary", maxLength: 8 }),
    fc.constantFrom("{", "[", '"', "\\", ",", "\\u0000", "1e999", "}"),
  ),
  times: fc.constantFrom(1, 1, 1, 70, 3_000),
});
function edited(
  text: string,
  { at, length, insert, times }: { at: number; length: number; insert: string; times: number },
) {
  const place = Math.floor(at * text.length);
  return text.slice(0, place) + insert.repeat(times) + text.slice(place + length);
}

const cases: fc.Arbitrary<Case> = fc
  .constantFrom<Way>("ws", "ws", "ws", "ws-mcp", "reset", "step", "mcp", "tasks")
  .chain((way) =>
    fc.record({
      way: fc.constant(way),
      text: fc
        .tuple(fc.constantFrom(...VALID[way]), fc.array(graft, { maxLength: 2 }), fc.array(edit, { maxLength: 2 }))
        .map(([message, grafts, edits]) =>
          edits.reduce(edited, JSON.stringify(grafts.reduce(grafted, message as unknown)) ?? ""),
        ),
    }),
  );

const LANES = 8;
const TYPES = ["observation", "state", "mcp", "error"];
const STATUSES = [200, 400, 404, 413, 422, 500];
const PATHS = { reset: "/reset", step: "/step", mcp: "/mcp", tasks: "/sqlenv/task" } as const;

/** Sends `count` messages, the same for the same seed, and checks every answer. */
export async function fuzz(server: RunningServer, count: number, seed: number): Promise<void> {
  const all = fc.sample(cases, { numRuns: count, seed });
  let next = 0;
  await Promise.all(
    Array.from({ length: LANES }, async () => {
      const talkers = new Map<Way, Talker>();
      for (let one = all[next++]; one; one = all[next++]) await answered(server.url, one, talkers);
      await Promise.all([...talkers.values()].map((talker) => talker.close()));
    }),
  );
  await until(() => server.sessions === 0);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).not.toContain("sqlenv_threads_lost_total");
  expect(metrics).toContain("\nsqlenv_requests_waiting 0\n");
  expect(metrics).toContain("\nsqlenv_held_bytes 0\n");
}

async function answered(url: string, { way, text: sent }: Case, talkers: Map<Way, Talker>): Promise<void> {
  const text = JSON.stringify(sent.slice(0, 300)); // as failures show it
  if (way === "ws" || way === "ws-mcp") {
    const talker = talkers.get(way) ?? new Talker(url, way === "ws" ? "/ws" : "/mcp");
    talkers.set(way, talker);
    await talker.send(sent);
    const reply = await Promise.race([talker.next(), talker.closed]);
    if (!("code" in reply && "reason" in reply)) check(way, reply, text);
    else expect([1000, 1009], text).toContain(reply.code); // asked for, or too large
    // A message that is not an object gets a reply, then a close.
    if ("code" in reply || reply.data?.code === "SESSION_ERROR") {
      await talker.closed;
      talkers.delete(way);
    }
    return;
  }
  const response = await fetch(url + PATHS[way], { method: "POST", body: sent });
  expect(STATUSES, text).toContain(response.status);
  const body = await response.text();
  if (response.status === 500) expect([text, response.headers.get("x-error")]).toEqual([text, expect.any(String)]);
  else if (way === "mcp" && response.status === 200) check(way, JSON.parse(body) as Wire, text);
  else expect([text, JSON.parse(body)]).toEqual([text, expect.any(Object)]);
}

function check(way: Way, reply: Wire, text: string): void {
  if (way === "ws") expect(TYPES, text).toContain(reply.type);
  else {
    expect([text, reply.jsonrpc]).toEqual([text, "2.0"]);
    expect("error" in reply, text).not.toBe("result" in reply);
  }
}
