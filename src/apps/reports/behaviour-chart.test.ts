import { expect, test } from "vitest";
import { type ActionStats, behaviourOf, countActions } from "./action-stats.ts";
import { behaviourChart } from "./behaviour-chart.ts";

test("an episode is classified by its sequence of actions", () => {
  const kinds = (all: readonly string[]) => new Set(all.map(behaviourOf));
  expect(kinds(["A"])).toEqual(new Set(["answer_at_once"]));
  expect(kinds(["DQA", "SQA", "DSQA", "DDQA"])).toEqual(new Set(["explore_query_answer"]));
  expect(kinds(["DQQA", "DQDQA", "SQSA"])).toEqual(new Set(["explore_query_again"]));
  expect(kinds(["", "QA", "DA", "DQ", "QDQA", "AA"])).toEqual(new Set(["other"]));
});

test("the shares of a step's episodes add up to 1", async () => {
  const episode = (letters: string) => ({
    ...{ step: 1, invalid: 0, repeats: 0, parse_failures: 0 },
    steps: [...letters].map((action_type) => ({ action: { action_type } })),
  });
  const [stats] = await countActions(["A", "A", "DQA", "DQQA", "Q"].map(episode));
  expect(stats).toMatchObject({ answer_at_once: 0.4, explore_query_answer: 0.2, explore_query_again: 0.2, other: 0.2 });
});

const line = (step: number, share: number): ActionStats => ({
  ...{ step, episodes: 64, failed: 0, repeated: 0, not_understood: 0, DESCRIBE: 1, SAMPLE: 0, QUERY: 1, ANSWER: 1 },
  ...{ explore_query_answer: share, explore_query_again: 0, other: 0, answer_at_once: 1 - share },
});

test("draws one area per behaviour, down to a single step, and none without episodes", () => {
  const areas = (svg: string) => [...svg.matchAll(/fill-opacity="[\d.]+" d="(M[^"]+Z)"/g)].map((match) => match[1]!);
  const svg = behaviourChart([line(1, 0.25), line(2, 0.75)], { width: 462, height: 178 });
  expect(areas(svg)[0]).toBe("M62 119L190 69L190 144L62 144Z");
  expect(svg).toContain('explores, queries, answers <tspan font-weight="700">75 %</tspan>');
  expect(svg).toContain("64 training episodes");
  expect(areas(behaviourChart([line(3, 0.5)]))).toHaveLength(4);
  expect(behaviourChart([])).toContain("no episode yet");
  expect(behaviourChart([])).not.toMatch(/NaN|Infinity/);
});

test("a long run is averaged, and its end is the last step", () => {
  const svg = behaviourChart(Array.from({ length: 1000 }, (_, i) => line(i + 1, i / 1000)));
  expect(svg).toContain("step 1000");
  expect(svg.length).toBeLessThan(16_000);
});
