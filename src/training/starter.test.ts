import { beforeAll, expect, test } from "vitest";
import { evaluate } from "../evaluation/index.ts";
import { createTurnEncoder, Tokenizer } from "../model/index.ts";
import { flailerPlayer, getSystemPrompt, guesserPlayer, oraclePlayer, randomPlayer } from "../players/index.ts";
import { loadSqlite } from "../sql/index.ts";
import { STARTER_STEP_BUDGET, starterDataSet } from "../worlds/index.ts";
import { freshModel } from "./fresh.ts";
import {
  STARTER_MODEL,
  STARTER_WARMUP,
  starterDemonstrations,
  starterMixture,
  vocabularyTranscripts,
} from "./starter.ts";
import { encodeTranscript, type Transcript } from "./transcripts.ts";

beforeAll(async () => void (await loadSqlite()));

async function take(count: number, seed: number): Promise<Transcript[]> {
  const taken: Transcript[] = [];
  for await (const transcript of starterDemonstrations(seed)) if (taken.push(transcript) === count) break;
  return taken;
}

const transcripts = await loadSqlite().then(() => vocabularyTranscripts());
const model = freshModel(transcripts, { ...STARTER_MODEL, seed: 1 });
const tokenizer = new Tokenizer(model.tokenizerFiles);
const turns = createTurnEncoder(tokenizer, model.chatTemplate);

test("a fresh model is small, and the same for the same seed", () => {
  const numbers = model.tensors.reduce((sum, { data }) => sum + data.length, 0);
  expect(numbers).toBeLessThanOrEqual(500_000);
  expect(freshModel(transcripts, { ...STARTER_MODEL, seed: 1 })).toEqual(model);
  const other = freshModel(transcripts, { ...STARTER_MODEL, seed: 2 });
  expect(other.tokenizerFiles).toEqual(model.tokenizerFiles);
  expect(other.tensors[0]!.data).not.toEqual(model.tensors[0]!.data);
  expect(tokenizer.vocabSize).toBe(model.config.vocab_size);
});

test("demonstrations are the same for the same seed, and nearly all fit into 350 tokens", async () => {
  const shown = await take(300, 1);
  expect(await take(300, 1)).toEqual(shown);
  expect(shown.slice(0, 5)).not.toEqual(await take(5, 2));
  const lengths = shown.map((transcript) => encodeTranscript(transcript, tokenizer, turns).tokens.length);
  const fitting = lengths.filter((length) => length <= STARTER_WARMUP.max_context_tokens);
  expect(fitting.length / lengths.length).toBeGreaterThan(0.95);
});

test("every word has a token of its own, so that a name is copied in one", () => {
  expect(turns.start(getSystemPrompt(), "").length).toBeLessThan(120);
  const words = new Set<string>();
  for (const { messages } of transcripts) {
    for (const { content } of messages.slice(1)) for (const word of content.match(/[A-Za-z]+/g) ?? []) words.add(word);
  }
  const whole = [...words].filter((word) =>
    [word, ` ${word}`].some((text) => tokenizer.encodePlain(text).length === 1),
  );
  expect(whole.length / words.size).toBeGreaterThan(0.95);
});

test("who imitates the poor players does not answer right; who looks and asks does", async () => {
  const data = starterDataSet({ seed: 9 });
  const play = async (player: ReturnType<typeof oraclePlayer>) =>
    evaluate(data, player, { step_budget: STARTER_STEP_BUDGET });
  const [oracle, guesser, flailer, chance] = [
    await play(oraclePlayer()),
    await play(guesserPlayer()),
    await play(flailerPlayer()),
    await play(randomPlayer()),
  ];
  expect(oracle.success_rate).toBe(1);
  expect(oracle.mean_steps).toBe(3);
  expect(guesser.mean_steps).toBe(1);
  for (const poor of [guesser, flailer, chance]) expect(poor.success_rate).toBeLessThan(0.1);
  expect(flailer.mean_steps).toBeLessThan(chance.mean_steps!);
  data.databases.close();
});

test("the mixture has the worlds and the budget of the training", () => {
  const { step_budget, simple, forms } = starterMixture(1, { oracle: 1 });
  expect(step_budget).toBe(STARTER_STEP_BUDGET);
  expect(simple).toBeDefined();
  expect(forms).toBeDefined();
});
