// Compares the whole model with transformers (../../test/reference/), and with itself across threads, trees and files.
import { describe, expect, test } from "vitest";
import { everyToken, logitsOf, put, train } from "../../../test/helpers/model-passes.ts";
import { difference, tinyModel, tokens } from "../../../test/helpers/tiny-model.ts";
import {
  ADAMW,
  ENTROPY_WEIGHT,
  hasMinimind,
  minimindFolder,
  REFERENCES,
  readMinimind,
  readReference,
  TEMPERATURE,
} from "../../../test/reference/read.ts";
import { ModelLoadError } from "../../errors.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import type { Buffer } from "../devices/index.ts";
import { parseConfig } from "./config.ts";
import { backward, forward, infer } from "./decoder.ts";
import { loadWeights, tensorsOf } from "./formats/load.ts";
import { openSafetensors } from "./formats/safetensors.node.ts";
import type { WeightSource } from "./formats/safetensors.ts";
import { forestLayout, type Span } from "./layout.ts";
import { createModel, type Model, parameterCount, parametersChanged } from "./parameters.ts";

const VARIANTS = ["plain", "relaxed"] as const;

describe.each(REFERENCES)("%s against transformers", (name) => {
  const reference = readReference(name);
  const spans = reference.sequences.map((ids) => ({ tokens: [...ids], parent: null }));
  const all = everyToken(reference.sequences);

  async function load(simd: (typeof VARIANTS)[number], threads = 1): Promise<Model> {
    const model = createModel(createCpu({ threads, simd }), parseConfig(reference.config), { trains: true });
    const source = await openSafetensors(reference.folder);
    await loadWeights(model, source, { file: reference.folder });
    await source.close();
    return model;
  }

  test.each(VARIANTS)("logits, log-probs, entropies and every gradient: %s SIMD", async (simd) => {
    const model = await load(simd);
    expect(difference(logitsOf(model, spans), reference.logits.data)).toBeLessThan(1e-5);
    const { weights } = reference;
    const wanted = { ...all, temperature: TEMPERATURE, weights, entropyWeight: ENTROPY_WEIGHT };
    const { logp, entropy } = train(model, spans, wanted);
    expect(difference(logp, reference.logp)).toBeLessThan(1e-5);
    expect(difference(entropy, reference.entropy)).toBeLessThan(1e-5);
    expect(new Set(model.tensors.map((tensor) => tensor.name))).toEqual(new Set(reference.gradients.keys()));
    for (const tensor of model.tensors) {
      const want = reference.gradients.get(tensor.name)!;
      expect(tensor.shape).toEqual(want.shape);
      expect(difference(model.device.read(tensor.grad!), want.data), tensor.name).toBeLessThan(3e-5);
    }
    model.device.close();
  });

  test("ten steps of AdamW: losses and gradient norms", async () => {
    const model = await load("relaxed");
    const { device, values, grads } = model;
    const moments = [0, 0].map(() => put(model, new Float32Array(values.length))) as [Buffer, Buffer];
    const count = all.rows.length;
    const weights = new Float32Array(count).fill(-1 / count);
    const losses: number[] = [];
    const norms: number[] = [];
    for (let step = 1; step <= 11; step++) {
      device.fill(grads!, 0);
      const { logp } = train(model, spans, { ...all, temperature: 1, weights, entropyWeight: 0 });
      losses.push(-logp.reduce((sum, lp) => sum + lp, 0) / count);
      const norm = Math.sqrt(device.sumSquares(grads!));
      norms.push(norm);
      const { lr, max_grad_norm, ...betas } = ADAMW;
      const gradient_scale = Math.min(1, max_grad_norm / (norm + 1e-6));
      device.adamW(values, grads!, ...moments, { ...betas, learning_rate: lr, step, gradient_scale });
      parametersChanged(model);
    }
    for (const [i, loss] of reference.adamw.losses.entries()) expect(Math.abs(losses[i]! - loss)).toBeLessThan(2e-5);
    for (const [i, norm] of reference.adamw.grad_norms.entries()) {
      expect(Math.abs(norms[i]! / norm - 1)).toBeLessThan(5e-5);
    }
    device.close();
  });
});

/** A prompt with three completions, one of which continues twice, and a separate sequence; all tokens are trained. */
function bush() {
  const spans: Span[] = [
    { tokens: tokens(13, "prompt"), parent: null },
    { tokens: tokens(5, 1), parent: 0 },
    { tokens: tokens(40, 2), parent: 0 },
    { tokens: tokens(1, 3), parent: 0 },
    { tokens: tokens(9, 4), parent: 2 },
    { tokens: tokens(8, 5), parent: 2 },
    { tokens: tokens(21, 6), parent: null },
  ];
  const starts = spans.map((_, i) => spans.slice(0, i).reduce((sum, run) => sum + run.tokens.length, 0));
  const items = spans.flatMap(({ tokens: ids, parent }, i) =>
    ids.flatMap((target, t) => {
      if (t > 0) return [{ row: starts[i]! + t - 1, target }];
      return parent === null ? [] : [{ row: starts[parent]! + spans[parent]!.tokens.length - 1, target }];
    }),
  );
  const weights = items.map((_, i) => Math.sin(i + 1));
  return { spans, rows: items.map(({ row }) => row), targets: items.map(({ target }) => target), weights };
}

test.each(VARIANTS)("the same bits with 1, 2 and 4 threads: log-probs, gradients, a step: %s SIMD", (simd) => {
  const { spans, ...items } = bush();
  const [alone, ...others] = [1, 2, 4].map((threads) => {
    const model = tinyModel({ device: createCpu({ threads, simd }) });
    const { device, values, grads } = model;
    const { logp, entropy } = train(model, spans, { ...items, temperature: 0.9, entropyWeight: 0.1 });
    const moments = [0, 0].map(() => put(model, new Float32Array(values.length))) as [Buffer, Buffer];
    const step = { learning_rate: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1, step: 1 };
    const gradient = device.read(grads!);
    device.adamW(values, grads!, ...moments, { ...step, gradient_scale: 1 / Math.sqrt(device.sumSquares(grads!)) });
    const result = [logp, entropy, gradient, device.read(values)];
    device.close();
    return result;
  });
  expect(alone!.every((values) => values.every(Number.isFinite))).toBe(true);
  for (const other of others) expect(other).toEqual(alone);
});

test("plain and relaxed SIMD agree to 1e-4 through the whole model", () => {
  const { spans, ...items } = bush();
  const [plain, relaxed] = VARIANTS.map((simd) => {
    const model = tinyModel({ device: createCpu({ threads: 1, simd }) });
    const { logp } = train(model, spans, { ...items, temperature: 1, entropyWeight: 0 });
    return { logp, gradient: model.device.read(model.grads!) };
  });
  expect(difference(relaxed!.logp, plain!.logp)).toBeLessThan(1e-4);
  expect(difference(relaxed!.gradient, plain!.gradient)).toBeLessThan(1e-4);
});

describe("weights in and out", () => {
  const model = tinyModel();
  const shapes = new Map(model.tensors.map(({ name, shape }) => [name, shape]));
  type Source = Pick<WeightSource, "names" | "info" | "read">;
  const source = (change: Partial<Source> = {}): Source => {
    const data = new Map([...tensorsOf(model)].map((tensor) => [tensor.name, Float32Array.from(tensor.data)]));
    return {
      names: [...shapes.keys()],
      info: (name) => ({ dtype: "F32", shape: shapes.get(name)! }),
      read: async (name) => data.get(name)!,
      ...change,
    };
  };
  const NORM = "model.layers.1.self_attn.k_norm.weight";

  test("loadWeights takes what tensorsOf returns: a copy with the same bits and logits", async () => {
    const copy = createModel(model.device, model.config, { trains: false });
    const spans = [{ tokens: tokens(9, "copy"), parent: null }];
    logitsOf(copy, spans); // copies of zeros, which must not survive on the device
    await loadWeights(copy, source());
    expect([...tensorsOf(copy)]).toEqual([...tensorsOf(model)]);
    expect(logitsOf(copy, spans)).toEqual(logitsOf(model, spans));
    expect(parameterCount(copy)).toBe([...tensorsOf(model)].reduce((sum, { data }) => sum + data.length, 0));
  });

  test.each<[string, Partial<Source>, RegExp]>([
    ["a missing tensor", { names: [...shapes.keys()].filter((name) => name !== NORM) }, /missing: .*k_norm/],
    ["an unknown one", { names: [...shapes.keys(), "extra.bias"] }, /does not have: extra\.bias/],
    ["another shape", { info: () => ({ dtype: "F32", shape: [3] }) }, /should have shape \[61,24\].*: \[3\]/],
    ["another dtype", { info: (name) => ({ dtype: "I32", shape: shapes.get(name)! }) }, /dtype other than.*: I32/],
    ["a NaN", { read: async (name) => new Float32Array(length(name)).fill(Number.NaN) }, /none, at 0: NaN/],
    ["too few numbers", { read: async () => new Float32Array(7) }, /has 1464 numbers: 7 came/],
  ])("%s is refused, naming source, tensor and value", async (_, change, message) => {
    const loading = loadWeights(tinyModel({ device: model.device }), source(change), { file: "/some/folder" });
    await expect(loading).rejects.toThrow(ModelLoadError);
    await expect(loading).rejects.toThrow(message);
    await expect(loading).rejects.toThrow("/some/folder: ");
  });
  const length = (name: string) => shapes.get(name)!.reduce((a, b) => a * b, 1);

  test.each(["hidden_size", "intermediate_size", "head_dim"] as const)("%s must be a multiple of 8", (key) => {
    const make = () => createModel(model.device, { ...model.config, [key]: 12 }, { trains: false });
    expect(make).toThrow(ModelLoadError);
    expect(make).toThrow(`${key} is not a multiple of 8: 12`);
  });
});

const title = "minimind2-small, a real model: logits and 64 greedy tokens are those of transformers";
test.skipIf(!hasMinimind)(hasMinimind ? title : `${title} (the model is not here)`, async () => {
  const expected = readMinimind();
  const folder = await minimindFolder();
  const { readFileSync } = await import("node:fs");
  const config = parseConfig(JSON.parse(readFileSync(`${folder}/config.json`, "utf8")));
  const model = createModel(createCpu({ threads: 2 }), config, { trains: false });
  const source = await openSafetensors(folder);
  await loadWeights(model, source);
  await source.close();
  const V = config.vocab_size;

  const logits = logitsOf(model, [{ tokens: expected.ids, parent: null }]);
  expect(difference(logits.subarray(-V), expected.last_logits)).toBeLessThan(1e-4);
  for (const [t, ids] of expected.top_ids.entries()) {
    const ours = ids.map((id) => logits[t * V + id]!);
    expect(difference(ours, expected.top_logits[t]!)).toBeLessThan(1e-4);
  }
  // All greedy tokens in one pass, since each depends only on earlier ones.
  const rows = logitsOf(model, [{ tokens: [...expected.ids, ...expected.greedy.slice(0, -1)], parent: null }]);
  const chosen = expected.greedy.map((_, i) => {
    const row = rows.subarray((expected.ids.length - 1 + i) * V, (expected.ids.length + i) * V);
    return row.indexOf(row.reduce((a, b) => Math.max(a, b)));
  });
  expect(chosen).toEqual(expected.greedy);
  model.device.close();
});

test.each([false, true])("computing only the wanted rows gives the same bits (recompute: %s)", (recompute) => {
  const spans: Span[] = [
    { tokens: tokens(300, 0), parent: null },
    { tokens: tokens(20, 1), parent: 0 },
    { tokens: tokens(30, 2), parent: 0 },
  ];
  const rows = [299, 305, 319, 320, 349];
  const run = (some: boolean) => {
    const model = tinyModel({ config: { num_hidden_layers: 2, max_position_embeddings: 512 } });
    const { device, config } = model;
    const D = config.hidden_size;
    const result = device.scope(() => {
      const shape = { kvHeads: config.num_key_value_heads, headDim: config.head_dim };
      const { layout, kvLength } = forestLayout(device, spans, shape);
      const ids = put(model, Int32Array.from(spans.flatMap((one) => one.tokens)));
      const indices = put(model, Int32Array.from(rows));
      const wanted = some ? { indices, count: rows.length } : null;
      const kvCaches = model.layers.map(() => device.alloc("f32", kvLength));
      const read = (hidden: Buffer) => {
        const out = device.alloc("f32", rows.length * D);
        const places = some ? put(model, Int32Array.from(rows.keys())) : indices;
        device.gather(hidden, places, out, rows.length, D);
        return device.read(out);
      };
      const inferred = read(infer(model, ids, layout, kvCaches, wanted));
      const { hidden, saved } = forward(model, ids, layout, kvLength, { recompute, wanted });
      const states = read(hidden);
      const d = put(
        model,
        Float32Array.from({ length: rows.length * D }, (_, i) => Math.sin(i)),
      );
      const dHidden = device.alloc("f32", hidden.length);
      device.fill(dHidden, 0);
      device.scatterAdd(d, some ? put(model, Int32Array.from(rows.keys())) : indices, dHidden, rows.length, D);
      backward(model, saved, dHidden);
      return { inferred, states, grads: device.read(model.grads!) };
    });
    device.close();
    return result;
  };
  const [all, some] = [run(false), run(true)];
  expect(some).toEqual(all);
  expect(all.grads.some((g) => g !== 0)).toBe(true);
});
