// Notebook output: rich MIME types in notebooks, text elsewhere, live updates in place, untrusted text escaped.
import { expect, test } from "vitest";
import type { EpisodeRecord } from "../../gym/evaluation/index.ts";
import type { LiveView } from "../../rl/index.ts";
import { type Bundle, comparisonView, curveView, episodesView, Shown, showOn, trendOf } from "./index.ts";

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

test("plots and transcript are updated in place and include everything so far", async () => {
  const board = new Map<string, Bundle>();
  const names: string[] = [];
  const show = showOn(async (name, { bundle }) => {
    board.set(name, bundle);
    names.push(name);
  });
  const rewards = [1, 2, 3].map((step) => ({ step, reward: step / 10 }));
  const views: LiveView[] = [
    { kind: "transcript", step: 0, total_steps: 3, text: "at first", episode: episode(0) },
    { kind: "success", step: 0, total_steps: 3, text: "even", points: [{ step: 0, train: 0, eval: 0.5 }] },
    { kind: "reward", step: 3, total_steps: 3, text: "up", points: rewards },
    { kind: "transcript", step: 3, total_steps: 3, text: "the transcript", episode: episode(1) },
  ];
  for (const view of views) await show(view);
  expect(names).toEqual(["plots", "transcript", "plots", "plots", "transcript"]);
  expect(board.get("plots")!["text/plain"]).toBe("up\neven");
  const svg = board.get("plots")!["image/svg+xml"]!;
  expect(svg).toContain("reward 0.3");
  expect(svg).toContain("train 0 %");
  expect(svg).toContain("eval 50 %");
  expect(board.get("transcript")!["text/plain"]).toBe("the transcript");
  expect(board.get("transcript")!["text/html"]).toContain("right, reward +1");
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
