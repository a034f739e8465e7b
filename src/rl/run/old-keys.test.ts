import { expect, test } from "vitest";
import { stageEvaluationSchema, trainingResultSchema } from "./records.ts";
import { INITIAL_STATE, MemoryStore, resumePointSchema } from "./store.ts";

test("a checkpoint that counts rollout batches as `generation` is read", () => {
  const { batches: _, ...state } = INITIAL_STATE;
  const read = resumePointSchema.parse({ state: { ...state, generation: 3 }, logs: new MemoryStore().lengths() });
  expect(read.state).toEqual({ ...INITIAL_STATE, batches: 3 });
});

test("a stage file with `standing` and `marks` is read, and fields that are not known are kept", () => {
  const rates = { episodes: 1, scored: 1, success_rate: 1, success_ci: [0.2, 1], mean_steps: 2, mean_reward: 1 };
  const evaluation = { seen: { greedy: rates, sampled: rates }, unseen: { greedy: rates, sampled: rates } };
  const judged = [{ question_id: "q", database: "d", seen: true, answer: true, spider: true, bird: false }];
  const file = { player: "before", standing: evaluation, compared: [], marks: judged, later: 1 };
  expect(stageEvaluationSchema.parse(file)).toEqual({ player: "before", evaluation, compared: [], judged, later: 1 });
  expect(stageEvaluationSchema.safeParse([]).success).toBe(false);
});

test("a result with `reach` is read", () => {
  const rates = { episodes: 0, scored: 0, success_rate: null, success_ci: null, mean_steps: null, mean_reward: null };
  const evaluation = { seen: { greedy: rates, sampled: rates }, unseen: { greedy: rates, sampled: rates } };
  const counts = { seconds: 1, steps: 1, episodes: 1, tokens: 1, warnings: 0 };
  const file = { run: "r", model_name: "m", ...counts, random: evaluation, before: evaluation, after: evaluation };
  const reach = { questions: 3, tries: 4, greedy: 0, sampled: 0.25, solved_in_tries: 0.5 };
  expect(trainingResultSchema.parse({ ...file, reach })).toEqual({ ...file, pass_at_k: reach });
});

test("an episode is read with its fields in the order of the file", () => {
  const episode =
    '{"later":1,"player":"before","steps":[],"correctness":1,"reward":1,"step_count":2,"done_reason":null,"error":null}';
  const rates = { episodes: 1, scored: 1, success_rate: 1, success_ci: null, mean_steps: 2 };
  const evaluation = { seen: { greedy: rates, sampled: rates }, unseen: { greedy: rates, sampled: rates } };
  const read = stageEvaluationSchema.parse({ player: "before", evaluation, compared: [JSON.parse(episode)] });
  expect(JSON.stringify(read.compared)).toBe(`[${episode}]`);
  const bad = stageEvaluationSchema.safeParse({ player: "before", evaluation, compared: [{ player: 1 }] });
  expect(bad.error?.issues[0]?.path).toEqual(["compared", 0, "player"]);
});
