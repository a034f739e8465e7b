// An environment that is not SQL, through the same trainer: rollout, rewards, training, evaluation, failures.
import { expect, test } from "vitest";
import { tinyModel } from "../../test/helpers/tiny-model.ts";
import { UsageError } from "../errors.ts";
import { LocalEngine } from "../lm/engine/index.ts";
import { createTurnEncoder, Tokenizer } from "../lm/model/index.ts";
import { trainBpe } from "../lm/model/text/bpe-trainer.ts";
import { type GRPOConfigInput, resolveConfig } from "./config.ts";
import { chatPrompt, type Environment } from "./environment.ts";
import { POLICY_LOSSES } from "./loss.ts";
import { rewardEnvironment } from "./rewards.ts";
import { rollOut } from "./rollout.ts";
import type { EpisodeLine } from "./run/records.ts";
import { MemoryStore } from "./run/store.ts";
import { GRPOTrainer } from "./trainer.ts";

const tokenizer = new Tokenizer({
  tokenizer: trainBpe(["say a number"], { vocabSize: 270, specialTokens: ["<|im_start|>", "<|im_end|>"] }),
  config: { eos_token: "<|im_end|>" },
});
const turns = createTurnEncoder(tokenizer);

function model() {
  const tiny = tinyModel({ config: { vocab_size: tokenizer.texts.length, max_position_embeddings: 512 } });
  return { engine: new LocalEngine(tiny, { losses: POLICY_LOSSES }), tokenizer, turns };
}

const config = (given: GRPOConfigInput = {}) =>
  resolveConfig({
    max_new_tokens: 8,
    max_completion_length: 16,
    max_context_tokens: 400,
    step_budget: 2,
    per_device_train_batch_size: 4,
    gradient_accumulation_steps: 2,
    num_generations: 4,
    max_steps: 2,
    logging_steps: 1,
    eval_steps: 0,
    reward_weights: null,
    ...given,
  });

/** Asks for a long word, twice; pays by the length of the reply. */
function lengths(failsAt = "none"): Environment {
  return {
    name: "lengths",
    prompt: chatPrompt("lengths-1", "Say a long word."),
    tasks: (split) => ["a", "b", "c"].map((id) => ({ id: `${split}-${id}`, text: `A word with ${id}?` })),
    open() {
      let turn = 0;
      let task = "";
      return {
        reset: ({ id, text }) => {
          [turn, task] = [0, id];
          return { text };
        },
        step: async (reply) => {
          if (task === failsAt) throw new Error("the judge is asleep");
          return { text: "Another one?", reward: reply.length / 10, done: ++turn === 2 };
        },
      };
    },
  };
}

test("a rollout has the environment's texts, its rewards and every token", async () => {
  const player = model();
  const environment = lengths();
  const [episode, other] = await rollOut(environment, environment.tasks("train").slice(0, 2), {
    model: player,
    config: config(),
  });
  const replies = episode!.messages.filter(({ role }) => role === "assistant").map(({ content }) => content);
  expect(episode!.messages.filter(({ role }) => role !== "assistant").map(({ content }) => content)).toEqual([
    "Say a long word.",
    "A word with a?",
    "Another one?",
  ]);
  expect(episode).toMatchObject({ question_id: "train-a", database_name: "lengths", step_count: 2, error: null });
  expect(episode!.reward).toBeCloseTo(replies.join("").length / 10, 9);
  expect(episode!.segments[0]!.mask.filter((mine) => mine === 1)).toHaveLength(episode!.completion_tokens);
  expect(other!.question_id).toBe("train-b");
  await player.engine.close();
});

test("two steps change the weights, evaluate, and give the same bits again", async () => {
  const train = async () => {
    const player = model();
    const store = new MemoryStore();
    const before = Float32Array.from(player.engine.model.device.read(player.engine.model.values) as Float32Array);
    const environment = lengths();
    const options = { model: player, environment, config: config({ eval_steps: 1, eval_episodes: 2 }), store };
    const { metrics } = await new GRPOTrainer({ ...options, rewardFuncs: [rewardEnvironment] }).train();
    const after = Float32Array.from(player.engine.model.device.read(player.engine.model.values) as Float32Array);
    await player.engine.close();
    return { metrics, before, after, episodes: store.logs["episodes.jsonl"] as EpisodeLine[] };
  };
  const [first, second] = [await train(), await train()];
  expect(first.after).not.toEqual(first.before);
  expect(second.after).toEqual(first.after);
  expect(second.metrics).toEqual(first.metrics);
  expect(first.metrics.filter((line) => "loss" in line).map(({ step }) => step)).toEqual([1, 2]);
  expect(first.metrics.some((line) => "eval_unseen/greedy/success_rate" in line)).toBe(true);
  expect(Object.keys(first.metrics[0]!).filter((name) => /describes|last/.test(name))).toEqual([]);
  expect(first.episodes).toHaveLength(16);
  expect(first.episodes[0]!.rewards).toEqual({ reward_environment: first.episodes[0]!.reward });
});

test("an environment that throws loses the episode, not the training", async () => {
  const player = model();
  const environment = lengths("train-b");
  const episodes = await rollOut(environment, environment.tasks("train"), { model: player, config: config() });
  expect(episodes.map(({ error, correctness }) => [error, correctness === null])).toEqual([
    [null, false],
    ["the judge is asleep", true],
    [null, false],
  ]);
  await player.engine.close();
});

test("settings that need more of an environment, or no environment at all, are refused", async () => {
  const player = model();
  const environment = lengths();
  const trainer = (given: GRPOConfigInput) => () =>
    new GRPOTrainer({ model: player, environment, config: config(given) });
  expect(trainer({ turn_credit: 0.2 })).toThrow("turn_credit needs an environment with milestone()");
  expect(trainer({ self_distillation: 0.2 })).toThrow("self_distillation needs an environment with failures()");
  expect(trainer({ easy_steps: 1 })).toThrow(/no easy training/);
  expect(() => new GRPOTrainer({ model: player, config: config() })).toThrow(UsageError);
  await player.engine.close();
});
