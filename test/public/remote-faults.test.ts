// Faults between a remote engine and its server: nothing hangs, and nothing is trained twice.
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadBaseModel, type RunningTinkerServer, startTinkerServer } from "sqlenv/apps/tinker";
import { loadRemoteModel, startTrainableEngine } from "sqlenv/rl/node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeTinyFolder } from "../helpers/tiny-folder.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-faults-"));
const folder = join(scratch, "model");
await writeTinyFolder(folder);
const model = await loadBaseModel(folder, { threads: 1 });
const serve = (port = 0) => startTinkerServer(model, { port, pollMs: 50, checkpoints: join(scratch, "checkpoints") });

/**
 * What a proxy does with a request: pass it on, answer itself, drop the connection before or after the server has it or
 * in the middle of the reply, or never answer.
 */
type Fault =
  | "drop-before"
  | "drop-after"
  | "cut"
  | "silence"
  | { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> };
/** Called with the path and how often it was asked for. */
type Plan = (path: string, count: number) => Fault | undefined;

let server: RunningTinkerServer;
let proxy: Server;
let plan: Plan = () => undefined;
let counts = new Map<string, number>();

async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const path = incoming.url!.replace("/api/v1/", "");
  const count = (counts.get(path) ?? 0) + 1;
  counts.set(path, count);
  const fault = plan(path, count);
  if (fault === "drop-before") return void incoming.socket.destroy();
  if (fault === "silence") return void incoming.resume();
  if (typeof fault === "object") {
    incoming.resume();
    return void outgoing.writeHead(fault.status, fault.headers).end(fault.body ?? "");
  }
  const { method, headers } = incoming;
  const passed = request({ port: server.port, path: incoming.url, method, headers });
  passed.on("error", () => incoming.socket.destroy());
  incoming.pipe(passed);
  const [reply] = (await once(passed, "response").catch(() => [])) as [IncomingMessage?];
  if (!reply) return;
  if (fault === "drop-after") {
    reply.resume();
    await once(reply, "end");
    return void incoming.socket.destroy();
  }
  outgoing.writeHead(reply.statusCode!, reply.headers);
  if (fault === "cut") {
    const [first] = (await once(reply, "data")) as [Buffer];
    reply.resume();
    return void outgoing.write(first.subarray(0, first.length / 2), () => incoming.socket.destroy());
  }
  reply.pipe(outgoing);
}

beforeAll(async () => {
  server = await serve();
  proxy = createServer((incoming, outgoing) => void forward(incoming, outgoing));
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
});
afterAll(async () => {
  proxy.closeAllConnections();
  proxy.close();
  await server.close();
  rmSync(scratch, { recursive: true, force: true });
});

const data = [{ tokens: [5, 9, 2, 7, 7, 3, 11, 40], weights: [0, 1, 1, 1, 1, 1, 1, 1] }];
const loss = { loss: { type: "cross_entropy" } };
const ask = { prompt: [5, 9, 2], max_new_tokens: 6, stop_ids: [], key: [1] };

function remote(options = {}) {
  counts = new Map();
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return loadRemoteModel(folder, {
    ...{ url, backoffMs: 1, retrySeconds: 20, timeoutSeconds: 30, pollSeconds: 10, lora: { rank: 4, seed: 7 } },
    ...options,
  });
}

/** Two steps and a sample: what a training does. */
async function train(faults: Plan) {
  plan = faults;
  const { engine } = await remote();
  try {
    const losses: number[] = [];
    for (let step = 0; step < 2; step++) {
      const [{ loss: value }] = await Promise.all([
        engine.forwardBackward(data, loss),
        engine.optimStep({ learning_rate: 0.05 }),
      ]);
      losses.push(value);
    }
    const { tokens } = await engine.sample(ask);
    const [logprobs] = await engine.logprobs(data);
    return { losses, tokens, logprobs };
  } finally {
    plan = () => undefined;
    await engine.close();
  }
}

/** A plan that has a fault the first times that a path is asked for. */
const at = (wanted: string, fault: Fault, times = 1): Plan => {
  return (path, count) => (path === wanted && count <= times ? fault : undefined);
};

describe("a training has the same result", () => {
  let expected: Awaited<ReturnType<typeof train>>;
  beforeAll(async () => {
    expected = await train(() => undefined);
    const local = await startTrainableEngine(folder, { lora: { r: 4, alpha: 32, seed: 7 }, threads: 1 });
    const { loss: first } = await local.forwardBackward(data, loss);
    expect(expected.losses[0]).toBe(first);
    await local.close();
  });

  const survived: readonly (readonly [string, Plan])[] = [
    ["429 with Retry-After", at("forward_backward", { status: 429, headers: { "retry-after": "0" } }, 2)],
    ["429 on samples, as back-pressure", at("asample", { status: 429 }, 3)],
    [
      "408 on a request and on polls",
      (path, n) => (/optim|retrieve/.test(path) && n <= 2 ? { status: 408 } : undefined),
    ],
    [
      "503 and 500 while the server is busy",
      (_, n) => (n === 1 ? { status: 503 } : n === 2 ? { status: 500 } : undefined),
    ],
    ["409, a conflict that passes", at("optim_step", { status: 409 })],
    ["410, a result that is no longer kept", at("retrieve_future", { status: 410, body: '{"detail":"gone"}' }, 2)],
    ["a connection dropped before the server has the request", (_, n) => (n === 1 ? "drop-before" : undefined)],
    ["a connection dropped after the server has taken a step", at("optim_step", "drop-after", 2)],
    ["connections dropped after every first request", (_, n) => (n === 1 ? "drop-after" : undefined)],
    [
      "a slow result: the server asks to try again",
      at("retrieve_future", { status: 200, body: '{"type":"try_again","queue_state":"paused_capacity"}' }, 4),
    ],
    ["replies that are cut off in the middle", (_, n) => (n === 1 ? "cut" : undefined)],
    ["a bare 400 by a proxy", at("retrieve_future", { status: 400 }, 2)],
  ];
  test.each(survived)("after %s", async (_, faults) => {
    expect(await train(faults)).toEqual(expected);
  });
});

describe("an error says what happened and what to do", () => {
  test("a reply of another shape", async () => {
    const { engine: sampler } = await remote();
    await sampler.sample(ask);
    for (const body of [
      '{"sequences":[]}',
      '{"sequences":[{"tokens":[1,2],"logprobs":[0],"stop_reason":"stop"}]}',
      '{"type":"sample"}',
      '{"sequences":[{"tokens":[1,2],"logprobs":[null,-1],"stop_reason":"stop"}]}',
      '{"sequences":[{"tokens":[1,2],"logprobs":[3,-1],"stop_reason":"stop"}]}',
      '{"sequences":[{"tokens":[1,99999],"logprobs":[-1,-1],"stop_reason":"stop"}]}',
      '{"sequences":[{"tokens":[1,1,1,1,1,1,1],"logprobs":[-1,-1,-1,-1,-1,-1,-1],"stop_reason":"length"}]}',
      "null",
    ]) {
      plan = (path) => (path === "retrieve_future" ? { status: 200, body } : undefined);
      await expect(sampler.sample(ask), body).rejects.toMatchObject({ code: "engine_reply" });
    }
    plan = () => undefined;
    await sampler.close();
    plan = (path) =>
      path === "retrieve_future" && counts.has("forward_backward")
        ? { status: 200, body: '{"loss_fn_outputs":[{"logprobs":{"data":[0]}}],"metrics":{}}' }
        : undefined;
    const { engine } = await remote();
    await expect(engine.forwardBackward(data, loss)).rejects.toThrow("1 log-probs for 7 targets");
    plan = () => undefined;
    // Nothing is sent after a failure: the server's step would have no gradient, or half of one.
    await expect(engine.optimStep({ learning_rate: 1 })).rejects.toMatchObject({ code: "engine_reply" });
    expect(counts.get("optim_step")).toBeUndefined();
    await engine.close();
  });

  test("log-probs that are no numbers: a model that has diverged, whose next step is not taken", async () => {
    const body = '{"loss_fn_outputs":[{"logprobs":{"data":[-1,-1,null,-1,-1,-1,-1]}}],"metrics":{"loss:sum":null}}';
    plan = (path) => (path === "retrieve_future" && counts.has("forward_backward") ? { status: 200, body } : undefined);
    const { engine } = await remote();
    await expect(engine.forwardBackward(data, loss)).rejects.toThrow("a log-prob that is not a finite number: NaN");
    plan = () => undefined;
    await expect(engine.optimStep({ learning_rate: 1 })).rejects.toMatchObject({ code: "engine_failed" });
    expect(counts.get("optim_step")).toBeUndefined();
    await engine.close();
  });

  test("a request that the server refuses, with its words", async () => {
    const { engine } = await remote();
    const bad = engine.forwardBackward([{ tokens: [1, 9_999], weights: [0, 1] }], loss);
    await expect(bad).rejects.toMatchObject({ code: "engine_failed" });
    await expect(bad).rejects.toThrow("token id outside the vocabulary");
    await engine.close();
    await expect(remote({ baseModel: "other" }).then(({ engine }) => engine.sample(ask))).rejects.toThrow(
      "this server has model, not other",
    );
  });

  test("a key that is wrong, a server that is not there, and one that never ends", async () => {
    plan = () => ({ status: 401, body: '{"detail":"Unauthorized"}' });
    await expect(remote()).rejects.toThrow(/refused client\/config: HTTP 401, Unauthorized; set TINKER_API_KEY/);
    plan = () => "drop-before";
    await expect(remote({ retrySeconds: 0.1 })).rejects.toMatchObject({ code: "engine_unreachable" });
    plan = (path) =>
      path === "retrieve_future" ? { status: 200, body: '{"type":"try_again","queue_state":"active"}' } : undefined;
    const { engine } = await remote({ timeoutSeconds: 0.2 });
    await expect(engine.sample(ask)).rejects.toMatchObject({ code: "engine_timeout" });
    plan = () => undefined;
    await engine.close();
  });

  test("a server that falls silent is asked again, and can be left", async () => {
    plan = (path, n) => (path === "retrieve_future" && n <= 2 ? "silence" : undefined);
    const { engine } = await remote({ pollSeconds: 0.1 });
    expect((await engine.sample(ask)).tokens).toHaveLength(6);
    await engine.close();
    plan = (path) => (path === "retrieve_future" ? "silence" : undefined);
    const { engine: left } = await remote({ timeoutSeconds: 3_600 });
    const never = left.sample(ask).catch((error: unknown) => error);
    while (!counts.has("retrieve_future")) await new Promise(setImmediate);
    await left.close();
    expect(await never).toMatchObject({ code: "engine_unreachable", message: "the engine is closed" });
    plan = () => undefined;
  });

  test("a server that was restarted has lost the session, and its checkpoints continue", async () => {
    const { engine } = await remote();
    await engine.forwardBackward(data, loss);
    await engine.optimStep({ learning_rate: 0.05 });
    await engine.saveState(join(scratch, "state"));
    const { loss: before } = await engine.forwardBackward(data, loss);
    await server.close();
    server = await serve();
    await expect(engine.sample(ask)).rejects.toThrow(/HTTP 404, no model .* sqlenv train --resume/);
    await engine.close();
    const { engine: next } = await remote();
    await next.loadState(join(scratch, "state"));
    expect((await next.forwardBackward(data, loss)).loss).toBe(before);
    await next.close();
  });
});

describe("the server", () => {
  const post = async (path: string, body: object, headers = {}) => {
    const response = await fetch(`${server.url}/api/v1/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  const result = async ({ body: { request_id } }: Awaited<ReturnType<typeof post>>) => {
    for (;;) {
      const { body } = await post("retrieve_future", { request_id });
      if (body.type !== "try_again") return body;
    }
  };

  test("runs requests in the order of their numbers, and each once", async () => {
    const { session_id } = (await post("create_session", { tags: [] })).body;
    const lora_config = { rank: 4, seed: 7 };
    const { model_id } = await result(await post("create_model", { session_id, base_model: "model", lora_config }));
    const step = await post("optim_step", { model_id, seq_id: 2, adam_params: { learning_rate: 0.1 } });
    expect((await post("retrieve_future", { request_id: step.body.request_id })).body.type).toBe("try_again");
    const tensor = (values: number[], dtype: string) => ({ data: values, dtype, shape: [values.length] });
    const datum = {
      model_input: {
        chunks: [
          { type: "encoded_text", tokens: [5, 9] },
          { type: "encoded_text", tokens: [2] },
        ],
      },
      loss_fn_inputs: { target_tokens: tensor([9, 2, 7], "int64"), weights: tensor([0, 1, 1], "float32") },
    };
    const pass = { model_id, seq_id: 1, forward_backward_input: { data: [datum], loss_fn: "cross_entropy" } };
    const first = await post("forward_backward", pass);
    expect((await post("forward_backward", pass)).body).toEqual(first.body);
    expect(await result(first)).toMatchObject({ loss_fn_outputs: [{ logprobs: { shape: [3] } }] });
    expect(await result(step)).toMatchObject({ metrics: { step: 1, skipped: 0, grad_norm: expect.any(Number) } });
    const late = await post("optim_step", { model_id, seq_id: 0, adam_params: {} });
    expect(await result(late)).toMatchObject({ error: "seq_id 0 has been used; next is 3", category: "user" });
    expect(await post(`sessions/${session_id}/finish`, {})).toMatchObject({ status: 200 });
    expect(await post("get_info", { model_id })).toMatchObject({ status: 404 });
  });

  test("refuses what it does not serve, and clients without a key", async () => {
    const guarded = await startTinkerServer(model, { port: 0, apiKeys: ["secret"], maxModels: 1 });
    await expect(loadRemoteModel(folder, { url: guarded.url })).rejects.toThrow("HTTP 401");
    const { engine } = await loadRemoteModel(folder, { url: guarded.url, apiKey: "secret" });
    await expect(engine.sample({ ...ask, max_new_tokens: 4_000 })).rejects.toThrow("the model's context is 1024");
    await engine.close();
    await guarded.close();
    expect(await post("create_session", { tags: [] }, { origin: "http://evil.example" })).toMatchObject({
      status: 403,
    });
    expect(
      await post("asample", { prompt: { chunks: [] }, sampling_params: {}, topk_prompt_logprobs: 3 }),
    ).toMatchObject({
      status: 422,
      body: { detail: "topk_prompt_logprobs: top-k log-probs of the prompt are not served here" },
    });
  });
});
