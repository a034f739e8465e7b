// Slots of sessions, and who loses one when there are too few.
import { expect, test } from "vitest";
import { built } from "../../../test/helpers/built.ts";
import { poolSpec } from "../../../test/helpers/server-place.ts";
import { Sessions } from "./sessions.ts";
import type * as ThreadPoolModule from "./thread-pool.ts";

const { ThreadPool } = (await import(built("apps/openenv/thread-pool.js"))) as typeof ThreadPoolModule; // it has threads

test("unused HTTP sessions end after a minute, others after the idle time", async () => {
  const { pool, sessions } = await twoSlots();
  const ended: string[] = [];
  const open = (name: string, kind: "http" | "socket", client = "a") =>
    sessions.take(client, kind, (reason) => ended.push(`${name} ${reason}`), 0);
  const used = open("used", "http");
  used.isUsed = true;
  open("unused", "http");
  sessions.reap(59_000);
  expect(sessions.active).toBe(2);
  sessions.reap(61_000);
  expect(ended).toEqual(["unused idle"]);
  const socket = open("socket", "socket");
  socket.isUsed = true;
  expect(() => sessions.take("b", "http", () => {}, 500_000)).toThrow(/Server at capacity: 2\/2/); // both are in use
  sessions.take("b", "http", () => {}, 700_000); // and now idle for more than ten minutes
  expect(ended).toEqual(["unused idle", "used evicted"]);
  expect(ended).toHaveLength(2);
  sessions.reap(3_601_000);
  expect(ended.slice(2)).toEqual(["socket idle"]);
  sessions.plain("c", 0);
  sessions.plain("d", 0);
  sessions.plain("e", 0); // no more than there are slots, the longest idle goes
  expect(pool.sessions).toBe(2);
  sessions.reap(4_000_000);
  expect(pool.sessions).toBe(0);
  await pool.close();
});

test("a newly opened socket is not evicted", async () => {
  const { pool, sessions } = await twoSlots();
  const ended: string[] = [];
  for (const name of ["first", "second"]) sessions.take("a", "socket", (reason) => ended.push(`${name} ${reason}`), 0);
  expect(() => sessions.take("b", "socket", () => {}, 9_000)).toThrow(/Server at capacity: 2\/2/);
  sessions.take("b", "socket", () => {}, 11_000);
  expect(ended).toEqual(["first evicted"]);
  await pool.close();
});

/** Sessions with two slots. */
async function twoSlots() {
  const pool = new ThreadPool(await poolSpec(), { threads: 1 });
  await pool.ready();
  return { pool, sessions: new Sessions(pool, { max: 2, perClient: 10, idleSeconds: 3_600 }) };
}
