import { expect, test } from "vitest";
import { SQLEnvClient } from "./client.ts";
import type { SocketLike } from "./socket.ts";

/** A server that answers every message with the same reply. */
function answering(reply: object): SocketLike {
  const socket: SocketLike = {
    ...{ onopen: null, onmessage: null, onerror: null, onclose: null, close: () => {} },
    send: () => queueMicrotask(() => socket.onmessage?.({ data: JSON.stringify(reply) })),
  };
  queueMicrotask(() => socket.onopen?.(undefined as never));
  return socket;
}

test.each([{}, { observation: null }, { observation: { question: "How many?", step_count: 0 } }])(
  "an observation that lacks fields is refused: %j",
  async (data) => {
    const client = new SQLEnvClient("http://localhost", { socket: () => answering({ type: "observation", data }) });
    await expect(client.reset({})).rejects.toMatchObject({
      code: "bad_reply",
      what: "the server sent an observation that is not complete",
    });
  },
);
