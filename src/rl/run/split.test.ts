import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import type { DataSet, QuestionRecord } from "../../gym/data/index.ts";
import { resolveConfig } from "../config.ts";
import { loadQuestionPrompts } from "../sql/questions.ts";
import { keepSplit, overlapWarning, sftDatabases, sftQuestions, splitOf } from "./split.ts";
import { MemoryStore } from "./store.ts";

const small = await smallDataSet();
const all = ["easy", "medium", "hard"] as const;
const settings = (given: object = {}) => resolveConfig({ sft_steps: 1, difficulty_filter: [...all], ...given });

/** The small set with its training questions spread over n databases. */
function spread(databases: number): DataSet {
  const train = small.questions.filter(({ split }) => split === "train");
  const questions = Array.from({ length: 2 * databases }, (_, i): QuestionRecord => {
    const of = train[i % train.length]!;
    return { ...of, question_id: `q${i}`, database_name: `d${i % databases}` };
  });
  return { ...small, questions: [...questions, ...small.questions.filter(({ split }) => split === "eval")] };
}

test("SFT and GRPO have different databases, together all of them, and the seed decides which", async () => {
  const data = spread(9);
  const split = await splitOf(data, settings());
  expect([split.sft.databases.length, split.grpo.databases.length]).toEqual([3, 6]);
  expect(new Set([...split.sft.databases, ...split.grpo.databases]).size).toBe(9);
  expect(split.sft.ids_sha256).not.toBe(split.grpo.ids_sha256);
  const asked = new Set(loadQuestionPrompts(data, settings()).map(({ question_id }) => question_id));
  expect(asked.size).toBe(split.grpo.questions);
  expect(sftQuestions(data, settings()).filter(({ question_id }) => asked.has(question_id))).toEqual([]);
  const draws = [1, 2, 3, 4].map((seed) => sftDatabases(data, settings({ seed })).join());
  expect(new Set(draws).size).toBeGreaterThan(1);
});

test("the draw depends on names and seed only", () => {
  const data = spread(9);
  const drawn = sftDatabases(data, settings());
  expect(sftDatabases({ ...data, questions: data.questions.toReversed() }, settings())).toEqual(drawn);
  expect(sftDatabases(data, settings({ difficulty_filter: ["easy"], sft_data_share: 0.9 }))).toEqual(drawn);
});

test("without SFT on the data set GRPO asks everything", () => {
  for (const given of [{ sft_steps: 0 }, { sft_database_share: 0 }, { sft_data_share: 0 }])
    expect(loadQuestionPrompts(small, settings(given))).toHaveLength(5);
});

test("overlap has to be requested, and gives a warning", async () => {
  expect(overlapWarning(await splitOf(small, settings()))).toBeNull();
  const split = await splitOf(small, settings({ sft_overlap: true, sft_database_share: 1 }));
  expect(split.sft.databases).toEqual(split.grpo.databases);
  expect(overlapWarning(split)?.message).toMatch(/all right or all wrong/);
});

test.each<[object, DataSet, RegExp]>([
  [{}, spread(1), /need a training database each; those of small are: 1; give --sft-database-share 0/],
  [
    {},
    { ...small, questions: small.questions.map((q) => ({ ...q, gold_sql: "SELECT 42", tables_involved: [] })) },
    /have answers but no gold SQL for SFT; sft_database_share is: 0\.333; give --sft-database-share 0/,
  ],
  [{ sft_database_share: 0.9 }, small, /takes all 2 training databases of small and leaves none to GRPO: 0\.9; give l/],
  [
    { difficulty_filter: ["hard"] },
    spread(9),
    /no training question with gold SQL on the databases drawn for SFT .* is: hard/,
  ],
  [
    { sft_overlap: true, sft_database_share: 1 },
    {
      ...small,
      questions: small.questions.flatMap((q) => [q, { ...q, split: "eval", question_id: `${q.question_id}b` }]),
    },
    /a question would be used by SFT and by the evaluation: shop_.* and .*b; remove one/,
  ],
])("%j is refused in one line", async (given, data, message) => {
  await expect(splitOf(data, settings(given))).rejects.toThrow(message);
});

test("a run keeps its split, and is not continued with another", async () => {
  const store = new MemoryStore();
  keepSplit(store, await splitOf(spread(9), settings()));
  keepSplit(store, await splitOf(spread(9), settings()));
  const other = await splitOf(spread(8), settings());
  expect(() => keepSplit(store, other)).toThrow(/begun with another split .*: sft questions, grpo questions; restore/);
});
