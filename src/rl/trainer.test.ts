// Whole trainings of a tiny model, in this process: it improves, reproducibly, with every setting.
import { beforeAll, describe, expect, test } from "vitest";
import { smallDataSet } from "../../test/helpers/small-data.ts";
import { type FineTuned, taughtModel, teach } from "../../test/helpers/taught-model.ts";
import type { DataSet } from "../gym/data/index.ts";
import type { TokenSampler } from "../gym/players/index.ts";
import { random } from "../random.ts";
import type { TrainerCallback } from "./callbacks.ts";
import { type GRPOConfigInput, resolveConfig } from "./config.ts";
import { evaluateModel } from "./evaluate-model.ts";
import { type LiveView, LiveVisualizationCallback } from "./live-visualization.ts";
import { meaningOf } from "./metric-names.ts";
import { passAtKWarning } from "./pass-at-k.ts";
import { type RewardFunction, rewardCorrectness } from "./rewards.ts";
import type { EpisodeLine, MetricLine, TrainingResult } from "./run/records.ts";
import { buildTrainer, runTraining, runTrainingWithMetrics, sampleRandomBaseline } from "./run/run.ts";
import { sftDatabases } from "./run/split.ts";
import { MemoryStore } from "./run/store.ts";
import { createSqlEnvironment } from "./sql/sql-environment.ts";
import type { TrainableEngine } from "./trainable-model.ts";

let data: DataSet;
let fineTuned: FineTuned;
beforeAll(async () => {
  data = await smallDataSet();
  fineTuned = await teach(data);
});

const SMALL: GRPOConfigInput = {
  ...{ max_new_tokens: 40, max_completion_length: 120, max_context_tokens: 500, step_budget: 3, eval_steps: 0 },
  ...{ per_device_train_batch_size: 8, gradient_accumulation_steps: 4, num_generations: 8, learning_rate: 1e-3 },
  ...{ max_steps: 3, logging_steps: 1, lr_scheduler_type: "constant", reward_weights: [1, 0.15, 1] },
};

async function train(
  given: GRPOConfigInput,
  more: { rewardFuncs?: RewardFunction[]; callbacks?: TrainerCallback[]; threads?: number; uneven?: boolean } = {},
) {
  const { threads = 1, uneven = false, ...options } = more;
  const model = taughtModel(fineTuned, { threads });
  const store = new MemoryStore();
  const config = resolveConfig({ ...SMALL, ...given });
  const played = uneven ? { ...model, engine: unevenly(model.engine) } : model;
  const { metrics } = await buildTrainer({ model: played, data, config, store, ...options }).train();
  const weights = model.engine.model.device.read(model.engine.model.values) as Float32Array;
  await model.engine.close();
  return { metrics, store, weights, episodes: store.logs["episodes.jsonl"] as EpisodeLine[] };
}

/** Some of its samples come back later than they would. */
function unevenly(engine: TrainableEngine): TrainableEngine {
  const dice = random("uneven");
  return {
    sample: async (request) => {
      const sample = await engine.sample(request);
      for (let turns = dice.int(0, 9) ** 2; turns > 0; turns--) await new Promise(setImmediate);
      return sample;
    },
    forwardBackward: (batch, options) => engine.forwardBackward(batch, options),
    optimStep: (adam) => engine.optimStep(adam),
    logprobs: (batch, options) => engine.logprobs(batch, options),
    close: () => engine.close(),
  };
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const rewards = (metrics: readonly MetricLine[]) => metrics.map(({ reward }) => reward!);

test("a model gets better by playing", async () => {
  const { metrics } = await train({ max_steps: 14 });
  const right = metrics.map((line) => line["rewards/reward_correctness/mean"]!);
  expect(mean(right.slice(0, 3))).toBeLessThan(0.3);
  expect(mean(right.slice(-4))).toBeGreaterThan(mean(right.slice(0, 3)) + 0.25);
  expect(mean(rewards(metrics).slice(-4))).toBeGreaterThan(mean(rewards(metrics).slice(0, 3)) + 0.25);
});

test("self-distillation changes groups that are all wrong, reproducibly, and no others", async () => {
  const options = { max_steps: 1, learning_rate: 3e-3, error_hints: true };
  const [without, first, second] = [
    await train(options),
    await train({ ...options, self_distillation: 0.5 }),
    await train({ ...options, self_distillation: 0.5 }),
  ];
  expect(second.weights).toEqual(first.weights);
  expect(second.metrics).toEqual(first.metrics);
  expect(first.weights).not.toEqual(without.weights);
  expect(first.metrics[0]!["distillation/groups"]).toBeGreaterThan(0);
  expect(first.metrics[0]!["distillation/kl"]).not.toBe(0);
  const taught = first.episodes.filter(({ distilled }) => distilled);
  expect(taught.length).toBeGreaterThan(0);
  expect(taught.filter(({ correctness }) => correctness !== 0)).toEqual([]);
  expect(without.episodes.filter(({ distilled }) => distilled)).toEqual([]);
});

test("two runs, and one with more threads, give the same metrics, episodes and weights", async () => {
  const [first, second, threaded] = [await train({}), await train({}), await train({}, { threads: 2 })];
  for (const other of [second, threaded]) {
    expect(other.metrics).toEqual(first.metrics);
    expect(other.episodes).toEqual(first.episodes);
    expect(other.weights).toEqual(first.weights);
  }
  expect((await train({ seed: 7 })).metrics).not.toEqual(first.metrics);
});

test("metrics have TRL's names, contain no times, and agree with the episodes", async () => {
  const { metrics, episodes } = await train({});
  for (const name of [
    ...["loss", "grad_norm", "learning_rate", "num_tokens", "epoch", "reward", "reward_std", "frac_reward_zero_std"],
    ...["completions/mean_length", "completions/clipped_ratio", "completions/max_terminated_length", "entropy"],
    ...["rewards/reward_correctness/mean", "rewards/reward_progress/std", "rewards/reward_operational/mean"],
    ...["clip_ratio/region_mean", "clip_ratio/high_max", "sampling/sampling_logp_difference/max"],
  ])
    expect(metrics[0], name).toHaveProperty([name]);
  expect(Object.keys(metrics[0]!).filter((name) => /time|second/.test(name))).toEqual([]);
  expect(Object.keys(metrics[0]!).filter((name) => meaningOf(name) === undefined)).toEqual([]);
  for (const line of metrics) {
    const own = episodes.filter(({ step }) => step === line.step);
    expect(own).toHaveLength(32);
    expect(mean(own.map(({ total_reward }) => total_reward!))).toBeCloseTo(line.reward!, 12);
    expect(line["sampling/sampling_logp_difference/max"]).toBe(0); // sampling and learning compute the same bits
  }
});

describe("settings", () => {
  test("groups without spread are not computed, and change nothing", async () => {
    const flat: RewardFunction = (completions) => completions.map(() => 1);
    const { metrics, store } = await train({ reward_weights: [1], max_steps: 2 }, { rewardFuncs: [flat] });
    expect(metrics.map((line) => line["groups/skipped"])).toEqual([1, 1]);
    expect(metrics.map(({ grad_norm }) => grad_norm)).toEqual([0, 0]);
    expect(store.logs["warnings.jsonl"]).toMatchObject([{ step: 1, code: "no_spread" }]);
  });

  test("groups without right and wrong episodes are replaced from the queue, up to a limit", async () => {
    const { metrics, episodes } = await train({ dynamic_sampling: 2 });
    for (const line of metrics) {
      const own = episodes.filter(({ step }) => step === line.step);
      const groups = Array.from({ length: own.length / 8 }, (_, g) => own.filter(({ group }) => group === g));
      const hasSpread = (group: readonly EpisodeLine[]) =>
        new Set(group.map(({ correctness }) => correctness)).size > 1;
      const kept = groups.filter(hasSpread);
      expect(groups.every((group) => group.length === 8)).toBe(true);
      expect(groups.every((group) => group.every(({ dropped = false }) => dropped === !hasSpread(group)))).toBe(true);
      expect(own.filter(({ dropped }) => dropped).every(({ advantage }) => advantage === 0)).toBe(true);
      expect([line["groups/asked"], line["groups/kept"]]).toEqual([groups.length, kept.length]);
      expect(groups.length === 12 || (kept.length === 4 && hasSpread(groups.at(-1)!))).toBe(true); // full, or at the limit
      expect(line["groups/refilled"]).toBe(Math.max(0, groups.length - 4));
      expect(mean(own.map(({ total_reward }) => total_reward!))).toBeCloseTo(line.reward!, 12); // of all that were asked
    }
    const asked = metrics.reduce((sum, line) => sum + line["groups/asked"]!, 0);
    expect(asked).toBeGreaterThan(12);
    expect(metrics.at(-1)!.epoch).toBe(asked / 5);
    expect(metrics.some((line) => line["groups/kept"] === 4 && line["groups/refilled"]! > 0)).toBe(true);
  });

  test("dynamic sampling gives the same bits, whichever episodes end first", async () => {
    const refill = { dynamic_sampling: 2, skip_solved: 2, turn_credit: 0.25, max_steps: 2 };
    const [first, second] = [await train(refill), await train(refill, { uneven: true })];
    expect(second.metrics).toEqual(first.metrics);
    expect(second.episodes).toEqual(first.episodes);
    expect(second.weights).toEqual(first.weights);
  });

  test.each<[string, GRPOConfigInput]>([
    ["two steps per batch", { gradient_accumulation_steps: 2, steps_per_generation: 4, beta: 0 }],
    ["two batches per step", { generation_batch_size: 16 }],
    ["two iterations", { num_iterations: 2 }],
    ["easy tasks first", { easy_steps: 1, per_device_train_batch_size: 4 }],
  ])("dynamic sampling with %s", async (_, given) => {
    const { metrics, episodes } = await train({ dynamic_sampling: 1.5, max_steps: 2, ...given });
    expect(metrics).toHaveLength(2);
    expect(metrics[0]!["groups/asked"]).toBeGreaterThan(0);
    const places = episodes.map(({ step, group, generation }) => `${step} ${group} ${generation}`);
    expect(new Set(places).size).toBe(places.length);
  });

  test("skip_solved skips questions that were all right or all wrong", async () => {
    const { metrics, episodes } = await train({ skip_solved: 2, max_steps: 3 });
    const rights = new Map<string, number>();
    for (const { step, question_id, correctness } of episodes)
      rights.set(`${step} ${question_id}`, (rights.get(`${step} ${question_id}`) ?? 0) + correctness!);
    const settled = [...rights.values()].filter((right) => right === 0 || right === 8).length;
    const skipped = metrics.reduce((sum, line) => sum + line["questions/skipped"]!, 0);
    expect(skipped).toBeGreaterThan(0);
    expect(skipped).toBeLessThanOrEqual(2 * settled);
    expect(metrics.at(-1)!.epoch).toBe((3 * 4 + skipped) / 5);
    expect(episodes.every(({ dropped }) => dropped === undefined)).toBe(true);
  });

  test("num_iterations compares with the model that sampled", async () => {
    const { metrics } = await train({ num_iterations: 2, max_steps: 4, learning_rate: 1e-2 });
    const moved = metrics.map((line) => line["clip_ratio/region_mean"]!);
    expect([moved[0], moved[2]]).toEqual([0, 0]); // the first pass is on policy
    expect(Math.max(moved[1]!, moved[3]!)).toBeGreaterThan(0);
    expect(metrics.map(({ reward }) => reward !== undefined)).toEqual([true, false, true, false]);
  });

  test("a batch may make several steps, and a step take several batches", async () => {
    const halves = await train({ gradient_accumulation_steps: 2, steps_per_generation: 4, max_steps: 4 });
    expect(halves.episodes.map(({ step }) => step)).toEqual([...Array(32).fill(1), ...Array(32).fill(3)]);
    const doubled = await train({ generation_batch_size: 16, max_steps: 2 });
    expect(doubled.episodes.filter(({ step }) => step === 2)).toHaveLength(32);
  });

  test("KL to the first model is 0 at first and grows", async () => {
    const model = taughtModel(fineTuned, { reference: true });
    const config = resolveConfig({ ...SMALL, beta: 0.1 });
    const { metrics } = await buildTrainer({ model, data, config }).train();
    expect(metrics[0]!.kl).toBe(0);
    expect(metrics.at(-1)!.kl).toBeGreaterThan(0);
    await model.engine.close();
  });

  test.each(["grpo", "bnpo", "dr_grpo", "luspo", "cispo", "sapo", "vespo"] as const)("%s trains", async (loss_type) => {
    const { metrics } = await train({ loss_type, max_steps: 1, ...(loss_type === "cispo" ? { epsilon_high: 5 } : {}) });
    expect(metrics[0]!.grad_norm).toBeGreaterThan(0);
  });

  test.each<[string, GRPOConfigInput]>([
    ["GSPO", { importance_sampling_level: "sequence", num_iterations: 2 }],
    ["an entropy bonus", { entropy_coef: 0.01 }],
    ["the most undecided tokens", { top_entropy_quantile: 0.3 }],
    ["each reward compared by itself", { multi_objective_aggregation: "normalize_then_sum" }],
    ["filters", { top_k: 20, top_p: 0.95, min_p: 0.01, temperature: 0.8 }],
  ])("%s trains", async (_, given) => {
    const { metrics } = await train({ max_steps: 2, ...given });
    expect(metrics[0]!.grad_norm).toBeGreaterThan(0);
  });

  test("mismatched reward weights, and more questions than there are, are refused", async () => {
    await expect(train({ reward_weights: [1, 1] })).rejects.toThrow(
      /3 reward functions .* need as many reward_weights, not: 2/,
    );
    await expect(train({ per_device_train_batch_size: 80 })).rejects.toThrow(
      /asks 40 questions, and there are only: 5/,
    );
    await expect(train({ dynamic_sampling: 1, max_steps: -1 })).rejects.toThrow(/need max_steps, which is: -1/);
    await expect(train({ difficulty_filter: ["hard"] })).rejects.toThrow(
      /none of the 5 training questions passes in: small/,
    );
  });
});

test("a whole run evaluates the model before and after, on seen and unseen databases", async () => {
  const model = taughtModel(fineTuned);
  const store = new MemoryStore();
  const phases: string[] = [];
  const config = resolveConfig({ ...SMALL, max_steps: 8, eval_steps: 4, eval_at: [1, 4], eval_episodes: 3 });
  const onPhase = (phase: string) => void phases.push(phase);
  const result = (await runTraining({ model, data, config, store, onPhase })) as TrainingResult;
  expect(phases).toEqual(["random", "before", "training", "after"]);
  expect(result).toMatchObject({ steps: 8, episodes: 256, run: "memory" });
  for (const who of ["random", "before", "after"] as const) {
    expect(result[who].seen.greedy.episodes).toBe(5);
    expect(result[who].unseen.sampled.episodes).toBe(10);
  }
  const evaluated = (store.logs["metrics.jsonl"] as MetricLine[]).filter(
    (line) => "eval_seen/greedy/success_rate" in line,
  );
  expect(evaluated.map(({ step }) => step)).toEqual([0, 1, 4, 8]);
  const comparison = JSON.parse(store.read("comparison.json")!);
  expect(comparison.questions).toHaveLength(6);
  expect(comparison.questions[0].episodes.map(({ player }: { player: string }) => player)).toEqual([
    "random",
    "before",
    "after",
  ]);
  await model.engine.close();
});

test("pass@k is measured before the training, reported, and changes nothing else", async () => {
  const told: unknown[] = [];
  const run = async (more: GRPOConfigInput) => {
    const model = taughtModel(fineTuned);
    const store = new MemoryStore();
    const few = { max_steps: 2, final_eval_episodes: 1, comparison_episodes: 0 };
    const config = resolveConfig({ ...SMALL, ...few, ...more });
    const onPassAtK = (...all: unknown[]) => void told.push(...all);
    const result = await runTraining({ model, data, config, store, onPassAtK });
    const weights = model.engine.model.device.read(model.engine.model.values) as Float32Array;
    await model.engine.close();
    return { result: result!, weights, store };
  };
  const plain = await run({});
  const tried = await run({ pass_k: 4, pass_questions: 3 });
  const { pass_at_k, prompt } = tried.result;
  expect(prompt).toBe("compact-1");
  expect(pass_at_k).toMatchObject({ questions: 3, tries: 4 });
  expect(pass_at_k!.solved_in_tries).toBeGreaterThanOrEqual(pass_at_k!.sampled!);
  expect(told).toEqual([pass_at_k, passAtKWarning(pass_at_k!)]);
  expect(JSON.parse(tried.store.read("pass_at_k.json")!)).toEqual(pass_at_k);
  expect(tried.weights).toEqual(plain.weights);
  expect(tried.store.logs["metrics.jsonl"]).toEqual(plain.store.logs["metrics.jsonl"]);
  expect(plain.result).not.toHaveProperty("pass_at_k");
  const none = { questions: 64, tries: 8, greedy: 0, sampled: 0.001, solved_in_tries: 1 / 64 };
  expect(passAtKWarning(none)!.message).toMatch(/right at least once in 8 tries on 1\.6 % of 64 training questions/);
  expect(passAtKWarning({ ...none, solved_in_tries: 0.31 })).toBeNull();
});

test("callbacks are called, and the live one shows rewards, transcripts and success without changing anything", async () => {
  const plain = await train({ max_steps: 4 });
  const shown: LiveView[] = [];
  const live = new LiveVisualizationCallback({
    reward_every: 2,
    transcript_every: 2,
    success_every: 4,
    show: (view) => shown.push(view),
  });
  const told: string[] = [];
  const listener: TrainerCallback = {
    on_train_begin: () => void told.push("begin"),
    on_step_end: ({ state }) => void told.push(`step ${state.step}`),
    on_log: (_, { step }) => void told.push(`log ${step}`),
    on_train_end: () => void told.push("end"),
  };
  const watched = await train({ max_steps: 4 }, { callbacks: [live, listener] });
  expect(watched.metrics).toEqual(plain.metrics);
  expect(told).toEqual(["begin", ...[1, 2, 3, 4].flatMap((step) => [`log ${step}`, `step ${step}`]), "end"]);
  expect(shown.map(({ kind, step }) => `${step} ${kind}`)).toEqual([
    ...["0 transcript", "0 success", "2 reward", "2 transcript"],
    ...["4 reward", "4 transcript", "4 success"],
  ]);
  expect(shown[2]!.text).toMatch(/^step 2: reward -?\d\.\d{3} {2}[▁▂▃▄▅▆▇█]{2}$/);
  expect(live.success.map(({ step }) => step)).toEqual([0, 4]);
});

test("questions on databases that SFT used are neither rewarded nor shown as training questions", async () => {
  const shown: string[] = [];
  const callback: TrainerCallback = {
    on_train_begin: async ({ play }) =>
      void shown.push(...(await play("train", 6)).map(({ database_name }) => database_name)),
  };
  const given = { sft_steps: 1, max_steps: 1, gradient_accumulation_steps: 1, per_device_train_batch_size: 8 };
  const { episodes } = await train(given, { callbacks: [callback] });
  const [used] = sftDatabases(data, resolveConfig({ ...SMALL, ...given }));
  expect(new Set([...shown, ...episodes.map(({ database_name }) => database_name)])).toEqual(
    new Set(["shop", "zoo"].filter((name) => name !== used)),
  );
});

test("the random baseline plays the training questions, and rewards come out by step", async () => {
  const config = resolveConfig(SMALL);
  const baseline = await sampleRandomBaseline(data, config);
  expect(baseline).toHaveLength(8);
  expect(baseline.every(({ player, split }) => player === "random" && split === "train")).toBe(true);
  const model = taughtModel(fineTuned);
  const options = {
    model,
    data,
    config: resolveConfig({ ...SMALL, reward_weights: null }),
    rewardFuncs: [rewardCorrectness],
  };
  const { rewards } = await runTrainingWithMetrics(buildTrainer(options));
  expect(rewards.map(({ step }) => step)).toEqual([1, 2, 3]);
  await model.engine.close();
});

test("an engine error in an evaluation is thrown", async () => {
  const model = taughtModel(fineTuned);
  let asked = 0;
  const engine: TokenSampler = {
    sample: async (request) => {
      if (++asked > 5) throw new Error("the engine's thread ended");
      return model.engine.sample(request);
    },
  };
  const config = resolveConfig(SMALL);
  await expect(
    evaluateModel(createSqlEnvironment({ data, config }), { ...model, engine }, config, { episodes: null }),
  ).rejects.toThrow(/thread ended/);
  await model.engine.close();
});

test("a step whose gradient is not finite is reported at once", async () => {
  const model = taughtModel(fineTuned);
  const { engine: sound } = model;
  let steps = 0;
  const engine: TrainableEngine = {
    sample: (request) => sound.sample(request),
    forwardBackward: (batch, options) => sound.forwardBackward(batch, options),
    optimStep: async (adam) => ({ ...(await sound.optimStep(adam)), skipped: ++steps === 3 }),
    logprobs: (batch, options) => sound.logprobs(batch, options),
    close: () => sound.close(),
  };
  const store = new MemoryStore();
  const config = resolveConfig({ ...SMALL, max_steps: 4, logging_steps: 10 });
  await buildTrainer({ model: { ...model, engine }, data, config, store }).train();
  expect(store.logs["warnings.jsonl"]).toMatchObject([{ step: 3, code: "nan" }]);
  await model.engine.close();
});
