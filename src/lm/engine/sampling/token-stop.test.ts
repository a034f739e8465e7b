// Tests stop rules: the sample is the same as without one, cut to whole tokens, whatever else is in the batch.
import { expect, test } from "vitest";
import { TINY, tinyModel, tokens } from "../../../../test/helpers/tiny-model.ts";
import { INSTRUCT_STOP } from "../../../gym/players/prompts/instruct.ts";
import { createCpu } from "../../devices/cpu/start.node.ts";
import type { SampleRequest } from "../engine.ts";
import { LocalEngine } from "../local-engine.ts";
import { TokenStop } from "./token-stop.ts";

const stop = (texts: readonly string[]) => new TokenStop({ rule: INSTRUCT_STOP, texts });
const keptOf = (pieces: readonly string[]) => {
  const watcher = stop(pieces);
  return pieces.map((_, token) => watcher.add(token)).find((kept) => kept >= 0) ?? -1;
};

test("whole tokens before the end are kept, blank ones at the end are not", () => {
  expect(keptOf(["QUERY", ": SELECT", " 1", "\n", "Result", ":"])).toBe(3);
  expect(keptOf(["QUERY", ": SELECT", " 1", ";\n", "x"])).toBe(4);
  // White space after the end belongs to a token that is needed.
  expect(keptOf(["QUERY", ": SELECT", " (1", ");\n\n", "Result"])).toBe(4);
  expect(keptOf(["QUERY", ": SELECT", " 'x", "';\n\n\n"])).toBe(4);
  expect(keptOf(["DESCRIBE:", ' "a', '"\n\n', "b"])).toBe(3);
  // The last byte of a letter is not white space.
  expect(keptOf(["ANSWER:", " \xe1\x88", "\xa0", "\n", "Result:"])).toBe(3);
  expect(keptOf(["DESCRIBE:", " a", "\n\n", "b"])).toBe(2);
  expect(keptOf(["DESCRIBE: a\nDESCRIBE: b"])).toBe(1); // at least one token
  expect(keptOf(["QUERY", ": SELECT", " 1"])).toBe(-1);
});

const engineOf = () => new LocalEngine(tinyModel({ device: createCpu({ threads: 1 }) }));
const PROMPT = tokens(23, "prompt");
/** Every token matters to the stop rule, so that stops are frequent. */
const PIECES = ["QUERY: ", "SELECT", " a", "\n", ";\n", "Result:", " b", "ANSWER: ", " c", "\n\n"];
const TEXTS = Array.from({ length: TINY.vocab_size }, (_, id) => PIECES[id % PIECES.length]!);
const request = (key: number, more: Partial<SampleRequest> = {}): SampleRequest => ({
  ...{ prompt: PROMPT, max_new_tokens: 40, stop_ids: [5], key: ["stop", key], ...more },
});
const rule = { stop: { rule: INSTRUCT_STOP, texts: TEXTS } };

test("a stopped sample is a prefix of the one without a stop, alone and in a batch", async () => {
  const keys = Array.from({ length: 12 }, (_, key) => key);
  const engine = engineOf();
  const free = await Promise.all(keys.map((key) => engine.sample(request(key))));
  const together = await Promise.all(keys.map((key) => engine.sample(request(key, key % 3 === 0 ? {} : rule))));
  let stopped = 0;
  for (const key of keys) {
    const { tokens: ids, logprobs, finish_reason } = together[key]!;
    expect(ids).toEqual(free[key]!.tokens.slice(0, ids.length));
    expect(logprobs).toEqual(free[key]!.logprobs.slice(0, ids.length));
    if (ids.length < free[key]!.tokens.length) {
      stopped++;
      expect(finish_reason).toBe("stop");
    }
    if (key % 4 !== 1) continue;
    const alone = await engineOf().sample(request(key, key % 3 === 0 ? {} : rule));
    expect([alone.tokens, alone.logprobs]).toEqual([ids, logprobs]);
  }
  expect(stopped).toBeGreaterThan(3);
  await engine.close();
});

test("the next turn continues where the kept tokens end, to the same bits", async () => {
  const engine = engineOf();
  let context = PROMPT;
  let dropped = 0;
  for (let turn = 0; turn < 8; turn++) {
    const one = request(turn, { prompt: context, ...rule });
    const sample = await engine.sample(one);
    const fresh = await engineOf().sample(one);
    expect([sample.tokens, sample.logprobs]).toEqual([fresh.tokens, fresh.logprobs]);
    // Everything kept was computed before, except a last token after which nothing was sampled.
    if (turn > 0) expect(sample.cached_tokens).toBeGreaterThanOrEqual(context.length - 4);
    if (sample.finish_reason === "stop" && sample.tokens.at(-1) !== 5) dropped++;
    context = [...context, ...sample.tokens, ...tokens(3, "observation", turn)];
  }
  expect(dropped).toBeGreaterThan(2);
  await engine.close();
});
