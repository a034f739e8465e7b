import { describe, expect, test } from "vitest";
import { comparison, episode, metrics, RESULT } from "../../../test/helpers/run-records.ts";
import { presetNamed } from "../../rl/presets.ts";
import { changedSettings } from "./changed-settings.ts";
import { comparisonHtml, comparisonMarkdown } from "./comparison.ts";
import { countBy, evaluatedQuestions } from "./evaluated-questions.ts";
import { failuresHtml } from "./failures.ts";
import { learningCurve } from "./learning-curve.ts";
import { blogMarkdown } from "./model-card.ts";
import { runPage } from "./run-page.ts";
import { resultVerdict, verdictLine, verdictSentence } from "./verdict-sentence.ts";

const played = (id: string, correctness: 0 | 1, answer = "12") => ({
  ...episode("after", correctness, { question: `Question ${id}?`, cell: answer }),
  question_id: id,
});
const evaluation = {
  before: [played("a", 0), played("b", 1), played("c", 0)],
  after: [played("a", 1), played("b", 0, "<b>13"), played("c", 0, "7")],
};
const gold = {
  a: { query: "SELECT count(*) FROM lamp", answer: "12" },
  b: { query: "SELECT l.name FROM lamp l JOIN room r ON l.room = r.id", answer: "<i>desk" },
  c: { query: null, answer: "8" },
  shop_1: { query: "SELECT count(id) FROM lamp", answer: "twelve" },
};

describe("what still fails", () => {
  test("is counted by form, the most failures first", () => {
    const counted = countBy(evaluatedQuestions(evaluation, gold), "form");
    expect(counted.map(({ name, before, after }) => [name, before, after])).toEqual([
      ["two tables", 1, 0],
      ["other", 0, 0],
      ["count", 0, 1],
    ]);
  });

  test("is listed in the page with the given and the expected answer, escaped; what was right before is marked", () => {
    const page = runPage({ run: "lamps", config: null, metrics: metrics(), result: RESULT, evaluation, gold });
    expect(page).toContain("2 of 3 questions of the last evaluation were answered wrong");
    expect(page.match(/right before training</g)).toHaveLength(1);
    expect(page).toContain("&#60;b&#62;13");
    expect(page).toContain("&#60;i&#62;desk");
    expect(page).not.toContain("Question a?");
    expect(failuresHtml({ before: [], after: [played("a", 1)] }, gold)).toContain("All 1 question");
    expect(failuresHtml({ before: [], after: [played("x", 0)] }, null)).toContain("Question x?"); // without gold
  });

  test("is in the summary, with the last query and the gold", () => {
    const text = blogMarkdown({ result: RESULT, evaluation, gold });
    expect(text).toContain("| two tables | 1 | 1 | 0 | 1 |");
    expect(text).toContain("- Question c? Answered `7` after `SELECT count(*) FROM lamp`. Expected answer: `8`.");
  });
});

test("compared questions show the gold answer and query", () => {
  expect(comparisonHtml(comparison(), { gold })).toMatch(/Expected answer.*twelve.*Gold query/s);
  expect(comparisonMarkdown(comparison(), { gold })).toContain(
    "Expected answer: `twelve`; gold query: `SELECT count(id) FROM lamp`.",
  );
  expect(comparisonHtml(comparison())).not.toContain("Expected");
});

test("the report and the summary begin with the dashboard's sentence", () => {
  const line = "It learned. On unseen databases, right answers rose from 10.0 % to 80.0 %.";
  expect(verdictLine(resultVerdict(RESULT))).toBe(line);
  expect(blogMarkdown({ result: RESULT })).toContain(`**${line}**`);
  const page = runPage({ run: "lamps", config: null, metrics: [], result: RESULT });
  expect(page.replaceAll(/<\/?b[^>]*>/g, "")).toContain(line);
});

test("before the first test the sentence says how training episodes go, and when the test is", () => {
  const config = { eval_steps: 10, eval_at: [2, 8] };
  const run = { state: "training", step: 4, config, now: null, now_step: null } as const;
  const verdict = verdictSentence(
    { ...run, random: RESULT.random, before: RESULT.before, result: null },
    { first: 0.125, last: 0.25 },
  );
  expect(verdictLine(verdict)).toBe(
    "Not tested yet. Right answers in training episodes: 12.5 % at first, 25.0 % now; the next test is at step 8.",
  );
});

test("the curve draws components times their weights, so that they add up to the total", () => {
  const line = { step: 1, reward: 1.2, "rewards/reward_correctness/mean": 1, "rewards/reward_progress/mean": 0.5 };
  const svg = learningCurve([line], { reward_weights: [1, 0.4] });
  expect(svg).toContain(">progress × 0.4 0.2<");
  expect(svg).toContain(">correctness 1<");
  expect(learningCurve([line])).toContain(">progress 0.5<");
});

test("settings that differ from the nearest preset come first", () => {
  const settings = changedSettings({ ...presetNamed("starter"), learning_rate: 0.5, seed: 7, threads: null });
  expect(settings.preset).toBe("starter");
  expect(settings.changed).toEqual([{ key: "learning_rate", value: "0.5", usual: "0.001" }]);
  expect(settings.same.map(({ key }) => key)).toContain("seed");
  const page = runPage({ run: "lamps", config: { ...presetNamed("starter"), learning_rate: 0.5 }, metrics: [] });
  expect(page).toMatch(/preset starter<\/th>.*<td>learning_rate<\/td><td>0.5<\/td><td>0.001<\/td>.*other settings/s);
});
