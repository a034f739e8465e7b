// Rollouts: episodes have exactly what was sampled, truncated or not, whatever else is in the batch.
import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../test/helpers/small-data.ts";
import { tinyModel } from "../../test/helpers/tiny-model.ts";
import { UsageError } from "../errors.ts";
import type { DataSet } from "../gym/data/index.ts";
import { getSystemPrompt, type TokenSampler } from "../gym/players/index.ts";
import { LocalEngine } from "../lm/engine/index.ts";
import { createTurnEncoder, Tokenizer } from "../lm/model/index.ts";
import { trainBpe } from "../lm/model/text/bpe-trainer.ts";
import { type GRPOConfig, resolveConfig } from "./config.ts";
import type { Episode } from "./run/records.ts";
import { rolloutFunc } from "./sql/rollout-func.ts";

const tokenizer = new Tokenizer({
  tokenizer: trainBpe(
    [getSystemPrompt(), "DESCRIBE: product QUERY: SELECT name FROM animal ANSWER: 42 Steps left: 9"],
    {
      vocabSize: 420,
      specialTokens: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    },
  ),
  config: { eos_token: "<|im_end|>" },
});
const turns = createTurnEncoder(tokenizer);
const END = tokenizer.idOf("<|im_end|>")!;
const TOO_LONG = { max_context_tokens: 4096, max_new_tokens: 24, max_completion_length: 400, step_budget: 6 };
let data: DataSet;
let prompts: { question_id: string; text: string }[];

beforeAll(async () => {
  data = await smallDataSet();
  prompts = data.questions.slice(0, 3).map(({ question_id, question_text: text }) => ({ question_id, text }));
});

/** Replies with these lines in turn; each token id has its own log-prob. */
function speaker(lines: readonly string[]): TokenSampler & { asked: (readonly number[])[] } {
  const asked: (readonly number[])[] = [];
  return {
    asked,
    sample: async ({ prompt, max_new_tokens }) => {
      const line = lines[asked.push(prompt) - 1]!;
      const tokens = [...tokenizer.encodePlain(line), END].slice(0, max_new_tokens);
      return { tokens, logprobs: tokens.map((token) => -token / 1000) };
    },
  };
}

/** A model with random weights: deterministic noise. */
function babbler(): LocalEngine {
  return new LocalEngine(tinyModel({ config: { vocab_size: 424, max_position_embeddings: 4096 }, deviation: 0.12 }));
}

const config = (given: Partial<GRPOConfig> = {}) => resolveConfig({ ...TOO_LONG, ...given });
const said = ({ tokens, mask }: Episode["segments"][number]) => tokens.filter((_, i) => mask[i] === 1);

describe("an episode", () => {
  test("holds the messages, the steps, and one segment that is the whole conversation", async () => {
    const lines = ["DESCRIBE: product", "QUERY: SELECT count(*) FROM product", "ANSWER: 5"];
    const engine = speaker(lines);
    const [episode] = await rolloutFunc([prompts[0]!], engine, tokenizer, config({ max_new_tokens: 64 }), {
      data,
      turns,
    });
    expect(episode).toMatchObject({ correctness: 1, progress: 1, done_reason: "answered", truncated: false });
    expect(episode!.messages.map(({ role }) => role)).toEqual([
      "system",
      ..."user assistant ".repeat(3).trim().split(" "),
    ]);
    expect(episode!.messages.filter(({ role }) => role === "assistant").map(({ content }) => content)).toEqual(lines);
    expect(episode!.steps.map(({ action }) => action.action_type)).toEqual(["DESCRIBE", "QUERY", "ANSWER"]);
    const [segment, ...others] = episode!.segments;
    expect(others).toEqual([]);
    expect(tokenizer.decode(said(segment!))).toBe(lines.map((line) => `${line}<|im_end|>`).join(""));
    expect(episode!.completion_tokens).toBe(said(segment!).length);
    segment!.tokens.forEach((token, i) => {
      expect(segment!.logprobs[i]).toBe(segment!.mask[i] === 1 ? -token / 1000 : 0);
    });
    expect(segment!.tokens.slice(0, engine.asked[2]!.length)).toEqual(engine.asked[2]);
  });

  test("continues with text that is no action as a query, and counts it", async () => {
    const engine = speaker(["hm, products", "ANSWER: 5"]);
    const [episode] = await rolloutFunc([prompts[0]!], engine, tokenizer, config(), { data, turns });
    expect(episode).toMatchObject({ parse_failures: 1, correctness: 1, step_count: 2 });
    expect(episode!.steps[0]!.action).toEqual({ action_type: "QUERY", argument: "hm, products" });
  });

  test("is not truncated if another end-of-text token ends its last turn, which the next turn closes", async () => {
    const end = tokenizer.idOf("<|endoftext|>")!;
    const lines = ["DESCRIBE: product", "ANSWER: 5"];
    const prompted: (readonly number[])[] = [];
    const engine: TokenSampler = {
      sample: async ({ prompt }) => {
        const tokens = [...tokenizer.encodePlain(lines[prompted.push(prompt) - 1]!), end];
        return { tokens, logprobs: tokens.map(() => 0), finish_reason: "stop" };
      },
    };
    const [episode] = await rolloutFunc([prompts[0]!], engine, tokenizer, config(), { data, turns });
    expect(episode).toMatchObject({ correctness: 1, truncated: false });
    expect(tokenizer.decode(prompted[1]!)).toContain("DESCRIBE: product<|endoftext|><|im_end|>\n<|im_start|>user");
  });

  test("ends when the model has used up its tokens", async () => {
    const line = "QUERY: SELECT name FROM animal";
    const length = tokenizer.encodePlain(line).length + 1;
    const engine = speaker(Array.from({ length: 6 }, () => line));
    const max_completion_length = 2 * length + 3;
    const limit = config({ max_completion_length, max_new_tokens: length });
    const [episode] = await rolloutFunc([prompts[0]!], engine, tokenizer, limit, { data, turns });
    expect(episode).toMatchObject({ truncated: true, correctness: 0, done_reason: null, error: null, step_count: 3 });
    expect(episode!.completion_tokens).toBe(max_completion_length);
  });
});

describe("a batch", () => {
  test("has the same episodes whatever else it contains, with the log-probs that learning computes", async () => {
    const engine = babbler();
    const options = { data, turns, key: [1, "r", 0] };
    const together = await rolloutFunc(prompts, engine, tokenizer, config(), options);
    expect(await rolloutFunc(prompts.slice(0, 1), engine, tokenizer, config(), options)).toEqual(together.slice(0, 1));
    for (const { segments } of together) {
      for (const segment of segments) {
        const [recomputed] = await engine.logprobs([{ tokens: segment.tokens, weights: segment.mask }]);
        segment.mask.forEach((mine, i) => {
          if (mine) expect(segment.logprobs[i]).toBe(recomputed![i]);
        });
      }
    }
    await engine.close();
  });

  test("with another key has other episodes", async () => {
    const engine = babbler();
    const play = async (key: string) =>
      (await rolloutFunc(prompts, engine, tokenizer, config(), { data, turns, key: [key] })).map(
        ({ segments }) => segments,
      );
    expect(await play("a")).not.toEqual(await play("b"));
    await engine.close();
  });
});

describe("a short context", () => {
  test("splits histories into segments, each with the context the model was shown", async () => {
    const engine = babbler();
    const whole = config({ step_budget: 8 });
    const asked: (readonly number[])[] = [];
    const watched: TokenSampler = {
      sample: (request) => {
        asked.push(request.prompt);
        return engine.sample(request);
      },
    };
    const uncut = await rolloutFunc(prompts, engine, tokenizer, whole, { data, turns });
    const longest = Math.max(...uncut.map(({ segments }) => segments[0]!.tokens.length));
    const short = config({ step_budget: 8, max_context_tokens: Math.floor(longest * 0.7) });
    const episodes = await rolloutFunc(prompts, watched, tokenizer, short, { data, turns });
    expect(Math.max(...episodes.map(({ segments }) => segments.length))).toBeGreaterThan(1);
    for (const { segments, completion_tokens } of episodes) {
      expect(segments.reduce((sum, segment) => sum + said(segment).length, 0)).toBe(completion_tokens);
      for (const { tokens, mask } of segments) {
        expect(tokens.length).toBeLessThanOrEqual(short.max_context_tokens);
        // Every run of tokens that the model wrote follows a context it was sampled in.
        mask.forEach((mine, i) => {
          if (mine && !mask[i - 1]) expect(asked).toContainEqual(tokens.slice(0, i));
        });
      }
    }
    // Where nothing is cut, a limit changes nothing.
    const ample = config({ step_budget: 8, max_context_tokens: longest + 24 });
    expect(await rolloutFunc(prompts, engine, tokenizer, ample, { data, turns })).toEqual(uncut);
    await engine.close();
  });
});

test("an observation longer than any context ends the episode, and is no error", async () => {
  const engine = speaker(["QUERY: SELECT *, *, * FROM product", "ANSWER: 5"]);
  const [whole] = await rolloutFunc([prompts[0]!], engine, tokenizer, config({ max_new_tokens: 40 }), { data, turns });
  const first = whole!.segments[0]!.mask.indexOf(1);
  const max_context_tokens = first + 45;
  const small = config({ max_new_tokens: 40, max_context_tokens });
  const again = speaker(["QUERY: SELECT *, *, * FROM product", "ANSWER: 5"]);
  const [episode] = await rolloutFunc([prompts[0]!], again, tokenizer, small, { data, turns });
  expect(episode).toMatchObject({ truncated: true, correctness: 0, step_count: 1, error: null });
});

describe("prompts and failures", () => {
  test("a bare text is looked up; one that fits no question or several is refused", async () => {
    const engine = speaker(["ANSWER: 4"]);
    const play = (text: string, of: DataSet, given = config()) =>
      rolloutFunc([text], engine, tokenizer, given, { data: of, turns });
    const trained = { ...data, questions: data.questions.filter(({ split }) => split === "train") };
    const [episode] = await play("How many animals are there?", trained);
    expect(episode).toMatchObject({ database_name: "zoo", correctness: 1 });
    await expect(play("What?", data)).rejects.toThrow(/no such question in small: What\?/);
    await expect(play("How many animals are there?", data)).rejects.toThrow(
      /2 questions of small have this text.*question_id/,
    );
    const elsewhere = rolloutFunc(["x"], engine, tokenizer, config({ questions_path: "a.json" }));
    await expect(elsewhere).rejects.toThrow(/pass it as the option `data`/);
  });

  test("an engine error is not an episode error: it is thrown when the others have ended", async () => {
    const broken: TokenSampler = {
      sample: async () => {
        throw new UsageError({ what: "no memory" });
      },
    };
    await expect(rolloutFunc(prompts, broken, tokenizer, config(), { data, turns })).rejects.toThrow("no memory");
  });

  test("an aborted batch throws the reason", async () => {
    const abort = new AbortController();
    const slow: TokenSampler = {
      sample: ({ signal }) =>
        new Promise((_, reject) => {
          signal!.addEventListener("abort", () => reject(signal!.reason));
          abort.abort(new Error("enough"));
        }),
    };
    await expect(
      rolloutFunc(prompts, slow, tokenizer, config(), { data, turns, signal: abort.signal }),
    ).rejects.toThrow("enough");
  });
});
