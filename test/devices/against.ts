// Compares a device with the CPU: every kernel, attention at real sizes, a whole model's gradients, training and sampling.
import { expect, test } from "vitest";
import { createCpu } from "../../src/lm/devices/cpu/start.node.ts";
import type { Device, HeadShape } from "../../src/lm/devices/index.ts";
import type { Datum } from "../../src/lm/engine/engine.ts";
import { LocalEngine } from "../../src/lm/engine/local-engine.ts";
import type { ModelConfig } from "../../src/lm/model/config.ts";
import { forestLayout, layoutOf, type NewTokens } from "../../src/lm/model/layout.ts";
import { addLora, mergeLora } from "../../src/lm/model/lora.ts";
import { createModel, parametersChanged } from "../../src/lm/model/parameters.ts";
import { random } from "../../src/random.ts";
import { FAMILIES, tinyModel } from "../helpers/tiny-model.ts";
import { angleOf, Bench, distance, tree } from "./bench.ts";
import { everyKernel } from "./every.ts";
import { linear, swiGlu } from "./reference.ts";

/** Largest errors allowed, as ‖got − want‖ / ‖want‖. */
export interface AgainstTolerances {
  /** One kernel on the same numbers, and a chain of them. */
  readonly kernel: number;
  readonly chain: number;
  /** Gradients of a whole model. */
  readonly gradient: number;
  /** Of a loss, relative; of a log-prob, absolute. */
  readonly loss: number;
  readonly logprob: number;
}

/** Tests of a device; `note` gets the measured errors. */
export function againstCpu(
  name: string,
  make: () => Device,
  tolerances: AgainstTolerances,
  note: (line: string) => void,
): void {
  const on = <T>(makeDevice: () => Device, use: (device: Device) => T): T => {
    const device = makeDevice();
    try {
      return use(device);
    } finally {
      device.close();
    }
  };
  const cpu = () => createCpu({ threads: 2 });

  test(`${name}: every kernel agrees with the CPU`, () => {
    const [want, got] = [on(cpu, everyKernel), on(make, everyKernel)];
    const wrong: string[] = [];
    for (const [kernel, values] of want) {
      if (kernel.startsWith("sample, ")) continue; // rounding may move a boundary between tokens
      if (kernel.startsWith("moveBlock") && !got.has(kernel)) continue; // the one kernel that is optional
      const off = distance(got.get(kernel) ?? [], values);
      note(`${name}: ${kernel}: ${off.toExponential(1)}`);
      if (!(off <= tolerances.chain)) wrong.push(`${kernel} ${off}`);
    }
    expect(wrong).toEqual([]);
  });

  const SHAPES: [heads: number, kvHeads: number, headDim: number, vectors: Vectors][] = [
    [4, 2, 64, "norms"],
    [6, 2, 32, "norms"],
    [16, 8, 128, "norms"],
    [5, 1, 40, "norms"],
    [12, 2, 128, "bias"],
    [14, 2, 64, "bias"],
    [5, 1, 40, "bias"],
  ];
  for (const [heads, kvHeads, headDim, vectors] of SHAPES) {
    test(`${name}: attention, ${heads} heads on ${kvHeads} of ${headDim} with ${vectors}, agrees with the CPU`, () => {
      const runs = tree([200, null], [70, 0], [1, 0], [129, 0], [64, 1], [3, 1], [257, null], [1, null], [33, 6]);
      const shape = { heads, kvHeads, headDim, eps: 1e-6 };
      const [want, got] = [
        on(cpu, (device) => attend(device, runs, shape, vectors)),
        on(make, (device) => attend(device, runs, shape, vectors)),
      ];
      for (const [key, values] of Object.entries(want)) {
        const off = distance(got[key]!, values);
        note(`${name}: attention ${heads}/${kvHeads}·${headDim}: ${key}: ${off.toExponential(1)}`);
        expect(off, key).toBeLessThanOrEqual(tolerances.kernel);
      }
    });
  }

  for (const [heads, kvHeads, headDim, vectors] of [
    [16, 8, 128, "norms"],
    [6, 2, 64, "norms"],
    [12, 2, 128, "bias"], // Qwen2.5-Coder-1.5B
    [14, 2, 64, "bias"], // Qwen2.5-0.5B
    [32, 8, 64, "neither"], // Llama-3.2-1B
    [9, 3, 64, "neither"], // SmolLM2-135M
  ] as const) {
    test(`${name}: next tokens that share their contexts, ${heads} heads on ${kvHeads} of ${headDim} with ${vectors}`, () => {
      on(make, (device) => {
        const off = nextTokens(device, { heads, kvHeads, headDim, eps: 1e-6 }, vectors);
        note(`${name}: next tokens ${heads}/${kvHeads}·${headDim}: ${JSON.stringify(off)}`);
        for (const [what, distance] of Object.entries(off))
          expect(distance, what).toBeLessThanOrEqual(tolerances.kernel);
      });
    });
  }

  test(`${name}: matmuls of few rows: plain, with SwiGLU, and added to the residual stream`, () => {
    on(make, (device) => {
      for (const rows of [1, 2, 7, 8, 9, 16, 17, 31, 33, 64, 65]) {
        for (const [n, k] of [
          [64, 256],
          [4608, 512],
          [96, 1280],
        ] as const) {
          const worst = Math.max(...Object.values(fewRows(device, rows, n, k)));
          expect(worst, `${rows} rows, weight ${n} by ${k}`).toBeLessThanOrEqual(tolerances.kernel);
        }
      }
    });
  });

  for (const [n, k] of [
    [1024, 2048],
    [6144, 1024],
    [1024, 3072],
  ] as const) {
    test(`${name}: matmuls of a batch with a weight ${n} by ${k}, as Qwen3-0.6B has them`, () => {
      on(make, (device) => {
        for (const rows of [20, 64]) {
          const off = fewRows(device, rows, n, k);
          note(`${name}: ${rows} rows, weight ${n} by ${k}: ${JSON.stringify(off)}`);
          expect(Math.max(...Object.values(off)), `${rows} rows`).toBeLessThanOrEqual(tolerances.kernel);
        }
      });
    });
  }

  const SMALL: Partial<ModelConfig> = {
    ...{ vocab_size: 1024, hidden_size: 256, intermediate_size: 512, num_hidden_layers: 3 },
    ...{ num_attention_heads: 4, num_key_value_heads: 2, head_dim: 64 },
  };
  type Family = keyof typeof FAMILIES;
  const families = Object.keys(FAMILIES) as Family[];
  const engineOn = (device: Device, family: Family = "qwen3", recompute = false) => {
    const config = { ...SMALL, ...FAMILIES[family] };
    return new LocalEngine(tinyModel({ device, config, deviation: 0.06, seed: "against" }), { recompute });
  };
  const batch = groups();

  for (const [family, recompute] of [...families.map((each) => [each, false] as const), ["qwen3", true] as const]) {
    test(`${name}: gradients of a whole ${family} agree with the CPU${recompute ? ", activations recomputed" : ""}`, async () => {
      const grads = async (device: Device) => {
        const engine = engineOn(device, family, recompute);
        const { loss, logprobs } = await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } });
        const tensors = engine.model.tensors.map(
          ({ name, grad }) => [name, device.read(grad!) as Float32Array] as const,
        );
        await engine.close();
        return { loss, logprobs, tensors };
      };
      const [want, got] = [await grads(cpu()), await grads(make())];
      note(`${name}: loss ${got.loss}, CPU ${want.loss}`);
      expect(Math.abs(got.loss / want.loss - 1)).toBeLessThanOrEqual(tolerances.loss);
      let worst = { name: "", off: 0 };
      for (const [i, [tensor, values]] of want.tensors.entries()) {
        // A bias of the keys shifts all scores of a query nearly alike: its gradient is a small difference of large numbers.
        const scale = tensor.endsWith("k_proj.bias") ? 0.5 : 1;
        const off = scale * distance(got.tensors[i]![1], values);
        if (!(off <= worst.off)) worst = { name: tensor, off };
      }
      note(`${name}: gradients: worst ${worst.name} ${worst.off.toExponential(1)}`);
      expect(worst.off, worst.name).toBeLessThanOrEqual(tolerances.gradient);
    });
  }

  test(`${name}: 20 training steps follow the CPU's losses, and are deterministic`, async () => {
    const train = async (device: Device) => {
      const engine = engineOn(device);
      const losses: number[] = [];
      for (let step = 0; step < 20; step++) {
        losses.push((await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } })).loss);
        await engine.optimStep({ learning_rate: 1.5e-4, weight_decay: 0.01, max_grad_norm: 1 });
      }
      const weights = device.read(engine.model.values) as Float32Array;
      await engine.close();
      return { losses, weights };
    };
    const want = await train(cpu());
    const [got, again] = [await train(make()), await train(make())];
    note(`${name}: losses ${got.losses.map((loss) => loss.toFixed(4)).join(" ")}`);
    note(`${name}: CPU    ${want.losses.map((loss) => loss.toFixed(4)).join(" ")}`);
    for (const [i, loss] of want.losses.entries()) {
      expect(Math.abs(got.losses[i]! / loss - 1), `step ${i}`).toBeLessThanOrEqual(3 * tolerances.loss);
    }
    expect(want.losses.at(-1)!).toBeLessThan(0.9 * want.losses[0]!);
    expect(again.losses).toEqual(got.losses);
    expect(again.weights.every((value, i) => Object.is(value, got.weights[i]))).toBe(true);
  });

  for (const family of families) {
    test(`${name}: adapters of a ${family}: gradients and ten steps as on the CPU, sampled log-probs equal the trained ones, and the base model is unchanged`, async () => {
      const learn = async (device: Device) => {
        const weights = device.activations === "bf16" ? "bf16" : "f32"; // frozen, in the type that matmuls read
        const whole = tinyModel({ config: { ...SMALL, ...FAMILIES[family] }, deviation: 0.06, seed: "against" });
        const plain = createModel(device, whole.config, { trains: false, weights });
        for (const [i, { value }] of plain.tensors.entries())
          device.write(value, whole.device.read(whole.tensors[i]!.value) as Float32Array);
        whole.device.close();
        parametersChanged(plain);
        const model = addLora(plain, { r: 8, alpha: 16 }, { seed: 3 });
        const draw = random("adapters");
        const { values } = model.lora!.trained; // B too: with zeros A has no gradient
        device.write(
          values,
          Float32Array.from({ length: values.length }, () => draw.normal(0, 0.03)),
        );
        mergeLora(model);
        const engine = new LocalEngine(model, { reference: true });
        const untouched = await engine.logprobs(batch.slice(0, 3));
        const losses: number[] = [];
        let grads: Float32Array = new Float32Array();
        for (let step = 0; step < 10; step++) {
          losses.push((await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } })).loss);
          if (step === 0) grads = device.read(model.lora!.trained.grads) as Float32Array;
          await engine.optimStep({ learning_rate: 3e-4, max_grad_norm: 1 });
        }
        const reference = await engine.logprobs(batch.slice(0, 3), { weights: "reference" });
        const prompt = tokensOf(30, "adapted");
        const { tokens, logprobs } = await engine.sample({
          prompt,
          max_new_tokens: 24,
          stop_ids: [],
          key: ["adapted"],
        });
        const context = [...prompt, ...tokens];
        const [again] = await engine.logprobs([{ tokens: context, weights: [] }]);
        await engine.close();
        const apart = Math.max(...logprobs.map((logp, i) => Math.abs(logp - again![prompt.length + i]!)));
        return { untouched, reference, losses, grads, apart };
      };
      const [want, got] = [await learn(cpu()), await learn(make())];
      const off = distance(got.grads, want.grads);
      note(
        `${name}: adapters of a ${family}: gradients ${off.toExponential(1)}, sampled against learned ${got.apart.toExponential(1)}`,
      );
      note(`${name}: adapters of a ${family}: losses ${got.losses.map((loss) => loss.toFixed(4)).join(" ")}`);
      expect(off).toBeLessThanOrEqual(tolerances.gradient);
      expect(got.apart).toBeLessThanOrEqual(tolerances.logprob);
      expect(got.reference).toEqual(got.untouched);
      expect(want.losses.at(-1)!).toBeLessThan(want.losses[0]!);
      for (const [i, loss] of want.losses.entries())
        expect(Math.abs(got.losses[i]! / loss - 1), `step ${i}`).toBeLessThanOrEqual(3 * tolerances.loss);
    });
  }

  for (const family of families) {
    test(`${name}: sampled log-probs of a ${family} equal the recomputed ones, and the same key gives the same tokens`, async () => {
      const engine = engineOn(make(), family);
      const prompts = Array.from({ length: 9 }, (_, i) => tokensOf(5 + 7 * i, "prompt", i % 3));
      const run = () =>
        Promise.all(
          prompts.map((prompt, i) => engine.sample({ prompt, max_new_tokens: 20 + i, stop_ids: [3], key: ["k", i] })),
        );
      const samples = await run();
      engine.forgetCache();
      const again = await run();
      const data = prompts.map((prompt, i): Datum => {
        const tokens = [...prompt, ...samples[i]!.tokens];
        return { tokens, weights: tokens.map((_, at) => (at < prompt.length ? 0 : 1)) };
      });
      const computed = await engine.logprobs(data);
      let worst = 0;
      for (const [i, { logprobs }] of samples.entries()) {
        for (const [at, logp] of logprobs.entries()) {
          const off = Math.abs(logp - computed[i]![prompts[i]!.length + at]!);
          if (!(off <= worst)) worst = off;
        }
      }
      note(`${name}: ${family}: sampled against recomputed log-probs: at most ${worst.toExponential(1)} apart`);
      expect(worst).toBeLessThanOrEqual(tolerances.logprob);
      expect(again.map(({ tokens }) => tokens)).toEqual(samples.map(({ tokens }) => tokens));
      expect(again.map(({ logprobs }) => logprobs)).toEqual(samples.map(({ logprobs }) => logprobs));
      await engine.close();
    });
  }

  for (const family of families) {
    test(`${name}: two turns of forty samples of a ${family} in groups: log-probs equal the recomputed ones`, async () => {
      const engine = new LocalEngine(
        tinyModel({
          ...{
            device: make(),
            config: {
              ...{ ...SMALL, ...FAMILIES[family], hidden_size: 512 },
              ...{ head_dim: 128, max_position_embeddings: 512 },
            },
            deviation: 0.06,
            seed: "turns",
          },
        }),
      );
      let contexts = Array.from({ length: 40 }, (_, i) => tokensOf(300, "task", i >> 3));
      let [worst, sum, count] = [0, 0, 0];
      for (let turn = 0; turn < 2; turn++) {
        const samples = await Promise.all(
          contexts.map((prompt, i) => engine.sample({ prompt, max_new_tokens: 30, stop_ids: [], key: ["t", turn, i] })),
        );
        const whole = contexts.map((context, i) => [...context, ...samples[i]!.tokens]);
        const weights = whole.map((tokens, i) => tokens.map((_, at) => (at < contexts[i]!.length ? 0 : 1)));
        const computed = await engine.logprobs(whole.map((tokens, i): Datum => ({ tokens, weights: weights[i]! })));
        for (const [i, { logprobs }] of samples.entries()) {
          for (const [at, logp] of logprobs.entries()) {
            const off = Math.abs(logp - computed[i]![contexts[i]!.length + at]!);
            if (!(off <= worst)) worst = off;
            sum += off;
            count++;
          }
        }
        contexts = whole.map((tokens, i) => [...tokens, ...tokensOf(9, "told", turn, i)]);
      }
      const mean = sum / count;
      note(
        `${name}: ${family}: ${count} tokens of two turns: log-probs ${mean.toExponential(1)} apart, at most ${worst.toExponential(1)}`,
      );
      expect(mean).toBeLessThanOrEqual(tolerances.logprob / 4);
      expect(worst).toBeLessThanOrEqual(2 * tolerances.logprob); // of 2,400
      await engine.close();
    });
  }

  for (const family of families) {
    test(`${name}: padded batches of a ${family} with long or growing contexts: log-probs equal the recomputed ones, deterministically`, async () => {
      const config = {
        ...{ ...SMALL, ...FAMILIES[family], hidden_size: 512, max_position_embeddings: 2048 },
        ...(family === "qwen2"
          ? { num_attention_heads: 12, num_key_value_heads: 2, head_dim: 128 }
          : { num_attention_heads: 16, num_key_value_heads: 8, head_dim: family === "llama3" ? 64 : 128 }),
      };
      const engine = new LocalEngine(tinyModel({ device: make(), config, deviation: 0.06, seed: "filled up" }));
      for (const [count, length, max_new_tokens] of [
        [20, 300, 110], // padded to 24, sharing table rebuilt three times
        [1, 1500, 40], // several blocks for one row
        [3, 1500, 40],
      ] as const) {
        const prompts = Array.from({ length: count }, (_, i) => tokensOf(length, "filled", i >> 3));
        const sampled = async () => {
          engine.forgetCache();
          return Promise.all(
            prompts.map((prompt, i) => engine.sample({ prompt, max_new_tokens, stop_ids: [], key: ["filled", i] })),
          );
        };
        const [once, again] = [await sampled(), await sampled()];
        const said = (samples: typeof once) => samples.map(({ tokens, logprobs }) => ({ tokens, logprobs }));
        expect(said(again)).toEqual(said(once));
        const whole = prompts.map((prompt, i): Datum => {
          const tokens = [...prompt, ...once[i]!.tokens];
          return { tokens, weights: tokens.map((_, at) => (at < length ? 0 : 1)) };
        });
        const computed = await engine.logprobs(whole);
        const off = once.flatMap(({ logprobs }, i) =>
          logprobs.map((logp, at) => Math.abs(logp - computed[i]![length + at]!)),
        );
        const mean = off.reduce((sum, each) => sum + each, 0) / off.length;
        note(
          `${name}: ${family}: ${count} of ${length}: ${mean.toExponential(1)} apart, at most ${Math.max(...off).toExponential(1)}`,
        );
        // Without norms of queries and keys, scores and therefore their bf16 rounding errors are larger.
        expect(mean).toBeLessThanOrEqual(tolerances.logprob / (family === "llama3" ? 2 : 4));
        expect(Math.max(...off)).toBeLessThanOrEqual(2 * tolerances.logprob);
      }
      await engine.close();
    });
  }

  test(`${name}: every kernel is deterministic`, () => {
    const [first, second] = [on(make, everyKernel), on(make, everyKernel)];
    const bits = (values: Float32Array | Int32Array) =>
      new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const different = [...first].filter(
      ([kernel, values]) => !Buffer.from(bits(values)).equals(bits(second.get(kernel)!)),
    );
    expect(different.map(([kernel]) => kernel)).toEqual([]);
  });
}

function tokensOf(length: number, ...key: readonly (string | number)[]): number[] {
  const r = random("against", ...key);
  return Array.from({ length }, () => r.int(4, 996));
}

/** Groups of four with a shared prompt, and some alone. */
function groups(): Datum[] {
  return Array.from({ length: 14 }, (_, i) => {
    const prompt = i < 12 ? tokensOf(40, "shared", i >> 2) : [];
    const tokens = [...prompt, ...tokensOf(10 + 13 * (i % 4), "own", i)];
    return { tokens, weights: tokens.map((_, at) => (at <= prompt.length ? 0 : 1)) };
  });
}

/** Errors of a device's matmuls against double precision on the same rounded numbers. */
function fewRows(device: Device, rows: number, n: number, k: number): Record<string, number> {
  return device.scope(() => {
    const b = new Bench(device, { forward: 0, backward: 0, optimizer: 0 });
    const r = random("few rows", rows, n, k);
    const A = device.activations;
    const rounded = (data: Float32Array) => device.read(b.floats(data, A)) as Float32Array;
    const [x, values, before] = [
      rounded(b.normal(r, rows * k)),
      rounded(b.normal(r, n * k, 0.05)),
      b.normal(r, rows * n),
    ];
    const weight = { name: "weight", rows: n, columns: k, value: b.floats(values), grad: null };
    const onDevice = b.floats(x, A);
    const want = linear(x, values, n, k);
    const [plain, float, gated, stream] = [
      b.empty(rows * n, A),
      b.empty(rows * n),
      b.empty((rows * n) / 2, A),
      b.floats(before),
    ];
    device.linear(weight, onDevice, plain, rows);
    device.linear(weight, onDevice, float, rows);
    const read = (buffer: Parameters<Device["read"]>[0]) => device.read(buffer);
    const off: Record<string, number> = { plain: distance(read(plain), want), float: distance(read(float), want) };
    if (device.linearSwiGlu?.(weight, onDevice, gated, rows)) off.gated = distance(read(gated), swiGlu(want, n / 2));
    const scale = { name: "scale", value: b.floats(b.normal(r, k, 0.3).map((factor) => 1 + factor)), grad: null };
    const [normed, normedGated] = [b.empty(rows * n, A), b.empty((rows * n) / 2, A)];
    const wide = b.floats(x.map((value) => 3 * value));
    if (device.linearNormed?.({ weight, x: wide, scale, eps: 1e-6, out: normed, rows })) {
      const factors = device.read(scale.value);
      const normal = Float32Array.from({ length: rows * k }, (_, i) => {
        const row = x.subarray(i - (i % k), i - (i % k) + k);
        const rms = Math.sqrt(row.reduce((sum, value) => sum + 9 * value * value, 0) / k + 1e-6);
        return ((3 * x[i]!) / rms) * factors[i % k]!;
      });
      const wanted = linear(normal, values, n, k);
      off.normed = distance(read(normed), wanted);
      device.linearNormed({ weight, x: wide, scale, eps: 1e-6, out: normedGated, rows, isGated: true });
      off.normedGated = distance(read(normedGated), swiGlu(wanted, n / 2));
    }
    if (device.linearAdd?.(weight, onDevice, stream, rows)) {
      off.added = distance(
        read(stream),
        want.map((value, i) => value + before[i]!),
      );
    }
    return off;
  });
}

/** What is done to heads before their rotary positions. */
type Vectors = "norms" | "bias" | "neither";

function vectorsOf(b: Bench, { heads, kvHeads, headDim }: HeadShape, vectors: Vectors, r: ReturnType<typeof random>) {
  return {
    norms: vectors === "norms" ? { q: b.scale(headDim, r).on, k: b.scale(headDim, r).on } : null,
    bias: vectors === "bias" ? b.scale((heads + 2 * kvHeads) * headDim, r).on : null,
  };
}

/** Errors of `rotateAttend` against the kernels it replaces, on a batch with shared prompts; empty if the device lacks it. */
function nextTokens(device: Device, shape: HeadShape, vectors: Vectors): Record<string, number> {
  return device.scope(() => {
    const b = new Bench(device, { forward: 0, backward: 0, optimizer: 0 });
    const { heads, kvHeads, headDim } = shape;
    const r = random("next tokens", heads, headDim);
    const A = device.activations;
    const unit = 2 * kvHeads * headDim;
    let stored = 0;
    const blockOf = (capacity: number) => {
      stored += capacity * unit;
      return { block: stored - capacity * unit, capacity };
    };
    const first = { ...blockOf(200), tokens: 197, row: 0 };
    const seconds = [0, 1, 2].map((i) => ({ ...blockOf(104), tokens: 100 - i, row: 0 }));
    const news: NewTokens[] = Array.from({ length: 41 }, (_, i) => ({
      ...{ own: blockOf(80), start: (7 * i) % 79, count: 1 },
      ancestors: i === 40 ? [] : [{ ...first, tokens: first.tokens - (i % 2) }, seconds[(i >> 1) % 3]!],
    }));
    const layout = layoutOf(device, news, [0]);
    const rows = layout.tokens;
    const [spans, ranges] = [device.read(layout.spans), device.read(layout.ranges)] as Int32Array[];
    const table = device.decoding?.sharing;
    if (!table) return {};
    const words = new Int32Array(table.length(rows, shape));
    table.fill(words, rows, spans!, ranges!, shape);
    const sharing = device.alloc("i32", words.length);
    device.write(sharing, words);
    const qkv = b.floats(b.normal(r, rows * (heads + 2 * kvHeads) * headDim), A);
    const kvCaches = [b.normal(r, stored)].flatMap((data) => [b.floats(data, A), b.floats(data, A)]);
    const { norms, bias } = vectorsOf(b, shape, vectors, r);
    const rotary = b.rotary(layout.maxContext, headDim, angleOf(headDim));
    const [q, want, got] = [0, 0, 0].map(() => b.empty(rows * heads * headDim, A));
    device.rotate({
      qkv,
      norms,
      q: q!,
      rstd: b.empty(rows * (heads + kvHeads)),
      kvCache: kvCaches[0]!,
      layout,
      rotary,
      shape,
      bias,
    });
    device.attention({ q: q!, kvCache: kvCaches[0]!, out: want!, lse: null, layout, shape });
    const next = () =>
      device.rotateAttend?.({
        qkv,
        norms,
        kvCache: kvCaches[1]!,
        out: got!,
        layout: { ...layout, sharing },
        rotary,
        shape,
        bias,
      });
    if (!next()) return {};
    next(); // again, with the counters and keys left by the first launch
    const read = (buffer: Parameters<Device["read"]>[0]) => device.read(buffer);
    return { out: distance(read(got!), read(want!)), kvCache: distance(read(kvCaches[1]!), read(kvCaches[0]!)) };
  });
}

function attend(
  device: Device,
  runs: ReturnType<typeof tree>,
  shape: HeadShape,
  vectors: Vectors,
): Record<string, Float32Array> {
  return device.scope(() => {
    const b = new Bench(device, { forward: 0, backward: 0, optimizer: 0 });
    const r = random("attend", shape.heads, shape.headDim);
    const { heads, kvHeads, headDim } = shape;
    const A = device.activations;
    const { layout, kvLength } = forestLayout(device, runs, shape);
    const T = layout.tokens;
    const width = (heads + 2 * kvHeads) * headDim;
    const qkv = b.floats(b.normal(r, T * width), A);
    const { norms, bias } = vectorsOf(b, shape, vectors, r);
    const rotary = b.rotary(layout.maxContext, headDim, angleOf(headDim));
    const [q, kvCache, out] = [b.empty(T * heads * headDim, A), b.empty(kvLength, A), b.empty(T * heads * headDim, A)];
    const [rstd, lse] = [b.empty(T * (heads + kvHeads)), b.empty(T * heads)];
    device.rotate({ qkv, norms, q, rstd, kvCache, layout, rotary, shape, bias });
    device.attention({ q, kvCache, out, lse, layout, shape });
    const dqkv = b.floats(new Float32Array(T * width), A);
    device.attentionBackward({
      q,
      kvCache,
      out,
      dOut: b.floats(b.normal(r, T * heads * headDim), A),
      lse,
      dqkv,
      layout,
      shape,
    });
    const read = (buffer: Parameters<Device["read"]>[0]) => device.read(buffer) as Float32Array;
    const dTurned = read(dqkv);
    device.rotateBackward({ dqkv, qkv, norms, rstd, layout, rotary, shape, bias });
    return {
      ...{ q: read(q), out: read(out), lse: read(lse), dTurned, dqkv: read(dqkv) },
      ...(norms && { dq: read(norms.q.grad!), dk: read(norms.k.grad!) }),
      ...(bias && { dBias: read(bias.grad!) }),
    };
  });
}
