import { expect, test } from "vitest";
import { shopDataSet } from "../../../../test/helpers/fixtures.ts";
import { createTurnEncoder, Tokenizer } from "../../../lm/model/index.ts";
import { trainBpe } from "../../../lm/model/text/bpe-trainer.ts";
import { SQLEnvironment } from "../../env/index.ts";
import { ModelPolicy, modelPlayer } from "../model.ts";
import type { TokenSampler } from "../text-policy.ts";
import { Conversation, checkRoom } from "./conversation.ts";
import { formatObservation, promptFor } from "./prompt.ts";

const tokenizer = new Tokenizer({
  tokenizer: trainBpe(["DESCRIBE: customers"], { vocabSize: 280, specialTokens: ["<|im_start|>", "<|im_end|>"] }),
  config: { eos_token: "<|im_end|>" },
});
const turns = createTurnEncoder(tokenizer);
const words = (text: string) => [...tokenizer.encodePlain(text), turns.stopIds[0]!];

test("turns are appended to the ids until the context is full", () => {
  const env = new SQLEnvironment(shopDataSet(), { step_budget: 12 });
  const conversation = new Conversation(turns, { max_context_tokens: 1500, max_new_tokens: 50 });
  let observation = env.reset({ question_id: "shop_eval_000" });
  let before: readonly number[] = [];
  for (let turn = 0; !observation.done; turn++) {
    const cuts = conversation.cuts;
    const prompt = conversation.prompt(formatObservation(observation));
    expect(prompt.length).toBeLessThanOrEqual(1450);
    if (conversation.cuts === cuts) expect(prompt.slice(0, before.length)).toEqual(before);
    const text = tokenizer.decode(prompt);
    expect(text).toContain("Question: How many customers are there?");
    if (turn > 0) expect(text).toContain(observation.result || observation.error!);
    const said = words(`SAMPLE: ${["customers", "orders", "group", "oslo"][turn % 4]}`);
    conversation.said(said);
    before = [...prompt, ...said];
    observation = env.step({ action_type: "QUERY", argument: `SELECT *, ${turn} FROM customers` });
  }
  expect(conversation.cuts).toBeGreaterThan(0);
});

test("a model's text becomes actions; text without an action is counted, and the episode continues", async () => {
  const lines = ["DESCRIBE: customers", "hello there", "ANSWER: 5"];
  const asked: number[] = [];
  const engine: TokenSampler = {
    sample: async ({ prompt }) => {
      asked.push(prompt.length);
      const tokens = words(lines[asked.length - 1]!);
      return { tokens, logprobs: tokens.map(() => -1) };
    },
  };
  const data = shopDataSet();
  const env = new SQLEnvironment(data);
  const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
  const policy = modelPlayer({ engine, turns, decode }).start({ seed: 1, question: data.questions[0]! });
  let observation = env.reset({ question_id: "shop_eval_000" });
  const errors: boolean[] = [];
  while (!observation.done) {
    const { action, parse_error } = (await policy(observation))!;
    errors.push(Boolean(parse_error));
    observation = env.step(action);
  }
  expect(errors).toEqual([false, true, false]);
  expect(env.outcome.correctness).toBe(1);
  expect(asked).toEqual([...asked].sort((a, b) => a - b));
});

test("examples are turns before the question, stay when the context is truncated, and go when they leave no room", () => {
  const prompt = promptFor({ prompt: "instruct", shots: 1 });
  const env = new SQLEnvironment(shopDataSet(), { step_budget: 12 });
  const first = env.reset({ question_id: "shop_eval_000" });
  const length = new Conversation(turns, { max_context_tokens: 9000, max_new_tokens: 50, prompt }).prompt(
    prompt.format(first),
  ).length;
  const conversation = new Conversation(turns, { max_context_tokens: length + 700, max_new_tokens: 50, prompt });
  let observation = first;
  for (let turn = 0; turn < 8; turn++) {
    const text = tokenizer.decode(conversation.prompt(prompt.format(observation)));
    expect(text.match(/DESCRIBE: musher<\|im_end\|>/g)).toHaveLength(1);
    expect(text.indexOf("musher")).toBeLessThan(text.indexOf("How many customers"));
    conversation.said(words(`QUERY: SELECT ${turn}`));
    observation = env.step({ action_type: "QUERY", argument: `SELECT *, ${turn} FROM customers` });
  }
  expect(conversation.cuts).toBeGreaterThan(0);
  const short = new Conversation(turns, { max_context_tokens: length - 500, max_new_tokens: 50, prompt });
  short.prompt(prompt.format(first));
  short.said(words("QUERY: SELECT 1"));
  expect(tokenizer.decode(short.prompt(prompt.format(observation)))).not.toContain("musher");
});

test("a reply that a stop rule ended is not truncated, and its turn is closed", async () => {
  const data = shopDataSet();
  const env = new SQLEnvironment(data);
  const prompts: string[] = [];
  const tokens = tokenizer.encodePlain("DESCRIBE: customers");
  const engine: TokenSampler = {
    sample: async ({ prompt, stop }) => {
      expect(stop?.texts).toBe(tokenizer.texts);
      prompts.push(tokenizer.decode(prompt));
      return { tokens, logprobs: tokens.map(() => -1), finish_reason: prompts.length === 1 ? "stop" : "length" };
    },
  };
  const decode = (ids: readonly number[]) => tokenizer.decode(ids, { skipSpecial: true });
  const options = { engine, turns, decode, texts: tokenizer.texts, prompt: { prompt: "instruct" } as const };
  const policy = new ModelPolicy(options, { seed: 1 });
  const first = env.reset({ question_id: "shop_eval_000" });
  const decision = await policy.decide(first);
  expect(policy.truncated).toBe(false);
  await policy.decide(env.step(decision!.action));
  expect(policy.truncated).toBe(true);
  expect(prompts[1]).toContain("<|im_start|>assistant\nDESCRIBE: customers<|im_end|>\n<|im_start|>user\nResult:");
  // Sampled tokens are trained on; the token that closes the turn is not.
  const [segment] = policy.segments;
  expect(segment!.mask.filter((mark) => mark === 1)).toHaveLength(2 * tokens.length);
});

test("a prompt that leaves no room is refused before anything is played", () => {
  const room = { max_new_tokens: 50, max_context_tokens: 2000 };
  expect(() => checkRoom(turns, undefined, room)).not.toThrow();
  expect(() => checkRoom(turns, { prompt: "instruct", shots: 3 }, room)).toThrow(
    /^the prompt instruct-1\/3-shot takes \d+ tokens, a turn up to 50: there is no room to play in a context of: 2000; raise/,
  );
  expect(() => checkRoom(turns, { prompt: "tools" }, room)).toThrow(/has no section for tools/);
});
