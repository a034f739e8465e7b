// The environment threads: a session lost with its thread is notified and continues in a new one.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { ENDED, poolSpec, SLOW, until } from "../../../test/helpers/server-place.ts";
import type * as ThreadPoolModule from "./thread-pool.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const { ThreadPool } = (await import(resolve(root, "dist/apps/openenv/thread-pool.js"))) as typeof ThreadPoolModule;
const spec = await poolSpec();
const frame = (message: object) => ({ verb: "frame", text: JSON.stringify(message) }) as const;
const reset = frame({ type: "reset", data: { seed: 1 } });
const step = frame({ type: "step", data: { action_type: "QUERY", argument: "SELECT 1" } });

test("a dead thread is replaced, and only its own sessions are affected", async () => {
  const lost: number[] = [];
  const pool = new ThreadPool(spec, { threads: 2, onLost: (_, sessions) => lost.push(sessions) });
  await pool.ready();
  for (const session of ["a", "b", "c"]) await pool.open(session, "one"); // a and c share a thread
  for (const session of ["a", "b", "c"]) await pool.ask(session, "one", reset);
  await pool.ask("b", "one", step);
  await pool.ask("c", "one", step);
  const fatal = pool.ask("a", "one", null as never); // what no thread survives
  await expect(fatal).rejects.toMatchObject({ code: "lost", what: "the environment was lost; reset to start again" });
  expect(lost).toEqual([2]);
  expect((await pool.ask("b", "one", frame({ type: "state" }))).text).toContain('"step_count":1');
  expect((await pool.ask("c", "one", step)).kind).toBe("EXECUTION_ERROR"); // a new environment, not reset yet
  expect((await pool.ask("c", "one", reset)).kind).toBe("reset");
  expect((await pool.ask("c", "one", step)).kind).toBe("step");
  pool.drop("c");
  await expect(pool.ask("c", "one", step)).rejects.toMatchObject({ code: "unknown_session" });
  await pool.close();
});

test("a request that cannot be sent to a thread leaves nothing queued", async () => {
  const pool = new ThreadPool(spec, { threads: 1 });
  await pool.ready();
  await pool.open("a", "one");
  const unsendable = { verb: "frame", text: () => {} } as never;
  await expect(pool.ask("a", "one", unsendable)).rejects.toThrow(/could not be cloned/);
  expect(pool.waiting).toBe(0); // else the watch would take the thread for one that hangs
  expect((await pool.ask("a", "one", reset)).kind).toBe("reset");
  await pool.close();
});

test("a light client waits for at most one statement of a heavy one", async () => {
  const pool = new ThreadPool(spec, { threads: 1, replyWithinMs: 60_000 });
  await pool.ready();
  const order: string[] = [];
  const ask = async (session: string, client: string, sql: string) => {
    const text = frame({ type: "step", data: { action_type: "QUERY", argument: sql } });
    const { text: reply } = await pool.ask(session, client, text);
    order.push(client);
    return JSON.parse(reply!).data.observation.error_class as string | null;
  };
  const heavies = ["h1", "h2", "h3"];
  for (const session of heavies) await pool.open(session, session);
  await pool.open("light", "light");
  for (const session of [...heavies, "light"]) await pool.ask(session, session, reset);
  // One client sends four statements before anyone else asks, two more clients two each.
  const heavy = Array.from({ length: 4 }, () => ask("h1", "h1", SLOW));
  for (const client of ["h2", "h3"]) heavy.push(ask(client, client, SLOW), ask(client, client, SLOW));
  await until(() => new Set(order).size === 3); // so that it is known who is heavy
  for (let i = 0; i < 4; i++) {
    const before = order.length;
    expect(await ask("light", "light", `SELECT ${i}`)).toBeNull();
    expect(order.length - before).toBeLessThanOrEqual(2); // the one that was running, and its own
  }
  const ends = await Promise.all(heavy);
  expect(ends.every((end) => ENDED.test(end ?? ""))).toBe(true);
  const turns = order.filter((client) => client !== "light");
  expect(turns.slice(0, 3).sort()).toEqual(heavies); // those who came later did not wait for all of the first one's
  expect(pool.waiting).toBe(0);
  await pool.close();
});

test("a request queued too long is rejected without running", async () => {
  const pool = new ThreadPool(spec, { threads: 1, replyWithinMs: 100, silentMs: 20_000 });
  await pool.ready();
  await pool.open("a", "one");
  await pool.open("b", "two");
  await pool.ask("a", "one", reset);
  const slow = frame({ type: "step", data: { action_type: "QUERY", argument: SLOW } });
  const first = pool.ask("a", "one", slow);
  await expect(pool.ask("b", "two", reset)).rejects.toMatchObject({ code: "late" });
  expect((await first).kind).toBe("step");
  await pool.close();
});

test("an expired request is not started, and says so", async () => {
  const pool = new ThreadPool(spec, { threads: 1, replyWithinMs: -1 });
  await pool.ready();
  await expect(pool.open("a", "one")).rejects.toMatchObject({ code: "late" });
  await pool.close();
});

test("a hanging thread is terminated", async () => {
  const lost: string[] = [];
  const pool = new ThreadPool(spec, { threads: 1, silentMs: 150, onLost: (reason) => lost.push(reason) });
  await pool.ready();
  await until(() =>
    pool.open("a", "one").then(
      () => true,
      () => false,
    ),
  );
  const again = () => pool.ask("a", "one", reset).catch(() => null);
  await until(async () => (await again())?.kind === "reset"); // on a busy machine even this may be silent for too long
  const before = lost.length;
  const hanging = Array.from({ length: 8 }, () =>
    pool.ask("a", "one", frame({ type: "step", data: { action_type: "QUERY", argument: SLOW } })),
  );
  const ends = await Promise.allSettled(hanging);
  expect(ends.some(({ status }) => status === "rejected")).toBe(true);
  await until(() => lost.length > before);
  await until(async () => (await again())?.kind === "reset"); // in a new thread
  await pool.close();
});
