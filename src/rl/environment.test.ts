// An environment that is not SQL, through the same trainer: rollout, rewards, training, evaluation, failures.
import { expect, test } from "vitest";
import { tinyModel } from "../../test/helpers/tiny-model.ts";
import { UsageError } from "../errors.ts";
import { LocalEngine } from "../lm/engine/index.ts";
import { createTurnEncoder, Tokenizer } from "../lm/model/index.ts";
import { trainBpe } from "../lm/model/text/bpe-trainer.ts";
import { type GRPOConfigInput, resolveConfig } from "./config.ts";
import { chatPrompt, type Environment, type TextEnvironment, type TextStep } from "./environment.ts";
import { POLICY_LOSSES } from "./loss.ts";
import { rewardEnvironment } from "./rewards.ts";
import { rollOut } from "./rollout.ts";
import type { EpisodeLine, Warning } from "./run/records.ts";
import { MemoryStore } from "./run/store.ts";
import { trainAndEvaluate } from "./run/train-and-evaluate.ts";
import { createTextEnvironment } from "./text-environment.ts";
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

const TASKS = Array.from({ length: 20 }, (_, i) => ({ id: `t${i}`, text: `Say ${i}.`, answer: `${i}` }));

function raise(error: unknown): never {
  throw error;
}

/** Like a promise that is never fulfilled. */
// biome-ignore lint/suspicious/noThenProperty: this is what is tested
const NEVER_THEN = { then: () => {} };
const HUGE = { text: "", reward: Number.MAX_VALUE, done: false };

/** Plays one turn and returns what is given. */
const returning = (step: unknown) => () => ({
  reset: ({ text }: { text: string }) => ({ text }),
  step: () => step as TextStep,
});

test.each<[string, unknown, RegExp]>([
  ["a reward that is NaN", { text: "", reward: Number.NaN, done: true }, /task t0: step\(\) returned a reward.*"?NaN/],
  ["a reward that is text", { text: "", reward: "1", done: true }, /reward that is neither .* but: "1"/],
  ["no reward", { text: "", done: true }, /neither a finite number nor null but: "?undefined/],
  ["a text that is none", { text: 7, reward: 1, done: true }, /text that is not a string but: "?7/],
  ["no done", { text: "", reward: 1 }, /`done` that is not a boolean/],
  ["a wrong solved", { text: "", reward: 1, done: true, solved: 1 }, /`solved` that is not a boolean/],
  ["a metric that is infinite", { text: "", reward: 1, done: true, metrics: { x: 1 / 0 } }, /metrics in which "x"/],
  ["nothing", undefined, /text that is not a string/],
])("an environment that returns %s loses the episode, with the task's id", async (_, step, message) => {
  const player = model();
  const environment = createTextEnvironment({ env: returning(step), tasks: TASKS, name: "odd" });
  const task = TASKS[0]!;
  const [episode] = await rollOut(environment, [task], { model: player, config: config() });
  expect(episode!.error).toMatch(message);
  expect(episode!).toMatchObject({ question_id: "t0", correctness: null, reward: null });
  const stop = rollOut(environment, [task], { model: player, config: config({ environment_errors: "stop" }) });
  await expect(stop).rejects.toThrow(/environment odd failed on task t0: .*environment_errors/s);
  await player.engine.close();
});

/** Answers at once, with a reward. */
const easy = { ...returning({ text: "", reward: 1, done: true })() };
const itself: Record<string, unknown> = {};
itself.text = itself;

test.each<[string, () => unknown, RegExp]>([
  ["cannot be made", () => raise(new Error("no memory")), /^no memory$/],
  ["is no environment", () => undefined, /must return an environment with reset\(\) and step\(\), not: undefined/],
  ["is a promise", async () => easy, /not: a promise; .*reset\(\)/],
  ["throws when it is closed", () => ({ ...easy, close: () => raise(new Error("busy")) }), /^close\(\) failed: busy$/],
  ["rejects when it is closed", () => ({ ...easy, close: async () => raise(new Error("busy")) }), /failed: busy$/],
  [
    "never closes",
    () => ({ ...easy, close: () => new Promise(() => {}) }),
    /^close\(\) failed: .* allows: 0.05 seconds/,
  ],
  ["never answers, without a Promise", () => ({ ...easy, step: () => NEVER_THEN }), /allows: 0.05 seconds$/],
  ["throws what is no error", () => ({ ...easy, step: () => raise({ code: 7 }) }), /^\{"code":7\}$/],
  ["throws without a message", () => ({ ...easy, step: () => raise(new RangeError()) }), /^RangeError$/],
  [
    "returns what contains itself",
    () => ({ ...easy, reset: () => itself }),
    /task t0: reset\(\) must return .*object Object/,
  ],
  ["pays more than a number holds", () => ({ ...easy, step: () => HUGE }), /task t0: the rewards of its steps add up/],
])("an environment that %s loses its episodes, and no others", async (_, env, message) => {
  const player = model();
  let made = 0;
  const open = () => (made++ === 1 ? (env() as TextEnvironment) : easy);
  const environment = createTextEnvironment({ env: open, tasks: TASKS });
  const settings = { environment_timeout: 0.05 };
  const three = [TASKS[1]!, TASKS[0]!, TASKS[2]!];
  const episodes = await rollOut(environment, three, { model: player, config: config(settings) });
  expect(episodes[1]).toMatchObject({ error: expect.stringMatching(message), reward: null, correctness: null });
  expect(episodes.filter((_, i) => i !== 1)).toMatchObject([{ error: null }, { error: null }]);
  made = 1;
  const stop = config({ ...settings, environment_errors: "stop" });
  await expect(rollOut(environment, [TASKS[0]!], { model: player, config: stop })).rejects.toThrow(
    /failed on task t0: /,
  );
  await player.engine.close();
});

test("a metric or a component of a reward may have any name", async () => {
  const player = model();
  const numbers = JSON.parse('{"__proto__": 2, "constructor": 3}');
  const env = returning({ text: "", reward: 1, done: true, metrics: numbers, rewards: numbers });
  const { metrics } = await new GRPOTrainer({ model: player, env, tasks: TASKS, config: config() }).train();
  expect(metrics[0]).toMatchObject({ "environment/constructor": 3, "environment/reward/__proto__": 2 });
  await player.engine.close();
});

test("a warning about episodes without a score names a task and what went wrong", async () => {
  const player = model();
  const store = new MemoryStore();
  const env = () => ({ ...easy, step: () => raise(new Error("the judge is asleep")) });
  const settings = config({ max_steps: 1 });
  await new GRPOTrainer({ model: player, env, tasks: TASKS, config: settings, store }).train();
  const warnings = store.logs["warnings.jsonl"] as Warning[];
  expect(warnings.find(({ code }) => code === "unscorable")!.message).toMatch(
    /^8 episodes could not be scored and were left out; the first is t\d+: the judge is asleep$/,
  );
  await player.engine.close();
});

test("an episode that uses up its turns is solved if it earned something, whatever `solved` says before the end", async () => {
  const player = model();
  const task = TASKS[0]!;
  const play = async (reward: number) => {
    const env = returning({ text: "Go on.", reward, done: false, solved: false });
    const environment = createTextEnvironment({ env, tasks: TASKS });
    return (await rollOut(environment, [task], { model: player, config: config() }))[0]!;
  };
  expect(await play(0.5)).toMatchObject({ correctness: 1, reward: 1, step_count: 2, done_reason: null });
  expect(await play(0)).toMatchObject({ correctness: 0, reward: 0 });
  await player.engine.close();
});

test("an environment's `solvedReward` decides which rewards are a solution", async () => {
  const player = model();
  const play = async (solvedReward: number) => {
    const env = returning({ text: "Go on.", reward: 0.1, done: false });
    const environment = createTextEnvironment({ env, tasks: TASKS, solvedReward });
    return (await rollOut(environment, [TASKS[0]!], { model: player, config: config() }))[0]!;
  };
  expect((await play(0.2)).correctness).toBe(1);
  expect((await play(0.21)).correctness).toBe(0);
  await player.engine.close();
});

test("an environment that never answers is left after environment_timeout", async () => {
  const player = model();
  const env = () => ({ reset: () => new Promise<never>(() => {}), step: () => new Promise<never>(() => {}) });
  const environment = createTextEnvironment({ env, tasks: TASKS });
  const settings = config({ environment_timeout: 0.01 });
  const [episode] = await rollOut(environment, TASKS.slice(0, 1), { model: player, config: settings });
  expect(episode!.error).toContain("longer than environment_timeout allows: 0.01 seconds");
  await player.engine.close();
});

test("tasks in a list: a tenth is held out by the seed, whole groups where there are groups", () => {
  const split = (seed: number, tasks = TASKS as { id: string; text: string; group?: string }[]) => {
    const environment = createTextEnvironment({ env: returning(null), tasks, seed });
    return (["train", "eval"] as const).map((name) => environment.tasks(name).map(({ id }) => id));
  };
  const [train, held] = split(1);
  expect([train!.length, held!.length]).toEqual([18, 2]);
  expect(split(1)).toEqual([train, held]);
  expect(split(2)[1]).not.toEqual(held);
  const grouped = TASKS.map((task, i) => ({ ...task, group: `g${i % 4}` }));
  expect(split(1, grouped)[1]!.length).toBe(5);
  const empty = { env: returning(null), tasks: [] };
  expect(() => createTextEnvironment(empty)).toThrow("there are no training tasks");
  const twice = { ...empty, tasks: { train: TASKS, eval: TASKS.slice(3, 4) } };
  expect(() => createTextEnvironment(twice)).toThrow(/two tasks have the same id.*t3/s);
});

test("a whole training: `env` and `tasks` give rewards, metrics, transcripts, expected answers and a paired test", async () => {
  const player = model();
  const store = new MemoryStore();
  const env = () => ({
    reset: ({ text }: { text: string }) => ({ text }),
    step: (reply: string) => ({
      text: "Thanks.",
      reward: reply.length / 10,
      done: true,
      solved: reply.length > 4,
      rewards: { length: reply.length / 10, style: 0 },
      metrics: { letters: reply.length },
    }),
  });
  const settings = config({ eval_steps: 1, eval_episodes: 2, final_eval_episodes: 2 });
  const result = await trainAndEvaluate({ model: player, env, tasks: TASKS, name: "words", config: settings, store });
  await player.engine.close();
  expect(result).toMatchObject({ environment: { name: "words", tasks: { train: 18, eval: 2 } }, steps: 2 });
  expect(result!.random.unseen.greedy.episodes).toBe(0);
  expect(result!.paired).toMatchObject([{ from: "before", to: "after", place: "unseen", mark: "answer" }]);
  const [episode] = store.logs["episodes.jsonl"] as EpisodeLine[];
  expect(episode!.steps).toMatchObject([
    { action: { action_type: "TEXT" }, observation: { result: "Thanks.", reward_breakdown: { style: 0 } } },
  ]);
  expect(episode!.metrics).toEqual({ letters: episode!.steps[0]!.text!.length });
  expect(episode!.rewards).toEqual({ reward_environment: episode!.reward });
  const line = store.logs["metrics.jsonl"].find((logged) => "loss" in logged) as Record<string, number>;
  expect(line["environment/reward/length"]).toBeCloseTo(line.reward!, 9);
  expect(line["environment/letters"]).toBeCloseTo(10 * line.reward!, 9);
  expect(line["environment/solved"]).toBeGreaterThanOrEqual(0);
  expect(JSON.parse(store.read("gold.json")!).t3).toEqual({ query: null, answer: "3" });
  expect(JSON.parse(store.read("environment.json")!).name).toBe("words");
  expect(JSON.parse(store.read("comparison.json")!).players).toEqual(["before", "after"]);
});
