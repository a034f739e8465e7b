import { describe, expect, test } from "vitest";
import { CompletionQueue } from "./queue.ts";

const LIMITS = { tokens: 100, running: 3, perClient: 4, total: 6 };
const { signal } = new AbortController();

/** A queue whose work ends when told. */
function setUp() {
  const queue = new CompletionQueue(LIMITS);
  const started: string[] = [];
  const finish = new Map<string, () => void>();
  const run = (client: string, name: string, tokens = 10, own = signal) =>
    queue.run({ client, tokens, signal: own }, (working) => {
      started.push(name);
      return new Promise<string>((resolve, reject) => {
        finish.set(name, () => resolve(name));
        working.addEventListener("abort", () => reject(working.reason));
      });
    });
  return { queue, started, finish, run };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("the completion queue", () => {
  test("runs as many as the tokens and the count allow, in the order of a client's requests", async () => {
    const { started, finish, run } = setUp();
    const all = [run("a", "1", 60), run("a", "2", 60), run("a", "3", 10)];
    await settled();
    expect(started).toEqual(["1"]); // 2 does not fit, and 3 does not overtake it
    finish.get("1")!();
    await settled();
    expect(started).toEqual(["1", "2", "3"]);
    for (const name of ["2", "3"]) finish.get(name)!();
    expect(await Promise.all(all)).toEqual(["1", "2", "3"]);
  });

  test("prefers the client that used less", async () => {
    const { started, finish, run } = setUp();
    for (const name of ["a1", "a2", "a3", "a4"]) void run("a", name);
    void run("b", "b1");
    await settled();
    expect(started).toEqual(["a1", "a2", "a3"]);
    for (const name of ["a1", "a2"]) finish.get(name)!();
    await settled();
    expect(started).toEqual(["a1", "a2", "a3", "b1", "a4"]);
  });

  test("one that is larger than the limit runs alone", async () => {
    const { started, run } = setUp();
    void run("a", "large", 1_000);
    void run("a", "small");
    await settled();
    expect(started).toEqual(["large"]);
  });

  test("refuses more than a client or all clients may have", () => {
    const { queue, run } = setUp();
    for (let i = 0; i < 4; i++) void run("a", `${i}`);
    expect(() => queue.check("a", 1)).toThrow(/a client may have 4/);
    expect(() => queue.check("b", 2)).not.toThrow();
    expect(() => queue.check("b", 3)).toThrow(/try again later/);
  });

  test("one that is aborted while it waits leaves the queue", async () => {
    const { queue, started, finish, run } = setUp();
    const abort = new AbortController();
    const first = run("a", "1", 100);
    const gone = run("a", "2", 100, abort.signal);
    const last = run("a", "3", 100);
    await settled();
    abort.abort();
    await expect(gone).rejects.toThrow();
    finish.get("1")!();
    await first;
    await settled();
    expect(started).toEqual(["1", "3"]);
    finish.get("3")!();
    await last;
    expect([queue.running, queue.waiting]).toEqual([0, 0]);
  });

  test("a drain refuses new ones, waits for the others, and then aborts them", async () => {
    const { queue, finish, run } = setUp();
    const one = run("a", "1");
    const draining = queue.drain(3_600);
    expect(() => queue.check("a", 1)).toThrow(/shutting down/);
    await settled();
    finish.get("1")!();
    await draining;
    expect(await one).toBe("1");

    const other = setUp();
    const lost = other.run("a", "1");
    await settled();
    await Promise.all([other.queue.drain(0), expect(lost).rejects.toThrow(/shutting down/)]);
  });
});
