// When the live callback shows what, to whom, and what it makes of episodes that nobody could score.
import { expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import type { EpisodeRecord } from "../gym/evaluation/index.ts";
import type { TrainingView } from "./callbacks.ts";
import { resolveConfig } from "./config.ts";
import { type LiveView, LiveVisualizationCallback, type LiveVisualizationOptions } from "./live-visualization.ts";
import type { EpisodeLine } from "./run/records.ts";

const START: TrainingView["state"] = {
  ...{ step: 0, batches: 0, episodes: 0, tokens: 0, elapsed: 0, evaluated: 0, since_log: {}, warned: [] },
};

const played = (correctness: 0 | 1 | null): EpisodeRecord => ({
  ...{ player: "model", question_id: "q", question: "How many?", database_name: "d", difficulty: "easy" },
  ...{ answer_type: "integer", split: "eval", seen: false, start: null, steps: [], correctness, progress: 0 },
  ...{ operational: 0, reward: 0, step_count: 0, done_reason: "answered", parse_failures: 0, repeats: 0, invalid: 0 },
  error: null,
});

/** Simulates a training in which a step's reward is its number. */
async function follow(options: LiveVisualizationOptions, total_steps: number, outcomes: (0 | 1 | null)[] = [1, 0, 1]) {
  const asked: string[] = [];
  const viewAt = (step: number): TrainingView => ({
    ...{ config: resolveConfig({}), state: { ...START, step }, total_steps },
    play: async (split, episodes) => {
      asked.push(`${step} ${split} ${episodes}`);
      return Array.from({ length: episodes }, (_, i) => played(outcomes[i % outcomes.length]!));
    },
  });
  const shown: LiveView[] = [];
  const live = new LiveVisualizationCallback({ show: (view) => void shown.push(view), ...options });
  await live.on_train_begin(viewAt(0));
  for (let step = 1; step <= total_steps; step++) {
    const episodes = [{ total_reward: step }, { total_reward: null }] as unknown as EpisodeLine[];
    await live.on_step_end(viewAt(step), { episodes });
  }
  await live.on_train_end(viewAt(total_steps));
  const at = (kind: LiveView["kind"]) => shown.filter((view) => view.kind === kind).map(({ step }) => step);
  return { live, shown, asked, at };
}

test("by default: the reward every 10 steps, a transcript every 50, success every 100 from 3 episodes per split", async () => {
  const { live, asked, at } = await follow({}, 200);
  expect(at("reward")).toEqual(Array.from({ length: 20 }, (_, i) => 10 * (i + 1)));
  expect(at("transcript")).toEqual([0, 50, 100, 150, 200]);
  expect(at("success")).toEqual([0, 100, 200]);
  expect(asked.filter((line) => line.startsWith("100"))).toEqual(["100 eval 1", "100 train 3", "100 eval 3"]);
  expect(live.rewards).toHaveLength(200);
  expect(live.rewards[41]).toEqual({ step: 42, reward: 42 });
  expect(live.success[1]).toEqual({ step: 100, train: 2 / 3, eval: 2 / 3 });
});

test("each interval can be set, 0 is never, and the last step is always shown", async () => {
  const { at } = await follow({ reward_every: 4, transcript_every: 0, success_every: 5, success_episodes: 7 }, 11);
  expect(at("reward")).toEqual([4, 8, 11]);
  expect(at("transcript")).toEqual([]);
  expect(at("success")).toEqual([0, 5, 10, 11]);
});

test("unscorable episodes do not count as failures; without scored ones no point is drawn", async () => {
  expect((await follow({}, 1, [1, null, null])).live.success[0]).toEqual({ step: 0, train: 1, eval: 1 });
  expect((await follow({}, 1, [null])).live.success).toEqual([]);
});

test("several targets show the same plain data, which does not change afterwards", async () => {
  const [first, second]: LiveView[][] = [[], []];
  await follow({ show: [(view) => void first!.push(view), async (view) => void second!.push(view)] }, 20);
  expect(first).toEqual(second);
  expect(JSON.parse(JSON.stringify(first))).toEqual(first);
  const rewards = first!.filter((view) => view.kind === "reward");
  expect(rewards.map(({ points }) => points.length)).toEqual([10, 20]);
});

test.each([{ reward_every: -1 }, { transcript_every: 2.5 }, { success_episodes: 0 }])("%j is refused", (options) => {
  expect(() => new LiveVisualizationCallback(options)).toThrow(UsageError);
});
