import { expect, test } from "vitest";
import { HeldBytes } from "../held-bytes.ts";
import { EventStream } from "./event-stream.ts";

function setUp() {
  const held = new HeldBytes({ perClient: 1_000, total: 1_000 });
  let cancelled = 0;
  const stream = new EventStream({ client: "a", held, onCancel: () => cancelled++ });
  return { held, stream, reader: stream.body.getReader(), cancelled: () => cancelled };
}

const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

test("unread events are counted as held, and read together", async () => {
  const { held, stream, reader } = setUp();
  stream.send({ a: 1 });
  stream.send({ b: "é" });
  expect(held.total).toBe('data: {"a":1}\n\ndata: {"b":"é"}\n\n'.length);
  expect(text((await reader.read()).value)).toBe('data: {"a":1}\n\ndata: {"b":"é"}\n\n');
  expect(held.total).toBe(0);
  stream.done();
  expect(text((await reader.read()).value)).toBe("data: [DONE]\n\n");
  expect((await reader.read()).done).toBe(true);
});

test("a reader waits for the next event, and for the end", async () => {
  const { stream, reader } = setUp();
  const [first, second] = [reader.read(), reader.read()];
  stream.send({ a: 1 });
  expect(text((await first).value)).toBe('data: {"a":1}\n\n');
  stream.end();
  expect((await second).done).toBe(true);
});

test("a client that leaves gives back what it has not read, and later events are dropped", async () => {
  const { held, stream, reader, cancelled } = setUp();
  stream.send({ a: 1 });
  await reader.cancel();
  expect([held.total, cancelled()]).toEqual([0, 1]);
  stream.send({ b: 1 });
  stream.done();
  expect(held.total).toBe(0);
});
