// The environment threads: a session that is lost with its thread is told so, and plays on in a new one.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type * as PoolModule from "../src/server/pool.ts";
import type { ThreadSpec } from "../src/server/protocol.ts";
import { until } from "./server-place.ts";
import { smallDataSet } from "./small-data.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const { Pool } = (await import(resolve(root, "dist/server/pool.js"))) as typeof PoolModule;
const { name, questions, file } = await smallDataSet();
const names = [...new Set(questions.map(({ database_name }) => database_name))];
const spec: ThreadSpec = {
  name,
  questions,
  files: new Map(names.map((database) => [database, file!(database)])),
  doubleQuotedStrings: false,
  environment: { step_budget: 10, seed: 1 },
};
const frame = (message: object) => ({ verb: "frame", text: JSON.stringify(message) }) as const;
const reset = frame({ type: "reset", data: { seed: 1 } });
const step = frame({ type: "step", data: { action_type: "QUERY", argument: "SELECT 1" } });

test("a thread that dies is replaced, and only its own sessions notice", async () => {
  const lost: number[] = [];
  const pool = new Pool(spec, { threads: 2, onLost: (_, sessions) => lost.push(sessions) });
  await pool.ready();
  for (const session of ["a", "b", "c"]) await pool.open(session); // a and c share a thread
  for (const session of ["a", "b", "c"]) await pool.ask(session, reset);
  await pool.ask("b", step);
  await pool.ask("c", step);
  const fatal = pool.ask("a", null as never); // what no thread survives
  await expect(fatal).rejects.toMatchObject({ code: "lost", what: "the environment was lost; reset to start again" });
  expect(lost).toEqual([2]);
  expect((await pool.ask("b", frame({ type: "state" }))).text).toContain('"step_count":1');
  expect((await pool.ask("c", step)).kind).toBe("EXECUTION_ERROR"); // a new environment, not reset yet
  expect((await pool.ask("c", reset)).kind).toBe("reset");
  expect((await pool.ask("c", step)).kind).toBe("step");
  pool.drop("c");
  await expect(pool.ask("c", step)).rejects.toMatchObject({ code: "unknown_session" });
  await pool.close();
});

test("a request that cannot be sent to a thread leaves nothing waiting", async () => {
  const pool = new Pool(spec, { threads: 1 });
  await pool.ready();
  await pool.open("a");
  const unsendable = { verb: "frame", text: () => {} } as never;
  await expect(pool.ask("a", unsendable)).rejects.toThrow(/could not be cloned/);
  expect(pool.waiting).toBe(0); // else the watch would take the thread for one that hangs
  expect((await pool.ask("a", reset)).kind).toBe("reset");
  await pool.close();
});

test("what waited too long is not begun, and said so", async () => {
  const pool = new Pool(spec, { threads: 1, replyWithinMs: -1 });
  await pool.ready();
  await expect(pool.open("a")).rejects.toMatchObject({ code: "late" });
  await pool.close();
});

test("a thread that hangs is ended", async () => {
  const lost: string[] = [];
  const pool = new Pool(spec, { threads: 1, silentMs: 400, onLost: (reason) => lost.push(reason) });
  await pool.ready();
  await pool.open("a");
  await pool.ask("a", reset);
  const slow = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT sum(i) FROM n";
  const hanging = Array.from({ length: 8 }, () =>
    pool.ask("a", frame({ type: "step", data: { action_type: "QUERY", argument: slow } })),
  );
  const ends = await Promise.allSettled(hanging);
  expect(ends.some(({ status }) => status === "rejected")).toBe(true);
  await until(() => lost.length > 0);
  const again = () => pool.ask("a", reset).catch(() => null);
  await until(async () => (await again())?.kind === "reset"); // in a new thread
  await pool.close();
});
