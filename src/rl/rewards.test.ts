import { expect, test } from "vitest";
import { REWARD_FUNCTIONS, type RewardFunction, rewardName, score } from "./rewards.ts";
import type { Episode } from "./run/records.ts";

function episode(correctness: 0 | 1 | null, progress: number | null, operational: number | null, said = "ANSWER: 1") {
  const messages = [
    { role: "system", content: "s" },
    { role: "user", content: "q" },
    { role: "assistant", content: said },
  ];
  return { correctness, progress, operational, question: "How many?", messages } as unknown as Episode;
}

const episodes = [episode(1, 1, 0.07), episode(0, 0.25, -0.03), episode(null, null, null)];

test("the built-in functions return what the environment recorded, null if it could not score", async () => {
  const { rows } = await score(episodes, REWARD_FUNCTIONS, 1);
  expect(rows).toEqual([
    [1, 1, 0.07],
    [0, 0.25, -0.03],
    [null, null, null],
  ]);
  expect(REWARD_FUNCTIONS.map(rewardName)).toEqual(["reward_correctness", "reward_progress", "reward_operational"]);
});

test("custom functions get completions, may be async and may log", async () => {
  const brevity: RewardFunction = async (completions, { log_metric, prompts, step }) => {
    await null;
    log_metric("step_told", step);
    log_metric("step_told", step + 2);
    expect(prompts).toEqual(["How many?", "How many?", "How many?"]);
    return completions.map(([first, ...more]) => (more.length === 0 ? -first!.content.length : null));
  };
  const { rows, metrics } = await score(episodes, [brevity], 4);
  expect(rows).toEqual([[-9], [-9], [null]]); // what the environment could not score is nobody's to score
  expect(metrics).toEqual({ step_told: 5 });
});

test.each<[string, RewardFunction, RegExp]>([
  [
    "throws",
    function mine() {
      throw new Error("boom");
    },
    /reward function mine threw: boom; give one number/,
  ],
  [
    "rejects",
    async function mine() {
      throw new Error("late");
    },
    /reward function mine threw: late/,
  ],
  [
    "gives too few",
    function mine() {
      return [1];
    },
    /another number of scores than the 3 completions it was given: 1/,
  ],
  [
    "gives no list",
    function mine() {
      return 1 as never;
    },
    /did not give a list but: number/,
  ],
  [
    "gives no number",
    function mine() {
      return [1, Number.NaN, 0];
    },
    /reward function mine gave: NaN/,
  ],
  [
    "gives text",
    function mine() {
      return [1, "2" as never, 0];
    },
    /reward function mine gave: 2/,
  ],
])("a function that %s is named", async (_, mine, message) => {
  await expect(score(episodes, [mine], 1)).rejects.toThrow(message);
  await expect(score(episodes, [mine], 1)).rejects.toMatchObject({ code: "reward_failed" });
});

test("errors name a function that returns nothing, or logs under a name in use", async () => {
  const forgetful: RewardFunction = (completions) => completions.map(() => undefined as never);
  await expect(score(episodes, [forgetful], 1)).rejects.toThrow(/reward function forgetful gave: undefined/);
  const greedy: RewardFunction = (completions, { log_metric }) => {
    log_metric("reward", 1);
    return completions.map(() => 1);
  };
  await expect(score(episodes, [greedy], 1)).rejects.toThrow(
    /greedy threw: a metric of this name is logged already: reward/,
  );
});
