import { afterAll, expect, test } from "vitest";
import { tinyModel } from "../../../test/helpers/tiny-model.ts";
import { LocalEngine } from "../engine/index.ts";
import { trainBpe } from "../model/text/bpe-trainer.ts";
import { createTurnEncoder } from "../model/text/chat-template.ts";
import { Tokenizer } from "../model/text/tokenizer.ts";
import { Chat, type CompletionPart } from "./chat.ts";

const tokenizer = new Tokenizer({
  tokenizer: trainBpe(["SELECT name FROM customers WHERE age > 30"], {
    vocabSize: 300,
    specialTokens: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
  }),
  config: { eos_token: "<|im_end|>" },
});
const turns = createTurnEncoder(tokenizer);
const model = tinyModel({ config: { vocab_size: 304, max_position_embeddings: 512 }, deviation: 0.1 });
const engine = new LocalEngine(model);
afterAll(() => engine.close());
const chat = new Chat({ engine, tokenizer, turns, config: model.config });
const prompt = chat.encode([
  { role: "system", content: "You answer." },
  { role: "user", content: "How many?" },
]);
const options = { max_new_tokens: 24, temperature: 0, key: ["test"] } as const;

test("a completion has the engine's tokens and log-probs for the turn encoder's prompt", async () => {
  expect(prompt).toEqual(turns.start("You answer.", "How many?"));
  const sample = await engine.sample({ prompt, ...options, stop_ids: turns.stopIds });
  const done = await chat.complete(prompt, options);
  expect(done).toMatchObject({ prompt, tokens: sample.tokens, logprobs: sample.logprobs, calls: [] });
  expect(done.content).toBe(tokenizer.decode(sample.tokens, { skipSpecial: true }));
  expect(done.finish_reason).toBe(sample.finish_reason);
});

test("parts add up to the completion", async () => {
  const parts: CompletionPart[] = [];
  const done = await chat.complete(prompt, { ...options, temperature: 1.5, onPart: (part) => parts.push(part) });
  expect(parts.map(({ content }) => content).join("")).toBe(done.content);
  expect(parts.flatMap(({ tokens }) => tokens)).toEqual(done.tokens);
  expect(parts.flatMap(({ logprobs }) => logprobs)).toEqual(done.logprobs);
});

test("equal keys sample equal completions, other keys others", async () => {
  const sample = async (key: string) =>
    (await chat.complete(prompt, { ...options, temperature: 1, key: [key] })).tokens;
  expect(await sample("a")).toEqual(await sample("a"));
  expect(await sample("a")).not.toEqual(await sample("b"));
});

test("a stop string ends the text before it and the tokens with it", async () => {
  const whole = await chat.complete(prompt, options);
  const at = 5;
  const stop = [whole.content.slice(at, at + 3)];
  const done = await chat.complete(prompt, { ...options, stop });
  const from = whole.content.indexOf(stop[0]!);
  expect(done).toMatchObject({ content: whole.content.slice(0, from), finish_reason: "stop" });
  expect(done.tokens).toEqual(whole.tokens.slice(0, done.tokens.length));
  expect(tokenizer.decode(done.tokens)).toContain(stop[0]);
  expect(tokenizer.decode(done.tokens.slice(0, -1))).not.toContain(stop[0]);
  expect(done.logprobs).toHaveLength(done.tokens.length);
});

test("an aborted completion ends with what it has", async () => {
  const abort = new AbortController();
  const done = await chat.complete(prompt, { ...options, signal: abort.signal, onPart: () => abort.abort() });
  expect(done.finish_reason).toBe("aborted");
  expect(done.tokens.length).toBeLessThan(24);
});

test("tools are refused for a template without them", () => {
  const tools = [{ type: "function", function: { name: "query" } }] as const;
  expect(() => chat.encode([{ role: "user", content: "x" }], tools)).toThrow(/no section for tools/);
});

test("messages that are certainly too long are recognized without encoding them", () => {
  const exceeds = (characters: number) => chat.exceeds([{ role: "user", content: "x".repeat(characters) }]);
  const longest = Math.max(...tokenizer.texts.map((text) => text.length));
  expect(exceeds(2 * longest * chat.window)).toBe(false);
  expect(exceeds(2 * longest * chat.window + 1)).toBe(true);
});
