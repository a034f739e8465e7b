// Sessions recorded with SkyRL and open-rl: the remote engine sends the same requests and reads the same results.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { RemoteEngine } from "sqlenv/lm/engine";
import { expect, test } from "vitest";

type Body = { readonly base64: string } | object | null;
interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly request: Body;
  readonly status: number;
  readonly type: string;
  readonly reply: string | { readonly base64: string };
}
interface Recorded {
  readonly server: string;
  readonly exchanges: readonly Exchange[];
  readonly result: unknown;
}

/** Arrays of numbers of any kind as plain ones. */
function plain(value: unknown): unknown {
  if (value instanceof Float32Array || Array.isArray(value)) return Array.from(value, plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

test.each(["skyrl", "open-rl"])("a session recorded with %s is the same again", async (name) => {
  const file = new URL(`tinker-exchanges/${name}.json`, import.meta.url);
  const { exchanges, result } = JSON.parse(readFileSync(file, "utf8")) as Recorded;
  const left = [...exchanges];
  const sent: unknown[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const isProto = incoming.headers["content-type"]?.includes("protobuf");
    const request = isProto
      ? { base64: bytes.toString("base64") }
      : bytes.length > 0
        ? JSON.parse(bytes.toString())
        : null;
    sent.push({ method: incoming.method, path: incoming.url!.replace("/api/v1/", ""), request });
    const { status, type, reply } = left.shift()!;
    outgoing.writeHead(status, { "content-type": type });
    outgoing.end(typeof reply === "string" ? reply : Buffer.from(reply.base64, "base64"));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const engine = await RemoteEngine.connect({ url, baseModel: "MODEL", backoffMs: 1, lora: { rank: 2, seed: 7 } });
  const data = [{ tokens: [5, 9, 2, 7, 7, 3], weights: [0, 0, 1, 1, 1, 1] }];
  const loss = { type: "cross_entropy" };
  const again = {
    first: await engine.forwardBackward(data, { loss }),
    step: await engine.optimStep({ learning_rate: 0.01 }),
    sample: await engine.sample({ prompt: [5, 9, 2], max_new_tokens: 4, stop_ids: [2], key: ["recorded"] }),
    second: await engine.forwardBackward(data, { loss }),
    logprobs: await engine.logprobs(data),
    refused: await engine.forwardBackward([{ tokens: [5, 9], weights: [0, 1] }], { loss }).then(() => null),
  };
  await engine.close();
  expect(sent).toEqual(exchanges.map(({ method, path, request }) => ({ method, path, request })));
  expect(plain(again)).toEqual(result);
  server.close();
});
