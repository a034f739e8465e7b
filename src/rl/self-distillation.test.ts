import { beforeAll, expect, test } from "vitest";
import { smallDataSet } from "../../test/helpers/small-data.ts";
import { type FineTuned, taughtModel, teach } from "../../test/helpers/taught-model.ts";
import type { DataSet } from "../gym/data/index.ts";
import { formatObservation, getSystemPrompt, type TokenSampler } from "../gym/players/index.ts";
import { type GRPOConfigInput, resolveConfig } from "./config.ts";
import type { Episode } from "./run/records.ts";
import { distill, MAX_LOG_RATIO } from "./self-distillation.ts";
import { failuresOf } from "./sql/failures.ts";
import { rolloutFunc } from "./sql/rollout-func.ts";
import { createSqlEnvironment } from "./sql/sql-environment.ts";

let data: DataSet;
let fineTuned: FineTuned;
beforeAll(async () => {
  data = await smallDataSet();
  fineTuned = await teach(data, 20);
});

const config = (given: GRPOConfigInput = {}) =>
  resolveConfig({
    ...{ max_new_tokens: 64, max_completion_length: 200, max_context_tokens: 500, step_budget: 4, num_generations: 2 },
    ...{ self_distillation: 0.5, ...given },
  });

const WRONG = ["QUERY: SELECT colour FROM maker", "QUERY: SELECT colour FROM maker", "ANSWER: nothing"];
const ALSO_WRONG = ["DESCRIBE: makers", "ANSWER: 7"];
const RIGHT = ["QUERY: SELECT count(*) FROM product", "ANSWER: 5"];

/** Self-distillation in the SQL environment. */
const distilled = (
  episodes: readonly Episode[],
  model: Parameters<typeof distill>[1],
  settings: ReturnType<typeof config>,
) => distill(episodes, model, createSqlEnvironment({ data, config: settings }), settings);

/** Episodes on the number of products, in which these turns are said. */
async function played(texts: readonly (readonly string[])[], given: GRPOConfigInput = {}): Promise<Episode[]> {
  const { tokenizer, turns } = fineTuned;
  const engine = (left: string[]): TokenSampler => ({
    sample: async () => {
      const tokens = turns.say(left.shift()!);
      return { tokens, logprobs: tokens.map(() => -1) };
    },
  });
  const question = data.questions.find(({ question_text: text }) => text === "How many products are there?")!;
  const prompt = { question_id: question.question_id, text: question.question_text };
  const play = async (said: readonly string[]) =>
    (await rolloutFunc([prompt], engine([...said]), tokenizer, config(given), { data, turns }))[0]!;
  return Promise.all(texts.map(play));
}

test("failures are actions with errors, one for each error, where all were wrong", async () => {
  const texts = async (...group: (readonly string[])[]) =>
    failuresOf(await played(group)).map(({ text, observation }) => `${text} -> ${observation.error}`);
  expect(await texts(WRONG, ALSO_WRONG)).toEqual([
    "QUERY: SELECT colour FROM maker -> no such column: colour",
    "DESCRIBE: makers -> no such table: makers; tables: maker, product",
  ]);
  expect(await texts(WRONG, RIGHT)).toEqual([]); // has spread
  expect(await texts(RIGHT, RIGHT)).toEqual([]);
  expect(await texts(["ANSWER: 7"], ["ANSWER: 8"])).toEqual([]); // wrong, and nothing was said of it
  expect(await texts(["hello", "QUERY:", "ANSWER: 7"], ["ANSWER: 8"])).toEqual([]); // no actions
  const unscored = (await played([WRONG, ALSO_WRONG])).map((episode) => ({ ...episode, correctness: null }));
  expect(failuresOf(unscored)).toEqual([]);
});

test("each of the student's tokens gets the log-prob after another's failure minus its own, clipped", async () => {
  const episodes = await played([RIGHT, WRONG, WRONG, ALSO_WRONG]);
  const { engine, turns } = taughtModel(fineTuned);
  const { advantages, metrics } = await distilled(episodes, { engine, turns }, config());
  expect([...advantages.keys()]).toEqual([2, 3]);
  expect(metrics["distillation/groups"]).toBe(0.5);

  let [kl, tokens] = [0, 0];
  for (const [i, other] of [
    [2, 3],
    [3, 2],
  ] as const) {
    const { start, segments } = episodes[i]!;
    const { tokens: said, mask } = segments[0]!;
    const asked = turns.start(getSystemPrompt(), formatObservation(start!));
    expect(said.slice(0, asked.length)).toEqual(asked);
    const { text, observation } = episodes[other]!.steps[0]!;
    const failed = [...turns.say(text!), ...turns.next(formatObservation(observation), { closed: true })];
    const teacher = [...asked, ...failed, ...said.slice(asked.length)];
    const [own, taught] = await engine.logprobs([
      { tokens: said, weights: mask },
      { tokens: teacher, weights: teacher.map(() => 1) },
    ]);
    const signal = advantages.get(i)![0]!;
    for (const [t, mine] of mask.entries()) {
      const ratio = mine ? taught![t + failed.length]! - own![t]! : 0;
      expect(signal[t]).toBeCloseTo(0.5 * Math.max(-MAX_LOG_RATIO, Math.min(MAX_LOG_RATIO, ratio)), 4);
      kl -= ratio;
      tokens += mine;
    }
  }
  expect(metrics["distillation/kl"]).toBeCloseTo(kl / tokens, 4);
  await engine.close();
});

test("an action that the student took itself is not shown to its teacher", async () => {
  const { engine, turns } = taughtModel(fineTuned);
  const same = await distilled(await played([WRONG, WRONG]), { engine, turns }, config());
  expect(same).toEqual({ advantages: new Map(), metrics: { "distillation/groups": 0 } });
  await engine.close();
});

test("a step moves the student's log-probs towards the teacher's", async () => {
  const episodes = await played([WRONG, ALSO_WRONG]);
  const { engine, turns } = taughtModel(fineTuned);
  const { advantages } = await distilled(episodes, { engine, turns }, config({ self_distillation: 1 }));
  const batch = episodes.map(({ segments: [segment] }, i) => ({
    ...{ tokens: segment!.tokens, weights: segment!.mask, advantage: advantages.get(i)![0]! },
  }));
  const before = await engine.logprobs(batch);
  await engine.forwardBackward(batch, { loss: { type: "policy" } });
  await engine.optimStep({ learning_rate: 3e-4 });
  const after = await engine.logprobs(batch);
  const distance = (logprobs: readonly Float32Array[]) =>
    batch.reduce(
      (sum, { weights, advantage }, i) =>
        sum +
        weights.reduce<number>(
          (n, mine, t) => n + (mine ? Math.abs(before[i]![t]! + advantage[t]! - logprobs[i]![t]!) : 0),
          0,
        ),
      0,
    );
  expect(distance(after)).toBeLessThan(0.99 * distance(before));
  await engine.close();
});

test("episodes without room for a failure, or without a score, keep their advantage", async () => {
  const episodes = await played([WRONG, ALSO_WRONG]);
  const { engine, turns } = taughtModel(fineTuned);
  const { text, observation } = episodes[0]!.steps[0]!;
  const failed = [...turns.say(text!), ...turns.next(formatObservation(observation), { closed: true })];
  const long = episodes[1]!.segments[0]!.tokens.length + failed.length;
  expect(long).toBeLessThan(episodes[0]!.segments[0]!.tokens.length + failed.length);
  const tight = await distilled(episodes, { engine, turns }, config({ max_context_tokens: long }));
  expect([...tight.advantages.keys()]).toEqual([1]);
  const three = [...(await played([WRONG, ALSO_WRONG])), { ...episodes[1]!, correctness: null }];
  const scored = await distilled(
    three,
    { engine, turns },
    config({ num_generations: 3, per_device_train_batch_size: 3 }),
  );
  expect([...scored.advantages.keys()]).toEqual([0, 1]);
  const none = await distilled(await played([RIGHT, WRONG]), { engine, turns }, config());
  expect(none).toEqual({ advantages: new Map(), metrics: { "distillation/groups": 0 } });
  await engine.close();
});

test("after a truncation of the history only the first segment has a teacher", async () => {
  const narrow = { max_context_tokens: 320, max_new_tokens: 40, max_completion_length: 200, step_budget: 6 };
  const looks = Array.from({ length: 4 }, () => "QUERY: SELECT colour, name FROM maker WHERE id = 1");
  const episodes = await played([[...looks, "ANSWER: 7"], ALSO_WRONG], narrow);
  expect(episodes[0]!.segments.length).toBeGreaterThan(1);
  const { engine, turns } = taughtModel(fineTuned);
  const { advantages } = await distilled(episodes, { engine, turns }, config({ ...narrow, max_context_tokens: 500 }));
  const [first, ...later] = advantages.get(0)!;
  expect(first!.some((value) => value !== 0)).toBe(true);
  expect(later.map(({ length }) => length)).toEqual(episodes[0]!.segments.slice(1).map(({ tokens }) => tokens.length));
  expect(later.every((values) => values.every((value) => value === 0))).toBe(true);
  await engine.close();
});
