import { expect, test } from "vitest";
import { smallDataSet } from "../../../test/helpers/small-data.ts";
import { type EpisodeRecord, evaluate } from "../../gym/evaluation/index.ts";
import { oraclePlayer, randomPlayer } from "../../gym/players/index.ts";
import { accuracyOf, judgeEpisodes, outcomesOf, pairsOf } from "./outcomes.ts";

const data = await smallDataSet();

const played = async (player: typeof oraclePlayer) => {
  const records: EpisodeRecord[] = [];
  await evaluate(data, player(), { onEpisode: (record) => records.push(record) });
  return judgeEpisodes(records, data);
};

test("answers and last queries are counted by split, stages are compared, and outcomes are bits", async () => {
  const [base, after] = [await played(randomPlayer), await played(oraclePlayer)];
  const { seen, unseen } = accuracyOf(after);
  expect([seen.questions, unseen.questions]).toEqual([5, 10]);
  for (const rule of ["answer", "spider", "bird"] as const) expect(unseen[rule]).toMatchObject({ right: 10, rate: 1 });
  const [stageA, stageB] = [
    { stage: "base", judged: base },
    { stage: "after", judged: after },
  ];
  const pairs = pairsOf([stageA, stageB], 1);
  const pair = pairs.find(({ place, mark }) => place === "unseen" && mark === "answer")!;
  const wrong = base.filter(({ seen, answer }) => !seen && !answer).length;
  expect(pair).toMatchObject({ from: "base", to: "after", questions: 10, databases: 2, only_a: 0, only_b: wrong });
  const about = {
    model_name: "m",
    seed: 1,
    data: "small",
    prompt: "p",
    rules: "r",
    step_budget: 10,
    max_new_tokens: 9,
  };
  const { stages, bits, questions } = await outcomesOf([stageA, stageB], about);
  expect({ stages, bits }).toEqual({ stages: ["base", "after"], bits: ["answer", "spider", "bird"] });
  const counts = Object.entries(questions).map(([database, of]) => [database, Object.keys(of).length]);
  expect(Object.fromEntries(counts)).toEqual({ park: 4, shop: 3, store: 6, zoo: 2 });
  expect(Object.values(questions).every((of) => Object.values(of).every(([, is]) => is === 7))).toBe(true);
});

test("a right answer after a wrong query counts as an answer only", async () => {
  const [question] = data.questions.filter(({ split }) => split === "eval");
  const step = (action_type: string, argument: string) => ({
    ...{ action: { action_type, argument }, text: null, parse_error: null },
    observation: { error_class: null },
  });
  const { question_id, database_name } = question!;
  const record = { question_id, database_name, seen: true, correctness: 1, steps: [step("QUERY", "SELECT 77")] };
  const judged = (more: object) =>
    judgeEpisodes([{ ...record, error: null, ...more } as unknown as EpisodeRecord], data);
  expect(await judged({})).toMatchObject([{ answer: true, spider: false, bird: false }]);
  expect(await judged({ error: "the environment's thread was lost", correctness: null })).toEqual([]);
});
