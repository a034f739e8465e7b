// Tests that graph decoding gives the same samples as decoding step by step.
import { expect, test } from "vitest";
import { decodingCpu } from "../../../../test/devices/decoding.ts";
import { FAMILIES, tinyModel, tokens } from "../../../../test/helpers/tiny-model.ts";
import { INSTRUCT_STOP } from "../../../gym/players/prompts/instruct.ts";
import type { Sample, SampleRequest } from "../engine.ts";
import { Sampler } from "./sampler.ts";

/** Every other token starts an action, so the stop rule ends some samples. */
const TEXTS = Array.from({ length: 61 }, (_, id) => ["\nQUERY: a", " b"][id % 2]!);

/** Requests of many lengths: some share prefixes, some end early, some are greedy. */
function requests(): SampleRequest[] {
  return Array.from({ length: 23 }, (_, i) => ({
    prompt: [...tokens(12, "shared", i % 3), ...tokens(1 + (i % 5), "own", i)],
    max_new_tokens: 1 + ((i * 7) % 29),
    stop_ids: i % 2 ? [5, 9, 33] : [],
    temperature: i % 4 === 0 ? 0 : 0.9,
    key: ["decoder", i],
    ...(i % 6 === 1 && { stop: { rule: INSTRUCT_STOP, texts: TEXTS } }),
  }));
}

/** Starts some requests at once, and another whenever one finishes. */
async function sampleAll(sampler: Sampler): Promise<Sample[]> {
  const all = requests();
  const samples: Promise<Sample>[] = [];
  const next = async (): Promise<void> => {
    const i = samples.length;
    if (i >= all.length) return;
    samples[i] = sampler.sample(all[i]!);
    await samples[i];
    await next();
  };
  await Promise.all(Array.from({ length: 9 }, next));
  return Promise.all(samples);
}

test.each(["qwen3", "qwen2"] as const)(
  "recorded steps of a %s give the same tokens and log-probs as single steps",
  async (family) => {
    const config = FAMILIES[family];
    const { device, counts } = decodingCpu();
    const recorded = new Sampler(tinyModel({ device, config }));
    const got = await sampleAll(recorded);
    const want = await sampleAll(new Sampler(tinyModel({ config })));
    const shown = (samples: readonly Sample[]) =>
      samples.map(({ tokens, logprobs, finish_reason }) => ({ tokens, logprobs, finish_reason }));
    expect(shown(got)).toEqual(shown(want));
    const isByText = ({ finish_reason, tokens }: Sample) =>
      finish_reason === "stop" && ![5, 9, 33].includes(tokens.at(-1)!);
    expect(got.some(isByText)).toBe(true);
    expect(counts.launched).toBeGreaterThan(10);
    expect(counts.captured).toBeLessThanOrEqual(8);
    expect(counts.shared.length).toBeGreaterThan(0);
    recorded.close(new Error("done"));
  },
);

test("the next turn finds the decoded tokens in the cache", async () => {
  const { device } = decodingCpu();
  const sampler = new Sampler(tinyModel({ device }));
  const first = await sampler.sample({ prompt: tokens(9, "turn"), max_new_tokens: 12, stop_ids: [], key: ["a"] });
  const prompt = [...tokens(9, "turn"), ...first.tokens, ...tokens(3, "more")];
  const second = await sampler.sample({ prompt, max_new_tokens: 5, stop_ids: [], key: ["b"] });
  expect(second.cached_tokens).toBe(9 + 11);
  const fresh = new Sampler(tinyModel());
  const want = await fresh.sample({ prompt, max_new_tokens: 5, stop_ids: [], key: ["b"] });
  expect(second.tokens).toEqual(want.tokens);
  expect(second.logprobs).toEqual(want.logprobs);
});

test("the sharing table is rebuilt as contexts grow, within their blocks", async () => {
  const { device, counts } = decodingCpu();
  const sampler = new Sampler(tinyModel({ device, config: { max_position_embeddings: 128 } }));
  const lengths = [100, 40];
  await Promise.all(
    lengths.map((max_new_tokens, i) =>
      sampler.sample({ prompt: tokens(9 + i, i), max_new_tokens, stop_ids: [], key: ["long", i] }),
    ),
  );
  expect(counts.shared).toEqual([
    [10, 11], // including the newest token
    [42, 43], // 32 steps later
    [74, 57], // the second row has its 40 tokens; it keeps running, ignored, to the end of its KV block
    [106, 57],
  ]);
});

test("filters and new requests leave and re-enter graph decoding; a listener's error fails only its sample", async () => {
  const { device, counts } = decodingCpu();
  const sampler = new Sampler(tinyModel({ device }));
  const request = (i: number): SampleRequest => ({ prompt: tokens(6, i), max_new_tokens: 10, stop_ids: [], key: [i] });
  const failing = sampler.sample({
    ...request(0),
    onToken: () => {
      throw new Error("listener");
    },
  });
  const [plain, filtered] = [sampler.sample(request(1)), sampler.sample({ ...request(2), top_k: 3 })];
  await expect(failing).rejects.toThrow("listener");
  expect((await filtered).tokens).toHaveLength(10);
  expect(counts.launched).toBe(0);
  expect((await plain).tokens).toEqual((await sampler.sample(request(1))).tokens);
  expect(counts.launched).toBeGreaterThan(0);
});

test("requests that arrive while a batch decodes join it together", async () => {
  const { device, counts } = decodingCpu();
  const sampler = new Sampler(tinyModel({ device }));
  const late: Promise<Sample>[] = [];
  const ask = (key: string, max_new_tokens: number, onToken?: () => void) =>
    sampler.sample({ prompt: tokens(6, key), max_new_tokens, stop_ids: [], key: [key], ...(onToken && { onToken }) });
  let heard = 0;
  const batch = Array.from({ length: 12 }, (_, i) =>
    ask(`batch ${i}`, 28, () => {
      if (i === 0 && [2, 10, 15].includes(++heard)) late.push(ask(`late ${heard}`, 4));
    }),
  );
  await Promise.all(batch);
  const got = await Promise.all(late);
  expect(got).toHaveLength(3);
  // Batches are built three times: at first, with all three late requests, and for what remains after them.
  expect(counts.shared.filter((rows) => rows.length >= 12)).toHaveLength(2);
  const alone = new Sampler(tinyModel());
  const prompt = tokens(6, "late 10");
  const want = await alone.sample({ prompt, max_new_tokens: 4, stop_ids: [], key: ["late 10"] });
  expect(got[1]!.tokens).toEqual(want.tokens);
  expect(got[1]!.logprobs).toEqual(want.logprobs);
});
