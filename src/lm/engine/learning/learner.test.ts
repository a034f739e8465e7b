// Tests learning through the engine: gradients do not depend on how a batch is packed or split, and optimizer steps are
// correct.
import { describe, expect, test } from "vitest";
import { difference, TINY, tinyModel, tokens } from "../../../../test/helpers/tiny-model.ts";
import { ADAMW, REFERENCES, readReference } from "../../../../test/reference/read.ts";
import { UsageError } from "../../../errors.ts";
import { POLICY_LOSSES } from "../../../rl/loss.ts"; // the most demanding losses
import { createCpu } from "../../devices/cpu/start.node.ts";
import { parseConfig } from "../../model/config.ts";
import { createModel, freeModel, type Model } from "../../model/parameters.ts";
import type { Datum, ForwardBackwardOptions } from "../engine.ts";
import { LocalEngine } from "../local-engine.ts";
import { computeLogprobs, learn as learnWith } from "./learner.ts";
import { batchTotals, type LossSpec } from "./loss.ts";

const CROSS_ENTROPY = { loss: { type: "cross_entropy" } } as const;

const learn: typeof learnWith = (model, batch, options, more) =>
  learnWith(model, batch, options, { losses: POLICY_LOSSES, ...more });

function gradientOf(model: Model): Float32Array {
  return model.device.read(model.grads!) as Float32Array;
}

/** Returns gradient, loss and log-probs of a batch on a new model. */
function learned(batch: readonly Datum[], options: ForwardBackwardOptions, maxRows?: number) {
  const model = tinyModel();
  const output = learn(model, batch, options, maxRows === undefined ? {} : { maxRows });
  return { ...output, gradient: gradientOf(model) };
}

type Compared = Datum & { readonly advantage: number };

/** A group of `n` completions of one prompt, two of which also share their first turn. */
function group(key: string, n: number, promptLength: number): Compared[] {
  const prompt = tokens(promptLength, key, "prompt");
  const turn = tokens(14, key, "turn");
  return Array.from({ length: n }, (_, i) => {
    const rest = [...(i < 2 ? turn : []), ...tokens(5 + 3 * i, key, i)];
    const ids = [...prompt, ...rest];
    const ours = ids.map((_, at) => (at >= prompt.length && (at - prompt.length) % 7 !== 3 ? 1 : 0));
    const noise = (scale: number) => ids.map((_, at) => -3 + scale * Math.sin(at + i));
    return { tokens: ids, weights: ours, advantage: 1 - (2 * i) / (n - 1), old_logp: noise(0.1), ref_logp: noise(0.2) };
  });
}

const LOSSES: readonly LossSpec[] = [
  { type: "cross_entropy" },
  { type: "policy", loss_type: "dapo", beta: 0.1, entropy_coef: 0.01 },
  { type: "policy", loss_type: "grpo", epsilon: 0.3 },
  { type: "policy", importance_sampling_level: "sequence", loss_type: "dr_grpo" },
];

describe.each(LOSSES.map((loss) => [JSON.stringify(loss), loss] as const))("%s", (_, loss) => {
  const batch = [...group("a", 4, 30), ...group("b", 3, 17)];
  const options = { loss, temperature: 0.8 };
  const whole = learned(batch, options);
  const totals = batchTotals(batch.map(({ weights }) => ({ weights })));

  test("recomputed activations give the same bits, in less memory", () => {
    const model = tinyModel();
    const output = learn(model, batch, options, { recompute: true });
    expect(output.loss).toBe(whole.loss);
    expect(gradientOf(model)).toEqual(whole.gradient);
  });

  test("shared prompts give the same gradients as each context alone", () => {
    expect(whole.computed_tokens).toBeLessThan(0.6 * whole.tokens);
    const model = tinyModel();
    const outputs = batch.map((datum) => learn(model, [datum], { ...options, totals }));
    expect(outputs.every((output) => output.computed_tokens === output.tokens)).toBe(true);
    expect(difference(whole.gradient, gradientOf(model))).toBeLessThan(1e-5);
    expect(whole.logprobs).toEqual(outputs.flatMap((output) => output.logprobs));
    const loss = outputs.reduce((sum, output) => sum + output.loss, 0);
    expect(Math.abs(loss - whole.loss)).toBeLessThan(1e-9);
  });

  test("divided into parts that fit in memory: the same loss, metrics and gradient", () => {
    const parts = learned(batch, options, 60);
    expect(parts.computed_tokens).toBeGreaterThan(whole.computed_tokens); // a group was split
    expect(difference(parts.gradient, whole.gradient)).toBeLessThan(1e-6);
    expect(Math.abs(parts.loss - whole.loss)).toBeLessThan(1e-9);
    expect(Object.keys(parts.metrics)).toEqual(Object.keys(whole.metrics));
    for (const [name, value] of Object.entries(whole.metrics)) expect(parts.metrics[name], name).toBeCloseTo(value, 9);
    expect(parts.logprobs).toEqual(whole.logprobs);
  });

  test("accumulated over halves with the whole batch's totals", async () => {
    const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
    const first = await engine.forwardBackward(batch.slice(0, 3), { ...options, totals });
    const second = await engine.forwardBackward(batch.slice(3), { ...options, totals });
    expect(Math.abs(first.loss + second.loss - whole.loss)).toBeLessThan(1e-9);
    expect(difference(gradientOf(engine.model), whole.gradient)).toBeLessThan(1e-6);
  });
});

test("the gradient is that of the loss: central differences over the whole model", () => {
  const batch = group("slope", 3, 12);
  const options = { loss: LOSSES[1]!, temperature: 0.9 };
  const model = tinyModel();
  learn(model, batch, options);
  const gradient = gradientOf(model);
  const values = model.device.read(model.values) as Float32Array;
  // Along its own direction, the gradient's slope is its length; single precision needs a wide step.
  const norm = Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0));
  const h = 3e-3;
  const lossAt = (by: number) => {
    const moved = tinyModel();
    moved.device.write(
      moved.values,
      values.map((value, i) => value + (by * gradient[i]!) / norm),
    );
    return learn(moved, batch, options).loss;
  };
  expect(Math.abs((lossAt(h) - lossAt(-h)) / (2 * h) / norm - 1)).toBeLessThan(2e-3);
});

test("log-probs of contexts with a long shared prompt equal those of each alone, though computed in slices", () => {
  const batch = group("slices", 6, 60); // 6 × 59 targets are predicted from the prompt's 60 rows
  const together = computeLogprobs(tinyModel(), batch, 0.8);
  const alone = batch.flatMap((datum) => computeLogprobs(tinyModel(), [datum], 0.8));
  together.forEach((logprobs, i) => {
    expect(difference(logprobs, alone[i]!)).toBeLessThan(1e-5);
  });
  expect(together.every((logprobs) => logprobs[0] === 0 && logprobs.subarray(1).every((logp) => logp < 0))).toBe(true);
});

test("segments of one episode are one sequence", () => {
  const [a, b, c] = group("segments", 3, 20) as [Compared, Compared, Compared];
  const spec = { loss: { type: "policy", loss_type: "grpo" } } as const;
  const asOne = learned([{ ...a, sequence: 5 }, c, { ...b, sequence: 5, advantage: a.advantage }], spec);
  const apart = learned([a, c, { ...b, advantage: a.advantage }], spec);
  expect(asOne.loss).not.toBe(apart.loss); // averaged over two sequences, not three
  const length = (datum: Datum) => Array.from(datum.weights).reduce((x, y) => x + y, 0);
  // In grpo, each sequence contributes the mean over its tokens.
  const ratioOf = (datum: Datum, at: number, output: { logprobs: readonly Float32Array[] }) =>
    Array.from(datum.weights, (m, t) => (m ? Math.exp(output.logprobs[at]![t]! - datum.old_logp![t]!) : 0));
  const surrogate = (ratios: number[], A: number) =>
    ratios.reduce((sum, w) => (w ? sum - Math.min(w * A, Math.min(Math.max(w, 0.8), 1.2) * A) : sum), 0);
  const [A, C] = [a.advantage, c.advantage];
  const joined = surrogate(ratioOf(a, 0, asOne), A) + surrogate(ratioOf(b, 2, asOne), A);
  const want = (joined / (length(a) + length(b)) + surrogate(ratioOf(c, 1, asOne), C) / length(c)) / 2;
  expect(asOne.loss).toBeCloseTo(want, 6);
});

describe("advantages by token", () => {
  const batch = group("by token", 3, 20);
  const spec = { loss: { type: "policy", loss_type: "dapo", beta: 0.1 }, temperature: 0.9 } as const;

  test("the same for every token: the same bits as one number", () => {
    const spread = batch.map((d) => ({
      ...d,
      advantage: d.tokens.map((_, t) => (d.weights[t] ? d.advantage : Number.NaN)),
    }));
    expect(learned(spread, spec)).toEqual(learned(batch, spec));
  });

  test("each weighs its own token, in every segment of an episode", () => {
    const [a, b, c] = batch as [Compared, Compared, Compared];
    const at = (datum: Datum, from: number) => datum.tokens.map((_, t) => (t < from ? 0.5 : -2));
    const whole = learned(
      [{ ...a, sequence: 1, advantage: at(a, 30) }, c, { ...b, sequence: 1, advantage: 0.5 }],
      spec,
    );
    // Two passes, one per value with the other tokens masked, give the same sum.
    const totals = batchTotals([a, b, c]);
    const only = (datum: Datum, isWanted: (t: number) => boolean, advantage: number): Datum => ({
      ...datum,
      ...{ advantage, weights: Array.from(datum.weights, (w, t) => (isWanted(t) ? w : 0)) },
    });
    const early = [only(a, (t) => t < 30, 0.5), { ...b, advantage: 0.5 }, c];
    const late = [only(a, (t) => t >= 30, -2)];
    const parts = [early, late].map((data) => learned(data, { ...spec, totals }));
    expect(whole.loss).toBeCloseTo(parts[0]!.loss + parts[1]!.loss, 9);
    const sum = parts[0]!.gradient.map((g, i) => g + parts[1]!.gradient[i]!);
    expect(difference(whole.gradient, sum)).toBeLessThan(1e-5);
  });
});

test("a group whose advantages are all 0 needs no backward pass and has no gradient", () => {
  const batch = group("even", 4, 20).map((datum) => ({ ...datum, advantage: 0 }));
  const { loss, gradient } = learned(batch, { loss: { type: "policy" } });
  expect(loss).toBe(0);
  expect(gradient.every((g) => g === 0)).toBe(true);
});

describe("steps", () => {
  /** A toy language: each token is followed by the one 7 higher. */
  const sentences = Array.from({ length: 6 }, (_, i): Datum => {
    const ids = Array.from({ length: 12 }, (_, t) => (i * 9 + t * 7) % TINY.vocab_size);
    return { tokens: ids, weights: ids.map((_, t) => (t === 0 ? 0 : 1)) };
  });

  test.each(["plain", "relaxed"] as const)("cross-entropy falls as recorded: %s SIMD", async (simd) => {
    const engine = new LocalEngine(tinyModel({ deviation: 0.1, device: createCpu({ threads: 1, simd }) }));
    const losses: number[] = [];
    for (let step = 0; step < 30; step++) {
      losses.push((await engine.forwardBackward(sentences, CROSS_ENTROPY)).loss);
      const { skipped } = await engine.optimStep({ learning_rate: 0.01, weight_decay: 0.01, max_grad_norm: 1 });
      expect(skipped).toBe(false);
    }
    for (const [step, loss] of Object.entries(PINNED)) expect(losses[Number(step)]).toBeCloseTo(loss, 4);
    expect(losses.every((loss, i) => i === 0 || loss < losses[i - 1]!)).toBe(true);
    const [prompt, stop] = [sentences[0]!.tokens.slice(0, 4), sentences[0]!.tokens[11]!];
    const asked = { prompt, max_new_tokens: 20, stop_ids: [stop], temperature: 0, key: [] };
    expect((await engine.sample(asked)).tokens).toEqual(sentences[0]!.tokens.slice(4));
  });

  test("a policy step makes tokens of good episodes likelier and those of bad ones less so", async () => {
    const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
    const batch = group("policy", 4, 25);
    const before = await engine.logprobs(batch);
    const data = batch.map((datum, i) => ({ ...datum, old_logp: before[i]!, ref_logp: before[i]! }));
    const options = { loss: { type: "policy", beta: 0.04, entropy_coef: 0.001 } } as const;
    const output = await engine.forwardBackward(data, options);
    expect(
      output.logprobs.map((row, i) => row.every((x, t) => data[i]!.weights[t] === 0 || x === before[i]![t])),
    ).toEqual(batch.map(() => true));
    expect(output.metrics.kl).toBeCloseTo(0, 9);
    await engine.optimStep({ learning_rate: 1e-3 });
    const after = await engine.logprobs(batch);
    for (const [i, { advantage, weights }] of batch.entries()) {
      const moved = after[i]!.reduce((sum, lp, t) => sum + weights[t]! * (lp - before[i]![t]!), 0);
      expect(Math.sign(moved)).toBe(Math.sign(advantage));
    }
    const again = await engine.forwardBackward(data, options);
    expect(again.loss).toBeLessThan(output.loss);
    expect(again.metrics.kl).toBeGreaterThan(0);
  });

  test("samples after a step are those of the new weights, not of the cache", async () => {
    const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
    const asked = { prompt: tokens(20, "cached"), max_new_tokens: 8, stop_ids: [], key: ["x"] };
    const before = await engine.sample(asked);
    await engine.forwardBackward(sentences, CROSS_ENTROPY);
    await engine.optimStep({ learning_rate: 0.05 });
    const after = await engine.sample(asked);
    expect(after.cached_tokens).toBe(0);
    expect(after.logprobs).not.toEqual(before.logprobs);
    const [logprobs] = await engine.logprobs([{ tokens: [...asked.prompt, ...after.tokens], weights: [] }]);
    expect([...logprobs!.subarray(20)]).toEqual(after.logprobs);
  });

  test.each<[string, (engine: LocalEngine) => void]>([
    ["a gradient that is none", ({ model }) => model.device.fill(model.device.part(model.grads!, 77, 1), Number.NaN)],
    ["an infinite one", ({ model }) => model.device.fill(model.device.part(model.grads!, 3, 1), Infinity)],
  ])("%s stops the step before the weights change", async (_, spoil) => {
    const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
    const { device, values } = engine.model;
    await engine.forwardBackward(sentences, CROSS_ENTROPY);
    spoil(engine);
    const before = device.read(values);
    const output = await engine.optimStep({ learning_rate: 0.1 });
    expect(output).toMatchObject({ skipped: true, step: 0 });
    expect(device.read(values)).toEqual(before);
    // The bad gradient is gone, and the next step counts as the first.
    await engine.forwardBackward(sentences, CROSS_ENTROPY);
    expect(await engine.optimStep({ learning_rate: 0.1 })).toMatchObject({ skipped: false, step: 1 });
    expect(device.read(values).every(Number.isFinite)).toBe(true);
    expect(device.read(values)).not.toEqual(before);
  });

  test("a loss that is not finite skips the step, whatever the other losses are", async () => {
    const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
    const { device, values } = engine.model;
    const before = device.read(values);
    const [datum, ...rest] = group("nan", 3, 10) as [Datum, ...Datum[]];
    const spoilt = { ...datum, old_logp: datum.tokens.map(() => Number.NaN) };
    const spec = { loss: { type: "policy" } } as const;
    expect((await engine.forwardBackward([spoilt], spec)).loss).toBeNaN();
    await engine.forwardBackward(rest, spec);
    expect((await engine.optimStep({ learning_rate: 0.1 })).skipped).toBe(true);
    expect(device.read(values)).toEqual(before);
  });

  test("the gradient norm is reported, and clipped to max_grad_norm", async () => {
    const run = async (max_grad_norm: number | undefined) => {
      const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
      await engine.forwardBackward(sentences, CROSS_ENTROPY);
      const gradient = gradientOf(engine.model);
      // A large eps makes the step proportional to the gradient.
      const adam = { learning_rate: 1, eps: 1e6, beta1: 0, beta2: 0 };
      const before = engine.model.device.read(engine.model.values);
      const { grad_norm } = await engine.optimStep(max_grad_norm === undefined ? adam : { ...adam, max_grad_norm });
      const norm = Math.sqrt(gradient.reduce((sum, g) => sum + g * g, 0));
      expect(Math.abs(grad_norm / norm - 1)).toBeLessThan(1e-5);
      const after = engine.model.device.read(engine.model.values);
      return { norm, moved: Math.hypot(...Array.from(after, (value, i) => (value - before[i]!) * 1e6)) };
    };
    const free = await run(undefined);
    expect(Math.abs(free.moved / free.norm - 1)).toBeLessThan(0.2); // only the last bits change
    expect((await run(free.norm / 4)).moved).toBeLessThan(0.4 * free.moved);
    expect((await run(free.norm * 4)).moved).toBe(free.moved);
  });

  test("whole steps have the same bits with 1 and 2 threads", async () => {
    const [alone, together] = await Promise.all(
      [1, 2].map(async (threads) => {
        const engine = new LocalEngine(tinyModel({ device: createCpu({ threads }) }), { losses: POLICY_LOSSES });
        for (let step = 0; step < 3; step++) {
          await engine.forwardBackward(group(`step ${step}`, 4, 20), { loss: LOSSES[1]! });
          await engine.optimStep({ learning_rate: 0.01, weight_decay: 0.1, max_grad_norm: 0.5 });
        }
        const values = engine.model.device.read(engine.model.values);
        await engine.close();
        return values;
      }),
    );
    expect(together).toEqual(alone);
  });
});

test.each(REFERENCES)("ten steps equal ten steps of PyTorch's AdamW: %s", async (name) => {
  const { config, parameters, sequences, adamw } = readReference(name);
  const model = createModel(createCpu({ threads: 1 }), parseConfig(config), { trains: true });
  for (const tensor of model.tensors) model.device.write(tensor.value, parameters.get(tensor.name)!.data);
  const engine = new LocalEngine(model);
  const batch = sequences.map((ids) => ({ tokens: [...ids], weights: Array.from(ids, () => 1) }));
  const { lr: learning_rate, ...adam } = ADAMW;
  for (const [i, norm] of adamw.grad_norms.entries()) {
    const { loss } = await engine.forwardBackward(batch, CROSS_ENTROPY);
    expect(Math.abs(loss - adamw.losses[i]!)).toBeLessThan(2e-5);
    const { grad_norm, step } = await engine.optimStep({ ...adam, learning_rate });
    expect(Math.abs(grad_norm / norm - 1)).toBeLessThan(5e-5);
    expect(step).toBe(i + 1);
  }
  expect(Math.abs((await engine.forwardBackward(batch, CROSS_ENTROPY)).loss - adamw.losses[10]!)).toBeLessThan(2e-5);
});

describe("wrong use", () => {
  test("a step while samples are running is rejected, and does nothing", async () => {
    const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
    const sampling = engine.sample({ prompt: tokens(5, "busy"), max_new_tokens: 3, stop_ids: [], key: [] });
    await expect(engine.optimStep({ learning_rate: 0.1 })).rejects.toThrow(UsageError);
    await expect(engine.optimStep({ learning_rate: 0.1 })).rejects.toThrow(
      "optimStep while samples are running; await them",
    );
    expect((await sampling).tokens).toHaveLength(3);
    expect((await engine.optimStep({ learning_rate: 0.1 })).step).toBe(1);
  });

  const engine = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
  const good: Datum = { tokens: [1, 2, 3], weights: [0, 1, 1] };
  test.each<[string, Partial<Datum>, string]>([
    ["a token outside the vocabulary", { tokens: [1, 61, 2] }, "token id outside the vocabulary: 61; ids are below 61"],
    ["no tokens", { tokens: [], weights: [] }, "a datum has no tokens: datum 1"],
    [
      "too many",
      { tokens: tokens(300, "w"), weights: new Float32Array(300) },
      "longer than the model's window: 300 > 256",
    ],
    ["weights of another length", { weights: [1, 1] }, "datum 1: weights for 3 tokens: 2"],
    ["advantages of another length", { advantage: [1, 1] }, "datum 1: advantage for 3 tokens: 2"],
    ["log-probs of another length", { old_logp: [1] }, "datum 1: old_logp for 3 tokens: 1"],
  ])("data with %s are refused", async (_, change, message) => {
    const learning = engine.forwardBackward([good, { ...good, ...change }], CROSS_ENTROPY);
    await expect(learning).rejects.toThrow(UsageError);
    await expect(learning).rejects.toThrow(message);
    expect(gradientOf(engine.model).every((g) => g === 0)).toBe(true);
  });

  test("a model for sampling only does not learn", async () => {
    const sampling = new LocalEngine({ ...tinyModel(), grads: null });
    await expect(sampling.forwardBackward([good], CROSS_ENTROPY)).rejects.toThrow("load it with trains: true");
    await expect(sampling.optimStep({ learning_rate: 1 })).rejects.toThrow("load it with trains: true");
  });
});

/** Losses of the toy task at some steps; both SIMD variants are within the tolerance. */
const PINNED: Readonly<Record<number, number>> = { 0: 4.145619, 1: 3.552892, 5: 2.393172, 15: 0.894213, 29: 0.139415 };

test("a freed model leaves nothing allocated", () => {
  const device = createCpu({ threads: 1 });
  const before = device.memory.used;
  for (let i = 0; i < 2; i++) {
    const model = tinyModel({ device });
    learn(model, [{ tokens: [1, 2, 3, 4], weights: [0, 1, 1, 1] }], { loss: { type: "cross_entropy" } });
    freeModel(model);
  }
  expect(device.memory.used).toBe(before);
  device.close();
});

test("the entropy quantile is over the whole batch, whatever its parts", () => {
  const batch = [...group("a", 4, 30), ...group("b", 3, 17)];
  const options = { loss: { type: "policy", loss_type: "grpo", top_entropy_quantile: 0.4 } as const };
  const [whole, parts] = [learned(batch, options), learned(batch, options, 60)];
  expect(parts.loss).toBeCloseTo(whole.loss, 9);
  expect(difference(parts.gradient, whole.gradient)).toBeLessThan(1e-6);
  expect(
    difference(learned(batch, { loss: { ...options.loss, top_entropy_quantile: 1 } }).gradient, whole.gradient),
  ).toBeGreaterThan(0.01);
});

test("log-probs of the reference weights are available after steps", async () => {
  const engine = new LocalEngine(tinyModel(), { reference: true });
  const batch = group("r", 2, 12);
  const before = await engine.logprobs(batch);
  await engine.forwardBackward(batch, CROSS_ENTROPY);
  await engine.optimStep({ learning_rate: 1e-2 });
  const after = await engine.logprobs(batch);
  expect(after).not.toEqual(before);
  expect(await engine.logprobs(batch, { weights: "reference" })).toEqual(before);
  expect(await engine.logprobs(batch)).toEqual(after);
  await engine.close();
  const without = new LocalEngine(tinyModel(), { losses: POLICY_LOSSES });
  await expect(without.logprobs(batch, { weights: "reference" })).rejects.toThrow(
    /kept no reference weights; load the model with/,
  );
  await without.close();
});
