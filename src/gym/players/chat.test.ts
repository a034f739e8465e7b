import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import type { DataSet } from "../data/index.ts";
import { SQLEnvironment } from "../env/index.ts";
import { type ChatError, type ChatOptions, chatClient, chatPlayer } from "./chat.ts";
import { getSystemPrompt, promptFor } from "./prompts/prompt.ts";

interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: { model: string; messages: { role: string; content: string }[]; [key: string]: unknown };
}

type Answer = (received: Received, response: ServerResponse, count: number) => void;

let server: Server | undefined;
let data: DataSet;
beforeAll(async () => {
  data = await smallDataSet();
});
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
  server = undefined;
});

/** Starts an endpoint on a free port that records requests and lets `answer` write the replies. */
async function endpoint(answer: Answer): Promise<{ baseUrl: string; received: Received[] }> {
  const received: Received[] = [];
  server = createServer(async (request: IncomingMessage, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { authorization } = request.headers;
    received.push({ path: request.url ?? "", authorization, body: JSON.parse(text) as Received["body"] });
    answer(received.at(-1)!, response, received.length);
  });
  await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, received };
}

function reply(response: ServerResponse, content: string | null): void {
  json(response, 200, { choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }] });
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

const USER = [{ role: "user", content: "hello" }] as const;

/** Makes a request and returns its error and the delays before retries. */
async function failureOf(options: Partial<ChatOptions> & { baseUrl: string }) {
  const waits: number[] = [];
  const complete = chatClient({ model: "m", wait: async (ms) => void waits.push(ms), ...options });
  const error = await complete(USER).then(
    () => undefined,
    (thrown: ChatError) => thrown,
  );
  return { error: error!, waits };
}

describe("chatPlayer", () => {
  test("plays an episode as one growing conversation", async () => {
    const turns = [
      "DESCRIBE: product",
      "<think>count them</think>QUERY: SELECT count(*) FROM product",
      "hm",
      null,
      "ANSWER: 5",
    ];
    const { baseUrl, received } = await endpoint((_, response, count) => reply(response, turns[count - 1]!));
    const player = chatPlayer({
      baseUrl,
      model: "tiny",
      apiKey: "sk-secret",
      temperature: 0.5,
      maxTokens: 64,
      seed: 3,
    });
    const env = new SQLEnvironment(data);
    let observation = env.reset({ question_id: "shop_train_000" });
    const policy = player.start({ seed: 1, question: env.reveal() });
    const decisions = [];
    while (!observation.done) {
      const decision = (await policy(observation))!;
      decisions.push(decision);
      observation = env.step(decision.action);
    }
    expect(env.outcome.correctness).toBe(1);
    expect(decisions.map(({ text }) => text)).toEqual(turns.map((text) => text ?? ""));
    expect(decisions.map(({ parse_error }) => parse_error?.code ?? null)).toEqual([
      null,
      null,
      "action_parse",
      "action_parse",
      null,
    ]);

    const { path, authorization, body } = received[4]!;
    expect(path).toBe("/v1/chat/completions");
    expect(authorization).toBe("Bearer sk-secret");
    expect(body).toMatchObject({ model: "tiny", temperature: 0.5, max_tokens: 64, seed: 3 });
    expect(body).not.toHaveProperty("stream");
    expect(body.messages.map(({ role }) => role).join(" ")).toBe(`system${" user assistant".repeat(4)} user`);
    expect(body.messages[0]!.content).toBe(promptFor({ prompt: "instruct" }).system);
    expect(body).toMatchObject({ stop: ["\nResult:\n", "\nError: ", "\nSteps left: "] });
    expect(player.prompt_id).toBe("instruct-1");
    expect(body.messages[1]!.content).toMatch(/^Question: How many products are there\?\nTables: maker, product/);
    // Thinking is not sent back to the model.
    expect(body.messages[4]!.content).toBe("QUERY: SELECT count(*) FROM product");
    expect(body.messages[5]!.content).toBe("Result:\ncount(*)\n5\nSteps left: 8");
    expect(body.messages[8]!.content).not.toBe(""); // an empty reply is replaced by text that servers accept
  });

  test("text after an action is removed, and examples are earlier turns; compact has neither", async () => {
    const said = "Let me see.\nDESCRIBE: product\n\nResult:\nproduct: 9 rows\nANSWER: 9";
    const { baseUrl, received } = await endpoint((_, response) => reply(response, said));
    const env = new SQLEnvironment(data);
    const first = env.reset({ question_id: "shop_train_000" });
    const policy = chatPlayer({ baseUrl, model: "tiny", prompt: { prompt: "instruct", shots: 1 } }).start({
      ...{ seed: 1, question: env.reveal(), rules: env.rules },
    });
    const decision = (await policy(first))!;
    expect(decision).toMatchObject({ action: { action_type: "DESCRIBE", argument: "product" }, text: said });
    await policy(env.step(decision.action));
    const { messages } = received[1]!.body;
    expect(messages.at(-2)!.content).toBe("Let me see.\nDESCRIBE: product");
    expect(messages.slice(1, 4).map(({ content }) => content)).toEqual([
      expect.stringMatching(
        /^A new task, on another database\.\nQuestion: .*\nTables: dog, musher, sled_run, sponsor, valley\nSteps left: 10$/,
      ),
      "DESCRIBE: sled_run",
      expect.stringContaining("miles INTEGER\ndogs INTEGER\nSteps left: 9"),
    ]);
    expect(messages.at(-3)!.content).toMatch(/^A new task.*\nQuestion: How many products/);

    const compact = chatPlayer({ baseUrl, model: "tiny", prompt: { prompt: "compact" } });
    await compact.start({ seed: 1, question: env.reveal() })(first);
    expect(received[2]!.body.messages[0]!.content).toBe(getSystemPrompt());
    expect(received[2]!.body).not.toHaveProperty("stop");
    expect(compact.prompt_id).toBe("compact-1");
  });

  test("with tools, calls and their results are separate messages", async () => {
    const calls = [{ id: "x", type: "function", function: { name: "describe", arguments: '{"table": "product"}' } }];
    const { baseUrl, received } = await endpoint((_, response, count) =>
      json(response, 200, {
        choices: [{ message: count === 1 ? { content: null, tool_calls: calls } : { content: "I do not know." } }],
      }),
    );
    const env = new SQLEnvironment(data);
    const first = env.reset({ question_id: "shop_train_000" });
    const player = chatPlayer({ baseUrl, model: "tiny", prompt: { prompt: "tools", shots: 1 } });
    const policy = player.start({ seed: 1, question: env.reveal(), rules: env.rules });
    const decision = (await policy(first))!;
    expect(decision.action).toEqual({ action_type: "DESCRIBE", argument: "product" });
    const second = env.step(decision.action);
    expect((await policy(second))!.parse_error?.code).toBe("action_parse");
    await policy(second);
    const { tools, messages } = received[1]!.body as unknown as {
      tools: unknown[];
      messages: Record<string, unknown>[];
    };
    expect(tools).toHaveLength(4);
    const roles = ["system", ...["user", "assistant", "tool", "assistant", "tool", "assistant", "tool", "assistant"]];
    expect(messages.map(({ role }) => role)).toEqual([
      ...[...roles, "tool", "assistant", "tool", "assistant", "tool"], // the example, to its end
      ...["user", "assistant", "tool"],
    ]);
    expect(messages.at(-2)).toMatchObject({
      tool_calls: [{ type: "function", function: { name: "describe", arguments: '{"table":"product"}' } }],
    });
    expect(messages.at(-1)!.tool_call_id).toBe((messages.at(-2) as { tool_calls: { id: string }[] }).tool_calls[0]!.id);
    // Without a call there is no tool result.
    expect((received[2]!.body.messages as { role: string }[]).at(-1)!.role).toBe("user");
  });

  test("a server without support for `stop` is asked without it", async () => {
    const { baseUrl, received } = await endpoint((_, response) =>
      "stop" in received.at(-1)!.body
        ? json(response, 400, { error: { message: "Unsupported parameter: 'stop'" } })
        : reply(response, "ANSWER: 5\nANSWER: 6"),
    );
    const env = new SQLEnvironment(data);
    const first = env.reset({ question_id: "shop_train_000" });
    const policy = chatPlayer({ baseUrl, model: "tiny" }).start({ seed: 1, question: env.reveal() });
    expect((await policy(first))!.action.argument).toBe("5");
    await policy(first);
    expect(received.map(({ body }) => "stop" in body)).toEqual([true, false, false]);
  });

  test("concurrent episodes have separate conversations", async () => {
    const { baseUrl, received } = await endpoint((_, response) => reply(response, "ANSWER: 5"));
    const player = chatPlayer({ baseUrl, model: "tiny" });
    const env = new SQLEnvironment(data);
    const first = env.reset({ question_id: "shop_train_000" });
    const context = { seed: 1, question: env.reveal() };
    await Promise.all([player.start(context)(first), player.start(context)(first)]);
    expect(received.map(({ body }) => body.messages.length)).toEqual([2, 2]);
    expect(received[0]!.authorization).toBeUndefined();
  });
});

describe("retries", () => {
  test("after 429 and 5xx, waiting for Retry-After or longer each time", async () => {
    const { baseUrl } = await endpoint((_, response, count) => {
      if (count === 1) json(response, 429, { error: { message: "slow down" } }, { "retry-after": "2" });
      else if (count === 2) json(response, 429, {}, { "retry-after": "99999" });
      else if (count < 5) json(response, 503, { error: "loading" });
      else reply(response, "ANSWER: 1");
    });
    const waits: number[] = [];
    const complete = chatClient({ baseUrl, model: "m", retries: 4, wait: async (ms) => void waits.push(ms) });
    expect(await complete(USER)).toBe("ANSWER: 1");
    expect(waits.slice(0, 2)).toEqual([2000, 60_000]);
    expect(waits[2]).toBeGreaterThan(500);
    expect(waits[3]).toBeLessThan(6_000);
  });

  test("at most `retries` times, then reports the server's message", async () => {
    const { baseUrl, received } = await endpoint((_, response) =>
      json(response, 500, { error: { message: "out of memory" } }),
    );
    const { error, waits } = await failureOf({ baseUrl, retries: 2 });
    expect(received).toHaveLength(3);
    expect(waits).toHaveLength(2);
    expect(error.code).toBe("chat_http");
    expect(error.message).toContain("500 (out of memory)");
  });

  test("after a connection that broke", async () => {
    const { baseUrl } = await endpoint((_, response, count) =>
      count === 1 ? response.destroy() : reply(response, "ANSWER: 1"),
    );
    expect(await chatClient({ baseUrl, model: "m", wait: async () => {} })(USER)).toBe("ANSWER: 1");
  });

  test("with max_completion_tokens where a server wants it, and remembers that", async () => {
    const { baseUrl, received } = await endpoint(({ body }, response) => {
      if ("max_tokens" in body) json(response, 400, { error: { message: "use 'max_completion_tokens' instead" } });
      else reply(response, "ANSWER: 1");
    });
    const complete = chatClient({ baseUrl, model: "m", maxTokens: 7 });
    await complete(USER);
    await complete(USER);
    expect(received.map(({ body }) => body.max_completion_tokens)).toEqual([undefined, 7, 7]);
  });
});

describe("reports what went wrong and the remedy", () => {
  test("a refused key, which is never shown", async () => {
    const { baseUrl, received } = await endpoint((_, response) =>
      json(response, 401, { error: { message: "Incorrect API key provided: sk-secret" } }),
    );
    const { error } = await failureOf({ baseUrl, apiKey: "sk-secret" });
    expect(error.code).toBe("chat_auth");
    expect(error.message).toContain("--api-key-env");
    expect(`${error.message}${error.stack}`).not.toContain("sk-secret");
    expect(received).toHaveLength(1);
  });

  test("an unknown model", async () => {
    const { baseUrl } = await endpoint((_, response) => json(response, 404, { error: "model 'm' not found" }));
    const { error } = await failureOf({ baseUrl });
    expect(error.code).toBe("chat_not_found");
    expect(error.message).toMatch(/model m \(404: model 'm' not found\).*\/v1\/chat\/completions.*--model/);
  });

  test.each([
    ["a web page", "<html>hi</html>", /not JSON \(<html>hi/],
    ["an empty reply", "", /not JSON \(empty/],
    ["JSON of another kind", "[1]", /no choices/],
    ["null", "null", /no choices/],
    ["no choices", '{"choices": []}', /no choices/],
    ["content that is no text", '{"choices": [{"message": {"content": 5}}]}', /no choices/],
  ])("%s", async (_, body, message) => {
    const { baseUrl } = await endpoint((_, response) => response.writeHead(200).end(body));
    const { error } = await failureOf({ baseUrl });
    expect(error.code).toBe("chat_reply");
    expect(error.message).toMatch(message);
  });

  test("a refused connection", async () => {
    const { baseUrl } = await endpoint(() => {});
    await new Promise((resolve) => server!.close(resolve));
    const { error, waits } = await failureOf({ baseUrl });
    expect(error.code).toBe("chat_connection");
    expect(error.message).toContain(`ECONNREFUSED): ${baseUrl}/chat/completions; start the server`);
    expect(waits).toEqual([]);
  });

  test("a server that hangs, before or after its headers", async () => {
    for (const hang of [() => {}, (response: ServerResponse) => void response.writeHead(200).write("{")]) {
      const { baseUrl } = await endpoint((_, response) => hang(response));
      const { error } = await failureOf({ baseUrl, timeoutMs: 50 });
      expect(error.code).toBe("chat_timeout");
      server!.closeAllConnections();
    }
  });

  test.each(["localhost:8000", "ftp://x/v1", "", "http://"])("a base URL such as %j", (baseUrl) => {
    expect(() => chatClient({ baseUrl, model: "m" })).toThrow(/not a base URL/);
  });

  test("the full URL of the endpoint is accepted too", async () => {
    const { baseUrl, received } = await endpoint((_, response) => reply(response, ""));
    expect(await chatClient({ baseUrl: `${baseUrl}/chat/completions/`, model: "m" })(USER)).toBe("");
    expect(received[0]!.path).toBe("/v1/chat/completions");
  });
});

test("an abort ends a hanging request and a wait at once, with its reason", async () => {
  const { baseUrl } = await endpoint((_, response, count) => {
    if (count === 1)
      abort.abort(new Error("enough")); // no reply is sent
    else json(response, 503, {}, { "retry-after": "60" });
  });
  let abort = new AbortController();
  const complete = chatClient({ baseUrl, model: "m" });
  await expect(complete(USER, { signal: abort.signal })).rejects.toThrow("enough");
  abort = new AbortController();
  const waiting = complete(USER, { signal: abort.signal });
  await new Promise<void>((resolve) => server!.once("request", () => resolve()));
  abort.abort(new Error("no more"));
  await expect(waiting).rejects.toThrow("no more");
});
