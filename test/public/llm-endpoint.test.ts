// The LLM endpoint over real HTTP: the bundled starter by its name, as OpenAI's clients use it.
import { connect } from "node:net";
import { evaluate, modelPlayer, SQLEnvironment } from "sqlenv";
import { COMPLETIONS_PER_CLIENT, MAX_MESSAGE_BYTES, startServer } from "sqlenv/apps/openenv";
import { chatPlayer, formatObservation, getSystemPrompt } from "sqlenv/gym/players";
import { Chat } from "sqlenv/lm/chat";
import { loadModelAndTokenizer } from "sqlenv/lm/engine/node";
import { afterAll, describe, expect, test } from "vitest";
import { serve, until, type Wire } from "../helpers/server-place.ts";
import { smallDataSet } from "../helpers/small-data.ts";

const data = await smallDataSet();
const model = await loadModelAndTokenizer("starter", { trains: false, device: "cpu", threads: 1 });
const chat = new Chat(model);
const { cacheTokens } = model.engine.facts;
const server = await startServer(data, { port: 0, threads: 1, llm: { name: "starter", chat, cacheTokens } });
/** The same model without tokens that end a reply. */
const tireless = new Chat({ ...model, turns: { ...model.turns, stopIds: [] } });
const endlessLlm = { name: "starter", chat: tireless, cacheTokens };
const endless = await startServer(data, { port: 0, threads: 1, llm: endlessLlm });
afterAll(async () => {
  await Promise.all([server.close(), endless.close()]);
  await model.engine.close();
});

const observation = new SQLEnvironment(data).reset({ question_id: data.questions[0]!.question_id });
const messages = [
  { role: "system", content: getSystemPrompt() },
  { role: "user", content: formatObservation(observation) },
] as const;
const GREEDY = { model: "starter", messages, temperature: 0, max_tokens: 40 };
/** A completion that only the limit of tokens ends, on the server `endless`. */
const LONG = { model: "starter", messages, temperature: 2, seed: 5, max_tokens: 1_500 };

const url = `${server.url}/v1/chat/completions`;
const endlessUrl = `${endless.url}/v1/chat/completions`;
async function ask(body: object | string, to = url, init: RequestInit = {}): Promise<{ status: number; body: Wire }> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await fetch(to, { method: "POST", body: text, ...init });
  return { status: response.status, body: (await response.json()) as Wire };
}

/** The events of a stream. */
async function stream(body: object, to = url): Promise<(Wire | "[DONE]")[]> {
  const response = await fetch(to, { method: "POST", body: JSON.stringify({ ...body, stream: true }) });
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const events = (await response.text()).split("\n\n").filter((event) => event.startsWith("data: "));
  return events.map((event) => (event === "data: [DONE]" ? "[DONE]" : JSON.parse(event.slice("data: ".length))));
}

const metric = async (name: string, from = endless.url) =>
  Number(new RegExp(`^${name} (\\S+)$`, "m").exec(await (await fetch(`${from}/metrics`)).text())?.[1]);
const idle = () => until(async () => (await metric("sqlenv_completions_running")) === 0);

describe("a completion", () => {
  test("has the tokens of the model's own player", async () => {
    const prompt = model.turns.start(messages[0].content, messages[1].content);
    const own = await model.engine.sample({
      prompt,
      max_new_tokens: 40,
      stop_ids: model.turns.stopIds,
      temperature: 0,
      key: [0],
    });
    const { status, body } = await ask({ ...GREEDY, return_token_ids: true, logprobs: true });
    expect(status).toBe(200);
    expect(body).toMatchObject({ object: "chat.completion", model: "starter", prompt_token_ids: prompt });
    expect(body.id).toMatch(/^chatcmpl-/);
    const [choice] = body.choices;
    const text = model.tokenizer.decode(own.tokens, { skipSpecial: true });
    expect(choice).toMatchObject({ index: 0, finish_reason: "stop", token_ids: own.tokens });
    expect(choice.message).toEqual({ role: "assistant", content: text, refusal: null });
    const { content } = choice.logprobs;
    expect(content.map((token: Wire) => token.logprob)).toEqual(own.logprobs);
    const bytes = content.slice(0, -1).flatMap((token: Wire) => token.bytes);
    expect(Buffer.from(bytes).toString("utf8")).toBe(text);
    expect(content.at(-1)).toMatchObject({ token: "<|im_end|>", top_logprobs: [] });
    const { prompt_tokens, completion_tokens, total_tokens } = body.usage;
    expect([prompt_tokens, completion_tokens]).toEqual([prompt.length, own.tokens.length]);
    expect(total_tokens).toBe(prompt.length + own.tokens.length);
  });

  test("episodes that the chat player plays over it are those of the local model", async () => {
    const decode = (ids: readonly number[]) => model.tokenizer.decode(ids, { skipSpecial: true });
    const prompt = { prompt: "compact" } as const;
    const options = { split: "eval", questions: 4, step_budget: 4, seed: 1 } as const;
    const local = await evaluate(data, modelPlayer({ ...model, decode, prompt }), { ...options, concurrency: 8 });
    const player = chatPlayer({ baseUrl: `${server.url}/v1`, model: "starter", prompt, maxTokens: 256 });
    const remote = await evaluate(data, player, { ...options, concurrency: 8 });
    expect(remote.errors).toBe(0);
    expect(remote).toMatchObject({ success_rate: local.success_rate, mean_reward: local.mean_reward });
    expect(remote.mean_steps).toBe(local.mean_steps);
  });

  test("a stream has the same text, tokens and log-probs, with the usage last", async () => {
    const whole = await ask({ ...GREEDY, logprobs: true, return_token_ids: true });
    const more = { logprobs: true, return_token_ids: true, stream_options: { include_usage: true } };
    const events = await stream({ ...GREEDY, ...more });
    expect(events.pop()).toBe("[DONE]");
    const { usage, choices } = events.pop() as Wire;
    expect(choices).toEqual([]);
    expect({ ...usage, prompt_tokens_details: 0 }).toEqual({ ...whole.body.usage, prompt_tokens_details: 0 });
    const parts = (events as Wire[]).map((event) => event.choices[0]);
    expect(parts[0].delta).toEqual({ role: "assistant", content: "" });
    expect(parts.at(-1)).toMatchObject({ delta: {}, finish_reason: "stop" });
    const [choice] = whole.body.choices;
    expect(parts.map(({ delta }) => delta.content ?? "").join("")).toBe(choice.message.content);
    expect(parts.flatMap(({ token_ids = [] }) => token_ids)).toEqual(choice.token_ids);
    expect(parts.flatMap(({ logprobs }) => logprobs?.content ?? [])).toEqual(choice.logprobs.content);
    expect(new Set((events as Wire[]).map(({ id, object }) => `${id} ${object}`)).size).toBe(1);
  });

  test("a stream of random tokens never splits a character", async () => {
    const body = JSON.stringify({ ...LONG, max_tokens: 300, stream: true });
    const response = await fetch(endlessUrl, { method: "POST", body });
    const decoder = new TextDecoder("utf-8", { fatal: true });
    for await (const bytes of response.body!) expect(() => decoder.decode(bytes)).not.toThrow();
  });

  test("n, seed and stop are honoured", async () => {
    const sampled = { ...GREEDY, temperature: 1.5, n: 3, seed: 7 };
    const first = (await ask(sampled)).body.choices.map(({ message }: Wire) => message.content);
    expect(new Set(first).size).toBe(3);
    const again = (await stream(sampled)).flatMap((event) => (event === "[DONE]" ? [] : event.choices)) as Wire[];
    const joined = [0, 1, 2].map((i) =>
      again.map(({ index, delta }) => (index === i ? (delta.content ?? "") : "")).join(""),
    );
    expect(joined).toEqual(first);
    const [{ message }] = (await ask(GREEDY)).body.choices;
    const stop = message.content.slice(3, 6);
    const stopped = (await ask({ ...GREEDY, stop })).body.choices[0];
    expect(stopped).toMatchObject({ finish_reason: "stop", message: { content: message.content.split(stop)[0] } });
    expect((await ask({ ...GREEDY, max_tokens: 2 })).body.choices[0].finish_reason).toBe("length");
  });

  test("sixteen at once give what each gives alone", async () => {
    const requests = Array.from({ length: 16 }, (_, seed) => ({ ...GREEDY, temperature: 1, seed }));
    const together = await Promise.all(requests.map((request) => ask(request)));
    expect(together.every(({ status }) => status === 200)).toBe(true);
    for (const i of [0, 7, 15])
      expect((await ask(requests[i]!)).body.choices[0].message).toEqual(together[i]!.body.choices[0].message);
  });
});

describe("an error", () => {
  test.each([
    [{ ...GREEDY, model: "gpt" }, 404, { code: "model_not_found", param: "model" }],
    [{ ...GREEDY, max_tokens: 5_000 }, 400, { code: "context_length_exceeded" }],
    [
      { ...GREEDY, messages: [{ role: "user", content: "x".repeat(60_000) }] },
      400,
      { code: "context_length_exceeded" },
    ],
    [
      { ...GREEDY, tools: [{ type: "function", function: { name: "q" } }] },
      400,
      { code: "unsupported_parameter", param: "tools" },
    ],
    [{ ...GREEDY, top_logprobs: 3 }, 400, { param: "top_logprobs" }],
    [{ ...GREEDY, response_format: { type: "json_schema" } }, 400, { param: "response_format" }],
    [{ model: "starter" }, 400, { param: "messages" }],
    ["{", 400, { type: "invalid_request_error" }],
    ["", 400, {}],
    [`${"[".repeat(10_000)}`, 400, {}],
    ["x".repeat(MAX_MESSAGE_BYTES + 1), 413, {}],
  ])("of request %# has OpenAI's shape and status", async (body, status, error) => {
    const answer = await ask(body);
    expect(answer.status).toBe(status);
    expect(Object.keys(answer.body)).toEqual(["error"]);
    expect(Object.keys(answer.body.error)).toEqual(["message", "type", "param", "code"]);
    expect(answer.body.error).toMatchObject(error);
  });

  test("of a method, a wrong key or a missing model has it too", async () => {
    expect((await ask(GREEDY, `${server.url}/v1/models`)).body.error.message).toBe("Method Not Allowed");
    const guarded = await serve({ apiKeys: ["secret"], threads: 1 });
    const models = (headers: Record<string, string>) => fetch(`${guarded.url}/v1/models`, { headers });
    const refused = await models({ authorization: "Bearer wrong" });
    expect([refused.status, ((await refused.json()) as Wire).error.type]).toEqual([401, "authentication_error"]);
    const missing = await models({ authorization: "Bearer secret" });
    expect([missing.status, ((await missing.json()) as Wire).error.code]).toEqual([404, "model_not_found"]);
    await guarded.close();
  });
});

test("GET /v1/models names the model and its context", async () => {
  const { data: list } = (await (await fetch(`${server.url}/v1/models`)).json()) as Wire;
  expect(list).toMatchObject([{ id: "starter", object: "model", owned_by: "sqlenv", max_model_len: 2_048 }]);
});

describe("a client that has gone", () => {
  test("ends its stream's sequence, and its waiting reply's", async () => {
    const abort = new AbortController();
    const body = JSON.stringify({ ...LONG, stream: true });
    const response = await fetch(endlessUrl, { method: "POST", body, signal: abort.signal });
    await response.body!.getReader().read();
    await until(async () => (await metric("sqlenv_completions_running")) === 1);
    abort.abort();
    await idle();

    const gone = new AbortController();
    const reply = ask(LONG, endlessUrl, { signal: gone.signal }).catch(() => "gone");
    await until(async () => (await metric("sqlenv_completions_running")) === 1);
    gone.abort();
    expect(await reply).toBe("gone");
    await idle();
    expect(await metric("sqlenv_held_bytes")).toBe(0);
  });

  test("one that sends half a request and closes leaves nothing", async () => {
    const socket = connect(endless.port, "127.0.0.1");
    socket.write("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{");
    socket.end();
    await new Promise((resolve) => socket.once("close", resolve).resume());
    expect((await ask(GREEDY, endlessUrl)).status).toBe(200);
    await until(async () => (await metric("sqlenv_held_bytes")) === 0);
  });
});

test("a client's completions are bounded, and the environment answers meanwhile", async () => {
  const abort = new AbortController();
  const quarter = { ...LONG, n: COMPLETIONS_PER_CLIENT / 4 };
  const many = Array.from({ length: 4 }, () => ask(quarter, endlessUrl, { signal: abort.signal }).catch(() => "gone"));
  const counted = async () =>
    (await metric("sqlenv_completions_running")) + (await metric("sqlenv_completions_waiting"));
  await until(async () => (await counted()) > (3 / 4) * COMPLETIONS_PER_CLIENT);
  const { status, body } = await ask(quarter, endlessUrl);
  expect([status, body.error.code]).toEqual([429, "rate_limit_exceeded"]);
  expect((await fetch(`${endless.url}/reset`, { method: "POST" })).status).toBe(200);
  abort.abort();
  expect(await Promise.all(many)).toEqual(["gone", "gone", "gone", "gone"]);
  await until(async () => (await counted()) === 0);
});

test("a shutdown lets running streams finish", async () => {
  const other = await startServer(data, { port: 0, threads: 1, llm: endlessLlm });
  const events = stream({ ...LONG, max_tokens: 200 }, `${other.url}/v1/chat/completions`);
  await until(async () => (await metric("sqlenv_completions_running", other.url)) === 1);
  await other.close();
  expect((await events).at(-1)).toBe("[DONE]");
});
