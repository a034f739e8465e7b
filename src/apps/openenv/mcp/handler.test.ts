// MCP sessions over time: starting, never initialized, attached, closing, and too many.
import { afterAll, beforeEach, expect, test } from "vitest";
import { built } from "../../../../test/helpers/built.ts";
import { poolSpec } from "../../../../test/helpers/server-place.ts";
import { Metrics } from "../metrics.ts";
import { Sessions } from "../sessions.ts";
import type * as ThreadPoolModule from "../thread-pool.ts";
import { answerMcp, type McpCaller } from "./handler.ts";

const { ThreadPool } = (await import(built("apps/openenv/thread-pool.js"))) as typeof ThreadPoolModule; // it has threads
const pool = new ThreadPool(await poolSpec(), { threads: 1 });
await pool.ready();
afterAll(() => pool.close());

let sessions: Sessions;
beforeEach(() => {
  sessions = new Sessions(pool, { max: 3, perClient: 2, idleSeconds: 3_600 });
});
const later = (seconds: number) => performance.now() + seconds * 1000;
const ask = async (method: string, params: object = {}, caller: Partial<McpCaller> = {}) => {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const from = { client: "a", sessionId: undefined, version: undefined, ...caller };
  const { text, sessionId } = await answerMcp(body, from, { pool, sessions, metrics: new Metrics() });
  return { ...(text === null ? {} : JSON.parse(text)), sessionId };
};
const initialize = (client = "a") => ask("initialize", { protocolVersion: "2025-11-25" }, { client });

test("a client that never sends `initialized` loses its session after a minute, others when idle", async () => {
  await initialize();
  const { sessionId } = await initialize();
  await ask("notifications/initialized", {}, { sessionId });
  sessions.reap(later(59));
  expect(sessions.active).toBe(2);
  sessions.reap(later(61));
  expect(sessions.active).toBe(1);
  expect((await ask("ping", {}, { sessionId })).result).toEqual({});
  sessions.reap(later(3_700));
  expect([sessions.active, pool.sessions]).toEqual([0, 0]);
});

test("a flood of sessions is refused with the counts, and takes no more slots", async () => {
  const replies = await Promise.all(Array.from({ length: 20 }, () => initialize()));
  expect(replies.filter(({ result }) => result)).toHaveLength(2);
  expect(replies.at(-1)).toMatchObject({ error: { code: -32000, data: { active_sessions: 2, max_sessions: 2 } } });
  expect((await initialize("b")).result).toBeDefined();
  expect((await ask("openenv/session/create", {}, { client: "c" })).error).toBeUndefined(); // an unused one makes room
  expect([sessions.active, pool.sessions]).toEqual([3, 3]);
  sessions.reap(later(61));
  expect([sessions.active, pool.sessions]).toEqual([0, 0]);
});

test("a session that is starting cannot be attached to, used or closed", async () => {
  const slot = sessions.take("a", "http");
  const message = `Session ${slot.id} is still initializing`;
  expect(() => sessions.attach(slot.id, "a", () => {})).toThrow(new RegExp(`^${message}$`));
  for (const method of ["tools/list", "openenv/session/close"])
    expect((await ask(method, { session_id: slot.id })).error).toMatchObject({
      code: -32600,
      message: `${message}; retry shortly`,
    });
  await slot.ready;
  sessions.attach(slot.id, "a", () => {});
  sessions.release(slot.id);
});

test("an attached session is not idle, closes when it detaches, and can be evicted like a socket", async () => {
  const { result } = await ask("openenv/session/create");
  const ended: string[] = [];
  const slot = sessions.attach(result.session_id, "a", (reason) => ended.push(reason));
  sessions.reap(later(7_200));
  expect(sessions.active).toBe(1);
  expect((await ask("openenv/session/close", result)).result).toEqual({ ...result, closed: false, closing: true });
  expect((await ask("tools/list", result)).result.tools).toBeDefined();
  sessions.detach(slot);
  expect((await ask("openenv/session/close", result)).error.message).toBe(`Unknown session_id: ${result.session_id}`);
  const next = (await ask("openenv/session/create")).result;
  sessions.attach(next.session_id, "a", (reason) => ended.push(reason));
  sessions.take("a", "http");
  sessions.take("b", "http");
  expect(() => sessions.take("c", "http")).not.toThrow(); // another one, unused and not attached, makes room
  expect(ended).toEqual([]);
  for (const id of ["a", "b", "c"]) sessions.reap(later(3_700 + id.length));
  expect(sessions.get(next.session_id, "a")?.isAttached).toBe(true);
  sessions.release(next.session_id);
  expect([sessions.active, pool.sessions]).toEqual([0, 0]);
});
