// Agents in this process: their calls become the episodes of rollouts, with the exact ids that the model read and wrote.
import { afterAll, describe, expect, test } from "vitest";
import { tinyModel } from "../../../test/helpers/tiny-model.ts";
import { TOOL_TEMPLATE } from "../../../test/helpers/tool-model.ts";
import type { ChatModel } from "../../lm/chat/index.ts";
import { LocalEngine, type SampleRequest } from "../../lm/engine/index.ts";
import { createTurnEncoder, Tokenizer } from "../../lm/model/index.ts";
import { trainBpe } from "../../lm/model/text/bpe-trainer.ts";
import { type GRPOConfigInput, resolveConfig } from "../config.ts";
import { warningsAt } from "../diagnostics.ts";
import type { Task } from "../environment.ts";
import { POLICY_LOSSES } from "../loss.ts";
import { rollOut } from "../rollout.ts";
import { MemoryStore } from "../run/store.ts";
import { trainAgent } from "../run/train-agent.ts";
import type { AgentClient, RunAgent } from "./agent.ts";
import { createAgentEnvironment } from "./train-agent.ts";

const tokenizer = new Tokenizer({
  tokenizer: trainBpe(["say a number, say another number"], {
    vocabSize: 275,
    specialTokens: ["<|im_start|>", "<|im_end|>"],
  }),
  config: { eos_token: "<|im_end|>" },
});
const turns = createTurnEncoder(tokenizer, TOOL_TEMPLATE);
const weights = tinyModel({ config: { vocab_size: tokenizer.texts.length, max_position_embeddings: 2_048 } });
const engine = new LocalEngine(weights, { losses: POLICY_LOSSES });
const model = { engine, tokenizer, turns, chatTemplate: TOOL_TEMPLATE, config: weights.config };
afterAll(() => engine.close());

const tasks: Task[] = Array.from({ length: 20 }, (_, i) => ({ id: `t${i}`, text: `Say ${i}.` }));

const config = (given: GRPOConfigInput = {}) =>
  resolveConfig({
    ...{ max_new_tokens: 8, max_completion_length: 64, max_context_tokens: 2_000, step_budget: 4 },
    ...{ per_device_train_batch_size: 4, gradient_accumulation_steps: 1, num_generations: 4, max_steps: 2 },
    ...{ logging_steps: 1, eval_episodes: 2, final_eval_episodes: 2, eval_steps: 0 },
    ...given,
  });

type Chat = Record<string, unknown>[];

async function ask({ fetch, baseURL }: AgentClient, messages: Chat, more: object = {}) {
  const body = JSON.stringify({ model: "any", messages, return_token_ids: true, ...more });
  const response = await fetch(`${baseURL}/chat/completions`, { method: "POST", body });
  const reply = await response.json();
  if (!response.ok) throw new Error(reply.error.message);
  return reply;
}

/** Two turns; pays by the length of what the model wrote. */
const talks: RunAgent = async ({ text }, openai) => {
  const first = await ask(openai, [{ role: "user", content: text }]);
  const { message } = first.choices[0];
  const second = await ask(openai, [{ role: "user", content: text }, message, { role: "user", content: "Another." }]);
  return (message.content.length + second.choices[0].message.content.length) / 10;
};

async function play(run: RunAgent, given: GRPOConfigInput = {}, count = 1, played: ChatModel = model) {
  const environment = createAgentEnvironment({ model: played, tasks, run });
  return rollOut(environment, tasks.slice(0, count), { model, config: config(given), key: [1] });
}

describe("ids", () => {
  test("a history that continues an earlier one keeps its ids, also where its text would be encoded otherwise", async () => {
    const requests: SampleRequest[] = [];
    const watched = {
      ...model,
      engine: {
        sample: (request: SampleRequest) => {
          requests.push(request);
          return engine.sample(request);
        },
      },
    };
    const replies: { prompt_token_ids: number[]; choices: { token_ids: number[] }[] }[] = [];
    const run: RunAgent = async ({ text }, openai) => {
      const messages: Chat = [{ role: "user", content: text }];
      for (let turn = 0; turn < 3; turn++) {
        const reply = await ask(openai, messages);
        replies.push(reply);
        messages.push(reply.choices[0].message, { role: "user", content: `again ${turn}` });
      }
      return 1;
    };
    const [episode] = await play(run, { max_new_tokens: 12 }, 1, watched);
    const sampled = replies.map(({ choices }) => choices[0]!.token_ids);
    const encoded = sampled.map((ids) => tokenizer.encodePlain(tokenizer.decode(ids, { skipSpecial: true })));
    expect(encoded).not.toEqual(sampled.map((ids) => ids.filter((id) => !tokenizer.isSpecial(id))));
    for (const [i, { prompt }] of requests.slice(1).entries()) {
      const before = [...requests[i]!.prompt, ...sampled[i]!];
      expect(prompt.slice(0, before.length)).toEqual(before);
      const closed = turns.closed(sampled[i]!);
      expect(prompt.slice(before.length)).toEqual(turns.next(`again ${i}`, { closed }));
    }
    expect(episode!.segments).toHaveLength(1);
    const { tokens, mask, logprobs } = episode!.segments[0]!;
    expect(tokens).toEqual([...requests[2]!.prompt, ...sampled[2]!]);
    expect(tokens.filter((_, i) => mask[i] === 1)).toEqual(sampled.flat());
    expect(logprobs.filter((_, i) => mask[i] === 1).every((value) => value < 0)).toBe(true);
    expect(episode!.completion_tokens).toBe(sampled.flat().length);
  });

  test("calls of tools keep their ids although the client writes their arguments anew", async () => {
    const call = '<tool_call>\n{"arguments": {"b": 1,   "a": "x"}, "name": "look"}\n</tool_call>';
    const said = [...call].flatMap((letter) => tokenizer.encodePlain(letter)).concat(turns.stopIds[0]!);
    const scripted = async ({ prompt }: SampleRequest) => {
      prompts.push(prompt);
      return { tokens: said, logprobs: said.map(() => -1), finish_reason: "stop", cached_tokens: 0 } as const;
    };
    const prompts: (readonly number[])[] = [];
    const tools = [{ type: "function", function: { name: "look", parameters: {} } }];
    const run: RunAgent = async ({ text }, openai) => {
      const user = { role: "user", content: text };
      const { message, finish_reason } = (await ask(openai, [user], { tools })).choices[0];
      expect([message.content, finish_reason]).toEqual([null, "tool_calls"]);
      const again = { ...message.tool_calls[0], function: { name: "look", arguments: '{"a":"x","b":1}' } };
      const answer = { role: "tool", tool_call_id: again.id, content: "7" };
      await ask(openai, [user, { role: "assistant", tool_calls: [again] }, answer], { tools });
      return 1;
    };
    const [episode] = await play(run, { max_new_tokens: 200, max_completion_length: 500 }, 1, {
      ...model,
      engine: { sample: scripted },
    });
    const next = turns.withTools(tools as never).next("7", { closed: true, from: "tool" });
    expect(prompts[1]).toEqual([...prompts[0]!, ...said, ...next]);
    expect(episode!.segments).toHaveLength(1);
    expect(episode!.steps.map(({ observation }) => observation.result)).toEqual(["7", ""]);
  });

  test("a history that was altered, or that goes another way, begins a new segment and is counted", async () => {
    const run: RunAgent = async ({ text }, openai) => {
      const user = { role: "user", content: text };
      const { message } = (await ask(openai, [user])).choices[0];
      await ask(openai, [user, message, { role: "user", content: "one way" }]);
      await ask(openai, [user, message, { role: "user", content: "another way" }]);
      await ask(openai, [user, { role: "assistant", content: "not what it said" }, { role: "user", content: "well?" }]);
      return 1;
    };
    const [episode] = await play(run);
    expect(episode!.error).toBeNull();
    const [first, second, third] = episode!.segments;
    expect(episode!.segments).toHaveLength(3);
    const start = first!.mask.indexOf(0, first!.mask.indexOf(1));
    expect(second!.tokens.slice(0, start)).toEqual(first!.tokens.slice(0, start)); // the ids of the first reply
    expect(second!.mask.filter((mine) => mine === 1).length).toBeLessThanOrEqual(8); // and each reply is learned once
    expect(third!.tokens).not.toEqual(second!.tokens);
    expect(episode!.metrics).toEqual({ new_segments: 0.5, altered_history: 0.25 });
    const health = { warned: [], streaks: {} };
    const { warnings } = warningsAt(1, { "environment/altered_history": 0.25 }, config(), health, [episode!]);
    expect(warnings).toMatchObject([{ code: "altered_history", message: expect.stringMatching(/^25 %.* is t0$/) }]);
  });
});

test("replies under another system prompt are counted as altered; few-shot replies of the agent's own are not", async () => {
  const messages = async (openai: AgentClient, text: string) => {
    const user = { role: "user", content: text };
    const shot = { role: "assistant", content: "an example" };
    const { message } = (await ask(openai, [{ role: "system", content: "A" }, user])).choices[0];
    await ask(openai, [{ role: "system", content: "B" }, user, message, user]);
    await ask(openai, [{ role: "system", content: "C" }, user, shot, user]);
  };
  const [episode] = await play((task, openai) => messages(openai, task.text).then(() => 1));
  expect(episode!.segments).toHaveLength(3);
  expect(episode!.metrics!.altered_history).toBeCloseTo(1 / 3, 9);
});

test("the same seed trains to the same weights, tokens and losses, with agents that call at the same time", async () => {
  const train = async () => {
    const tiny = tinyModel({ config: { vocab_size: tokenizer.texts.length, max_position_embeddings: 2_048 } });
    const own = { ...model, engine: new LocalEngine(tiny, { losses: POLICY_LOSSES }) };
    const store = new MemoryStore();
    let [running, most] = [0, 0];
    const run: RunAgent = async (task, openai) => {
      most = Math.max(most, ++running);
      return Promise.resolve(talks(task, openai)).finally(() => running--);
    };
    const result = await trainAgent({
      model: own,
      tasks,
      run,
      store,
      config: config({ per_device_train_batch_size: 16 }),
    });
    await own.engine.close();
    return { most, result: { ...result, seconds: 0, run: "" }, logs: store.logs };
  };
  const [first, second] = [await train(), await train()];
  expect(first.most).toBeGreaterThanOrEqual(16);
  expect(first.logs["metrics.jsonl"]).toEqual(second.logs["metrics.jsonl"]);
  expect(first.logs["episodes.jsonl"]).toHaveLength(32);
  expect(first.result).toEqual(second.result);
  const { environment, steps } = first.result;
  expect({ environment, steps }).toMatchObject({ environment: { name: "agent" }, steps: 2 });
});

test("a stream has the same tokens as a whole reply, and a call that is refused has its status", async () => {
  const texts: string[] = [];
  const run: RunAgent = async ({ text }, { baseURL, fetch }) => {
    const messages = [{ role: "user", content: text }];
    const body = JSON.stringify({ model: "m", messages, stream: true, stream_options: { include_usage: true } });
    const response = await fetch(`${baseURL}/chat/completions`, { method: "POST", body });
    const events = (await response.text()).split("\n\n").filter((event) => event !== "");
    expect(events.at(-1)).toBe("data: [DONE]");
    const parts = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
    expect(parts.at(-1).usage.completion_tokens).toBeGreaterThan(0);
    texts.push(parts.map(({ choices }) => choices[0]?.delta.content ?? "").join(""));
    const refused = JSON.stringify({ model: "m", messages, stream: true, n: 2 });
    const { status } = await fetch(`${baseURL}/chat/completions`, { method: "POST", body: refused });
    return status === 400 ? 1 : 0;
  };
  const episodes = await play(run, {}, 4);
  expect(episodes.map(({ reward }) => reward)).toEqual([1, 1, 1, 1]);
  expect(texts.sort()).toEqual(episodes.map(({ steps }) => steps[0]!.text).sort());
});

describe("limits", () => {
  test("an agent that has used up its turns or tokens is told so, once, and is still paid", async () => {
    const replies: { finish: string; tokens: number }[] = [];
    const run: RunAgent = async ({ text }, openai) => {
      const messages: Chat = [{ role: "user", content: text }];
      for (;;) {
        const { choices, usage } = await ask(openai, messages);
        replies.push({ finish: choices[0].finish_reason, tokens: usage.completion_tokens });
        if (usage.completion_tokens === 0) break;
        messages.push(choices[0].message, { role: "user", content: "more" });
      }
      await expect(ask(openai, messages)).rejects.toThrow("the rollout of task t0 has used up its turns or tokens");
      return 0.5;
    };
    const [byTurns] = await play(run);
    expect(replies.splice(0)).toHaveLength(5);
    expect(byTurns).toMatchObject({ reward: 0.5, error: null, truncated: true, step_count: 4 });
    const [byTokens] = await play(run, { max_completion_length: 10 });
    expect(replies.at(-1)).toEqual({ finish: "length", tokens: 0 });
    expect(byTokens).toMatchObject({ reward: 0.5, truncated: true, completion_tokens: 10 });
  });

  test("no more agents run at once than concurrency allows, and waiting for a place is no time-out", async () => {
    let [running, most] = [0, 0];
    const run: RunAgent = async (task, openai) => {
      most = Math.max(most, ++running);
      return Promise.resolve(talks(task, openai)).finally(() => running--);
    };
    const environment = createAgentEnvironment({ model, tasks, run, concurrency: 2 });
    const episodes = await rollOut(environment, tasks.slice(0, 8), { model, config: config() });
    expect([most, episodes.filter(({ error }) => error === null).length]).toEqual([2, 8]);
  });
});

/** Talks, then returns something. */
const after =
  (returned: unknown): RunAgent =>
  async (task, openai) => {
    await talks(task, openai);
    return returned as number;
  };

const NEVER = new Promise<never>(() => {});

test.each<[string, RunAgent, RegExp]>([
  ["throws", () => Promise.reject(new Error("no key")), /^the agent failed on task t0: no key$/],
  [
    "throws after a call",
    async (task, openai) => {
      await talks(task, openai);
      throw new Error("lost");
    },
    /^the agent failed on task t0: lost$/,
  ],
  ["never calls the model", () => 1, /^the agent ended task t0 without calling the model$/],
  ["returns NaN", after(Number.NaN), /reward for task t0 is neither a finite number nor null: NaN/],
  ["returns text", after("1"), /reward for task t0 is neither .*: "1"/],
  ["returns nothing", after(undefined), /reward for task t0 is neither .*: undefined/],
  ["returns odd metrics", after({ reward: 1, metrics: { x: Number.NaN } }), /task t0.*metrics in which "x"/],
  ["hangs", after(NEVER), /environment_timeout allows: 0.2 seconds/],
])("an agent that %s is not scored, and the others are", async (_, run, message) => {
  const mixed: RunAgent = (task, openai) => (task.id === "t0" ? run(task, openai) : talks(task, openai));
  const [bad, good] = await play(mixed, { environment_timeout: 0.2 }, 2);
  expect(bad).toMatchObject({ error: expect.stringMatching(message), reward: null, correctness: null });
  expect(good).toMatchObject({ error: null, reward: expect.any(Number) });
  await expect(play(mixed, { environment_timeout: 0.2, environment_errors: "stop" }, 2)).rejects.toThrow(/task t0/);
});

test("a rollout that is over refuses calls, and tells the agent by its signal", async () => {
  const late: Promise<string>[] = [];
  const run: RunAgent = async (task, openai) => {
    await talks(task, openai);
    await new Promise((resolve) => openai.signal.addEventListener("abort", resolve, { once: true }));
    late.push(ask(openai, [{ role: "user", content: "late" }]).catch(({ message }) => message));
    return 1;
  };
  const [episode] = await play(run, { environment_timeout: 0.05 });
  expect(episode!.reward).toBeNull();
  expect(await late[0]).toBe("the rollout of task t0 is over");
});

test("a template that does not show where replies end is refused, and so is an agent without `run`", () => {
  const open = "{% for m in messages %}{{ m.content + '<|im_end|>' }}{% endfor %}";
  const run: RunAgent = () => 1;
  expect(() => createAgentEnvironment({ model: { ...model, chatTemplate: open }, tasks, run })).toThrow(
    "does not show where a reply ends",
  );
  expect(() => createAgentEnvironment({ model, tasks })).toThrow("either `run` or `place`");
  expect(() => createAgentEnvironment({ model, tasks, run, concurrency: 0 })).toThrow("concurrency must be at least 1");
});

test("reward, components, metrics and solved are the agent's", async () => {
  const run: RunAgent = async (task, openai) => {
    await ask(openai, [{ role: "user", content: task.text }]);
    return { reward: 0.25, solved: false, rewards: { style: 0.25 }, metrics: { pages: 3 } };
  };
  const [episode] = await play(run);
  expect(episode).toMatchObject({ reward: 0.25, correctness: 0, metrics: { pages: 3, altered_history: 0 } });
  expect(episode!.steps[0]!.reward_breakdown).toEqual({ style: 0.25 });
});
