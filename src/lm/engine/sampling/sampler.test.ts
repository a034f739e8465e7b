// Tests sampling through the engine: a sample depends only on its prompt, its key and the weights, not on the rest of
// the batch.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TINY, tinyModel, tokens } from "../../../../test/helpers/tiny-model.ts";
import { hasMinimind, minimindFolder, readMinimind } from "../../../../test/reference/read.ts";
import { UsageError } from "../../../errors.ts";
import { createCpu } from "../../devices/cpu/start.node.ts";
import type { Buffer, Device } from "../../devices/index.ts";
import { parseConfig } from "../../model/config.ts";
import { loadWeights } from "../../model/formats/load.ts";
import { openSafetensors } from "../../model/formats/safetensors.node.ts";
import { createModel } from "../../model/parameters.ts";
import { readJson } from "../../model/text/tokenizer.node.ts";
import type { Sample, SampleRequest } from "../engine.ts";
import { LocalEngine, type LocalOptions } from "../local-engine.ts";

function engineOf(options: LocalOptions & { readonly threads?: number } = {}): LocalEngine {
  return new LocalEngine(tinyModel({ device: createCpu({ threads: options.threads ?? 1 }) }), options);
}

function request(prompt: readonly number[], key: string | number, more: Partial<SampleRequest> = {}): SampleRequest {
  return { prompt, max_new_tokens: 12, stop_ids: [], key: ["sample", key], ...more };
}

/** Allocates nearly all memory. It is never written to, so it costs only address space. */
function restOf(device: Device, left: number): Buffer {
  for (let size = 2 ** 30; ; size -= 2 ** 12) {
    try {
      const hog = device.alloc("f32", size);
      device.free(hog);
      return device.alloc("f32", size - left / 4);
    } catch (error) {
      expect(error).toMatchObject({ code: "out_of_memory" });
    }
  }
}

/** The part of a sample that must not depend on the batch or the cache. */
function essence({ tokens: ids, logprobs, finish_reason }: Sample) {
  return { ids, logprobs, finish_reason };
}

/** Prompts with common prefixes; their lengths are close to multiples of eight, the panel width. */
const PROMPT = tokens(23, "prompt");
const REQUESTS: readonly SampleRequest[] = [
  request(PROMPT, 0),
  request(PROMPT, 1, { temperature: 0.7 }),
  request(PROMPT.slice(0, 9), 2, { max_new_tokens: 1 }),
  request(PROMPT.slice(0, 1), 3, { max_new_tokens: 30 }),
  request([...PROMPT, ...tokens(8, "more")], 4, { temperature: 0 }),
  request([...PROMPT.slice(0, 16), ...tokens(3, "other")], 5, { stop_ids: [0, 7, 11, 13, 40] }),
  request(tokens(64, "long"), 6, { temperature: 1.3 }),
  request(tokens(5, "filtered"), 7, { top_k: 9, top_p: 0.9, min_p: 0.01 }),
];
const alone = await Promise.all(REQUESTS.map(async (one) => essence(await engineOf().sample(one))));

describe("the same bits", () => {
  test.each([1, 2])("alone and all together, %i threads", async (threads) => {
    const engine = engineOf({ threads });
    const together = await Promise.all(REQUESTS.map((one) => engine.sample(one)));
    expect(together.map(essence)).toEqual(alone);
    await engine.close();
  });

  test("in another order, joining while others are running, and everything cached", async () => {
    const engine = engineOf();
    const order = [6, 3, 0, 7, 5, 1, 4, 2];
    const late: Promise<void>[] = [];
    const samples: Sample[] = [];
    const ask = async (at: number): Promise<void> => {
      const i = order[at]!;
      let next = order[at + 3];
      // The first token of one request starts another.
      const onToken = () => {
        if (next !== undefined) late.push(ask(at + 3));
        next = undefined;
      };
      samples[i] = await engine.sample({ ...REQUESTS[i]!, onToken });
    };
    await Promise.all([ask(0), ask(1), ask(2)]);
    while (late.length > 0) await late.shift();
    expect(samples.map(essence)).toEqual(alone);
    const again = await Promise.all(REQUESTS.map((one) => engine.sample(one)));
    expect(again.map(essence)).toEqual(alone);
    expect(again.map(({ cached_tokens }) => cached_tokens)).toEqual(REQUESTS.map(({ prompt }) => prompt.length - 1));
  });

  test("turn after turn as in one long prompt, each turn computing only what is new", async () => {
    const engine = engineOf();
    let context = PROMPT;
    for (const turn of [1, 2, 3, 4]) {
      const one = request(context, `turn ${turn}`, { max_new_tokens: 5 + turn });
      const sample = await engine.sample(one);
      expect(essence(sample)).toEqual(essence(await engineOf().sample(one)));
      // Only the last sampled token and the two observation tokens after it are new each time.
      expect(sample.cached_tokens).toBe(turn === 1 ? 0 : context.length - 3);
      context = [...context, ...sample.tokens, ...tokens(2, "observation", turn)];
    }
  });

  test.each([1, 3])("a group's long episodes, which outgrow their first KV block, %i threads", async (threads) => {
    const engine = engineOf({ threads });
    let contexts = [0, 1, 2].map((i) => ({ i, context: PROMPT }));
    for (const turn of [1, 2, 3, 4, 5, 6, 7]) {
      const requests = contexts.map(({ i, context }) => request(context, `${turn} ${i}`));
      const samples = await Promise.all(requests.map((one) => engine.sample(one)));
      if (turn % 3 === 0)
        for (const [i, one] of requests.entries())
          expect(essence(samples[i]!)).toEqual(essence(await engineOf().sample(one)));
      if (turn > 1)
        expect(samples.map(({ cached_tokens }) => cached_tokens)).toEqual(
          contexts.map(({ context }) => context.length - 20),
        );
      contexts = contexts.map(({ i, context }) => ({
        i,
        context: [...context, ...samples[i]!.tokens, ...tokens(19, "observation", turn, i)],
      }));
    }
    await engine.close();
  });

  test("aborted and continued with the same key", async () => {
    const engine = engineOf();
    const begun = await engine.sample(request(PROMPT, 0, { max_new_tokens: 5 }));
    const rest = await engine.sample(request([...PROMPT, ...begun.tokens], 0, { max_new_tokens: 7 }));
    expect([...begun.tokens, ...rest.tokens]).toEqual(alone[0]!.ids);
    expect([...begun.logprobs, ...rest.logprobs]).toEqual(alone[0]!.logprobs);
  });

  test("a group that shares a prompt computes it once", async () => {
    const engine = engineOf();
    const group = await Promise.all(Array.from({ length: 8 }, (_, i) => engine.sample(request(PROMPT, i))));
    expect(group.map(({ cached_tokens }) => cached_tokens)).toEqual([0, ...new Array(7).fill(PROMPT.length - 1)]);
    expect(essence(group[0]!)).toEqual(alone[0]);
    expect(new Set(group.map((sample) => sample.tokens.join())).size).toBe(8);
  });

  test("after any earlier requests: any tree of them, with a cache of any size", async () => {
    const plan = fc.record({
      maxCachedTokens: fc.constantFrom(16, 40, 100, 100_000),
      requests: fc.array(
        fc.record({
          base: fc.nat(),
          keep: fc.nat(40),
          more: fc.integer({ min: 1, max: 20 }),
          news: fc.integer({ min: 1, max: 9 }),
        }),
        { minLength: 2, maxLength: 10 },
      ),
      atOnce: fc.integer({ min: 1, max: 4 }),
    });
    const fresh = new Map<string, ReturnType<typeof essence>>();
    const plain = engineOf();
    await fc.assert(
      fc.asyncProperty(plan, async ({ maxCachedTokens, requests, atOnce }) => {
        const engine = engineOf({ maxCachedTokens });
        const contexts: number[][] = [[]];
        for (let at = 0; at < requests.length; at += atOnce) {
          const batch = requests.slice(at, at + atOnce).map(({ base, keep, more, news }, i) => {
            const prompt = [
              ...contexts[base % contexts.length]!.slice(0, keep),
              ...tokens(more, "tree", base % 3, more),
            ];
            return request(prompt, (at + i) % 3, { max_new_tokens: news });
          });
          const samples = await Promise.all(batch.map((one) => engine.sample(one)));
          for (const [i, sample] of samples.entries()) {
            const one = batch[i]!;
            const name = JSON.stringify(one);
            plain.forgetCache();
            if (!fresh.has(name)) fresh.set(name, essence(await plain.sample(one)));
            expect(essence(sample)).toEqual(fresh.get(name));
            contexts.push([...one.prompt, ...sample.tokens]);
          }
        }
        engine.model.device.close();
      }),
      { numRuns: 15 },
    );
  });
});

describe("log-probs", () => {
  test.each([0.3, 0.7, 0.8, 0.9, 1, 1.1, 1.3])(
    "are those of a full forward pass, to the bit: temperature %d",
    async (temperature) => {
      const engine = engineOf();
      const prompts = [PROMPT, PROMPT.slice(0, 8), tokens(40, "lp")];
      for (const filter of [{}, { top_k: 20, top_p: 0.95 }]) {
        const samples = await Promise.all(
          prompts.map((prompt, i) => engine.sample(request(prompt, i, { temperature, max_new_tokens: 20, ...filter }))),
        );
        const batch = samples.map((sample, i) => ({ tokens: [...prompts[i]!, ...sample.tokens], weights: [] }));
        const logprobs = await engine.logprobs(batch, { temperature });
        for (const [i, sample] of samples.entries()) {
          expect([...logprobs[i]!.subarray(prompts[i]!.length)]).toEqual(sample.logprobs);
        }
      }
    },
  );

  test("of greedy tokens are those at temperature 1, and no other token is likelier", async () => {
    const engine = engineOf();
    const { tokens: chosen, logprobs } = await engine.sample(request(PROMPT, 0, { temperature: 0 }));
    expect(chosen).toEqual((await engine.sample(request(PROMPT, "another key", { temperature: 0 }))).tokens);
    for (const [i, logprob] of logprobs.entries()) {
      const context = [...PROMPT, ...chosen.slice(0, i)];
      const all = Array.from({ length: TINY.vocab_size }, (_, token) => ({ tokens: [...context, token], weights: [] }));
      const every = (await engine.logprobs(all)).map((values) => values.at(-1)!);
      expect(Math.max(...every)).toBe(logprob);
      expect(every.indexOf(logprob)).toBe(chosen[i]);
    }
  });

  test("tokens are as frequent as their probability", async () => {
    const engine = engineOf();
    const n = 1_500;
    const one = { max_new_tokens: 1, temperature: 0.8 };
    const samples = await Promise.all(Array.from({ length: n }, (_, i) => engine.sample(request(PROMPT, i, one))));
    const all = Array.from({ length: TINY.vocab_size }, (_, token) => ({ tokens: [...PROMPT, token], weights: [] }));
    const logprobs = await engine.logprobs(all, { temperature: 0.8 });
    for (const [token, values] of logprobs.entries()) {
      const p = Math.exp(values.at(-1)!);
      const count = samples.filter((sample) => sample.tokens[0] === token).length;
      expect(Math.abs(count - n * p)).toBeLessThan(5 * Math.sqrt(n * p * (1 - p)) + 1);
    }
  });
});

describe("sampling ends", () => {
  test("after a stop id, which is part of the sample; else after max_new_tokens", async () => {
    const free = await engineOf().sample(request(PROMPT, 0));
    expect([free.tokens.length, free.finish_reason]).toEqual([12, "length"]);
    const stop = free.tokens[4]!;
    const first = free.tokens.indexOf(stop);
    const stopped = await engineOf().sample(request(PROMPT, 0, { stop_ids: [999, stop] }));
    expect(stopped.finish_reason).toBe("stop");
    expect(stopped.tokens).toEqual(free.tokens.slice(0, first + 1));
    const exact = await engineOf().sample(request(PROMPT, 0, { stop_ids: [stop], max_new_tokens: first + 1 }));
    expect(exact.finish_reason).toBe("stop");
  });

  test("when aborted, with the tokens so far; others continue", async () => {
    const engine = engineOf();
    const abort = new AbortController();
    const seen: number[] = [];
    const onToken = (token: number) => {
      seen.push(token);
      if (seen.length === 3) abort.abort();
    };
    const [aborted, other] = await Promise.all([
      engine.sample(request(PROMPT, 0, { signal: abort.signal, onToken })),
      engine.sample(REQUESTS[1]!),
    ]);
    expect(aborted.finish_reason).toBe("aborted");
    expect(aborted.tokens).toEqual(alone[0]!.ids.slice(0, 3));
    expect(seen).toEqual(aborted.tokens);
    expect(essence(other)).toEqual(alone[1]);
    const never = await engine.sample(request(PROMPT, 0, { signal: AbortSignal.abort() }));
    expect(never).toMatchObject({ finish_reason: "aborted", tokens: [], logprobs: [] });
  });

  test("onToken gets every token in order; if it throws, only its own sample fails", async () => {
    const engine = engineOf();
    const heard: number[] = [];
    const broken = engine.sample(
      request(PROMPT, 9, {
        onToken: () => {
          throw new Error("the listener broke");
        },
      }),
    );
    const whole = engine.sample({ ...REQUESTS[0]!, onToken: (token) => heard.push(token) });
    await expect(broken).rejects.toThrow("the listener broke");
    expect(essence(await whole)).toEqual(alone[0]);
    expect(heard).toEqual(alone[0]!.ids);
    expect(essence(await engine.sample(REQUESTS[1]!))).toEqual(alone[1]);
  });

  test("when the device is out of memory: the requests fail, and the engine continues without their cached values", async () => {
    const device = createCpu({ threads: 1 });
    const engine = new LocalEngine(tinyModel({ device }));
    await engine.sample(REQUESTS[0]!);
    let refused = 0;
    for (const left of [0, 2 ** 14, 2 ** 16, 2 ** 17]) {
      const hog = restOf(device, left);
      const settled = await Promise.allSettled(REQUESTS.map((one) => engine.sample(one)));
      for (const [i, outcome] of settled.entries()) {
        if (outcome.status === "fulfilled") expect(essence(outcome.value)).toEqual(alone[i]);
        else expect(outcome.reason).toMatchObject({ code: "out_of_memory" });
        if (outcome.status === "rejected") refused++;
      }
      device.free(hog);
      expect((await Promise.all(REQUESTS.map((one) => engine.sample(one)))).map(essence)).toEqual(alone);
    }
    expect(refused).toBeGreaterThan(0);
  });

  test("when the engine closes: running requests are rejected, and so are later ones", async () => {
    const engine = engineOf({ threads: 2 });
    const closing = () => void engine.close();
    const running = engine.sample(request(PROMPT, 0, { onToken: closing }));
    await expect(running).rejects.toThrow("the engine was closed");
    await expect(engine.sample(REQUESTS[0]!)).rejects.toThrow("closed");
  });
});

describe("bad requests", () => {
  const engine = engineOf();
  test.each<[string, Partial<SampleRequest>, string]>([
    ["an empty prompt", { prompt: [] }, "the prompt is empty"],
    ["a token outside the vocabulary", { prompt: [3, 61] }, "token id outside the vocabulary: 61; ids are below 61"],
    ["a negative token", { prompt: [-1] }, "outside the vocabulary: -1"],
    ["a broken token", { prompt: [1.5] }, "outside the vocabulary: 1.5"],
    [
      "too long a prompt",
      { prompt: tokens(250, "w") },
      "longer than the model's window: 250 + 12 > 256; lower max_new_tokens",
    ],
    ["no new tokens", { max_new_tokens: 0 }, "max_new_tokens must be a whole number from 1: 0"],
    ["half a new token", { max_new_tokens: 1.5 }, "max_new_tokens must be a whole number from 1: 1.5"],
    ["a negative temperature", { temperature: -1 }, "temperature must not be negative: -1"],
    ["no temperature", { temperature: Number.NaN }, "temperature must not be negative: NaN"],
  ])("%s is refused", async (_, change, message) => {
    const sampling = engine.sample(request(PROMPT, 0, change));
    await expect(sampling).rejects.toThrow(UsageError);
    await expect(sampling).rejects.toThrow(message);
  });
});

const title = "minimind2-small, a real model: 64 greedy tokens are those of transformers";
test.skipIf(!hasMinimind)(hasMinimind ? title : `${title} (the model is not here)`, async () => {
  const { ids, greedy } = readMinimind();
  const folder = await minimindFolder();
  const config = parseConfig(readJson(`${folder}/config.json`));
  const model = createModel(createCpu({ threads: 2 }), config, { trains: false });
  const source = await openSafetensors(folder);
  await loadWeights(model, source);
  await source.close();
  const engine = new LocalEngine(model);
  const asked = { max_new_tokens: greedy.length, stop_ids: [], temperature: 0, key: [] };
  expect((await engine.sample({ ...asked, prompt: ids })).tokens).toEqual(greedy);
  await engine.close();
});
