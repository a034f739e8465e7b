// Notebook output: rich MIME types in notebooks, text elsewhere, live updates in place, untrusted text escaped.
import { expect, test } from "vitest";
import type { QuestionRecord } from "../../gym/data/index.ts";
import { type EpisodeRecord, summarize } from "../../gym/evaluation/index.ts";
import type { EpisodeLine, Evaluation, StageEvaluation, TrainingView } from "../../rl/index.ts";
import {
  type Bundle,
  comparisonView,
  curveView,
  episodesView,
  failuresView,
  Shown,
  TrainingBoard,
  trendOf,
} from "./index.ts";

const EMPTY = { ...summarize([]), episodes: 24 };

const HOSTILE = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

const episode = (correctness: 0 | 1 | null): EpisodeRecord => ({
  ...{ player: "model", question_id: "q", question: `Who is ${HOSTILE}?`, database_name: HOSTILE, difficulty: "easy" },
  ...{ answer_type: "integer", split: "eval", seen: false, start: null, steps: [], correctness, progress: 0 },
  ...{ operational: 0, reward: correctness, step_count: 2, done_reason: "answered", parse_failures: 0, repeats: 0 },
  ...{ invalid: 0, error: null },
});

test("a view has MIME types for notebooks and is text when printed", () => {
  const shown = new Shown({ "text/html": "<b>x</b>", "text/plain": "x" });
  const asKernel = shown as unknown as Record<symbol, () => Bundle>;
  expect(asKernel[Symbol.for("Jupyter.display")]!()).toEqual({ "text/html": "<b>x</b>", "text/plain": "x" });
  expect(`${shown}`).toBe("x");
});

test("the board is one picture updated in place, with the newest episode below it", async () => {
  const shown = new Map<string, Bundle>();
  const names: string[] = [];
  const board = new TrainingBoard(async (name, { bundle }) => {
    shown.set(name, bundle);
    names.push(name);
  });
  const view = (step: number) => ({ state: { step }, total_steps: 4 }) as TrainingView;
  const rate = (success_rate: number) => ({ greedy: { ...EMPTY, success_rate, success_ci: [0, 1] }, sampled: EMPTY });
  const evaluation = (success: number) => ({ seen: rate(0), unseen: rate(success) }) as unknown as Evaluation;
  const line = { ...episode(0), steps: [{ action: { action_type: "ANSWER" } }] } as unknown as EpisodeLine;
  await board.on_evaluate(view(0), evaluation(0));
  await board.show({ kind: "transcript", step: 0, total_steps: 4, text: "at first", episode: episode(0) });
  for (const step of [1, 2]) {
    board.on_log(view(step), { step, reward: step / 10, "rewards/reward_correctness/mean": 0.25 });
    board.on_step_end(view(step), { episodes: [{ ...line, step }] });
    await board.show({ kind: "reward", step, total_steps: 4, text: "", points: [] });
  }
  await board.on_evaluate(view(2), evaluation(0.5));
  await board.show({ kind: "transcript", step: 2, total_steps: 4, text: "the newest", episode: episode(1) });
  expect(names).toEqual(["board", "episode", "board", "board", "board", "episode"]);
  const svg = shown.get("board")!["image/svg+xml"]!;
  for (const label of ["answers at once", "reward 0.2", "unseen 50 %", "seen 0 %", "training 25 %", "n = 24"])
    expect(svg).toContain(label);
  expect(shown.get("board")!["text/plain"]).toBe(
    "reward 0.150 at the start, 0.150 at the end\nright on unseen databases: step 0 0.0 %, step 2 50.0 %",
  );
  expect(shown.get("episode")!["text/plain"]).toBe("the newest");
  expect(shown.get("episode")!["text/html"]).toContain("right, reward +1");
});

test("failures are shown with the gold, and counted", () => {
  const stage = (player: string, correctness: 0 | 1, argument: string) => {
    const steps = [
      { action: { action_type: "QUERY", argument: "SELECT 1" }, observation: { error: null } },
      { action: { action_type: "ANSWER", argument }, observation: { error: null } },
    ] as unknown as EpisodeRecord["steps"];
    return { player, episodes: [{ ...episode(correctness), steps }] } as unknown as StageEvaluation;
  };
  const question = { question_id: "q", gold_sql: "SELECT 12", gold_answer: "12", tables_involved: ["t"] };
  const stages = { before: stage("before", 0, "x"), after: stage("after", 0, HOSTILE) };
  const { bundle } = failuresView(stages, [question as unknown as QuestionRecord]);
  expect(bundle["text/plain"]).toContain("1 of 1 held-out questions are still answered wrong");
  expect(bundle["text/plain"]).toContain('expected "12" by SELECT 12');
  expect(bundle["text/html"]).toContain("Expected answer");
  expect(bundle["text/html"]).not.toMatch(/<script|<img/);
  const solved = failuresView({ ...stages, after: stage("after", 1, "12") }, [question as unknown as QuestionRecord]);
  expect(String(solved)).toBe("0 of 1 held-out questions are still answered wrong (greedy decoding)");
});

test("text from databases and models is escaped, and styles are scoped", () => {
  const compared = { ...episode(1), episodes: [episode(0), episode(1)] };
  const shown = [
    episodesView([episode(1), episode(null)]),
    comparisonView({ players: ["before", HOSTILE], questions: [compared] }),
  ];
  for (const { bundle } of shown) {
    expect(bundle["text/html"]).toContain("&#60;script&#62;");
    expect(bundle["text/html"]).not.toMatch(/<script|<img/);
    expect(bundle["text/html"]).toMatch(/^<div class="sqlenv"><style>\.sqlenv\.sqlenv\{/);
    expect(bundle["text/html"]).not.toMatch(/:root|\bbody\{/);
  }
  expect(String(shown[0])).toContain("1 of 2 right, mean reward 1.00");
  expect(String(shown[1])).toContain("  before: wrong");
});

test("the learning curve has a text alternative", () => {
  const { bundle } = curveView([
    { step: 0, "eval_seen/greedy/success_rate": 0 },
    { step: 1, reward: 0.25 },
    { step: 2, reward: 0.75 },
  ]);
  expect(bundle["text/plain"]).toBe("reward 0.500 at the start, 0.500 at the end");
  const rewards = [0, 0.3, 0.6, 1, 1, 1, 0.4].map((reward) => ({ reward }));
  expect(trendOf(rewards)).toBe("reward 0.300 at the start, 0.800 at the end");
  expect(trendOf([])).toBe("no step yet");
  expect(bundle["image/svg+xml"]).toMatch(/^<svg/);
});
