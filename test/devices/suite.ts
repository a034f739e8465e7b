// What every device must compute: each kernel forward against reference.ts, each backward against central
// differences of it. Only the Device interface is used. The interface requires rows of activations (columns of a weight) in
// multiples of eight and head sizes too; numbers of tokens and of a weight's rows are free, and vary around tile edges here.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device, HeadShape } from "../../src/lm/devices/index.ts";
import { forestLayout, type Span } from "../../src/lm/model/layout.ts";
import { random } from "../../src/random.ts";
import { angleOf, Bench, dot, type Tolerances, tree } from "./bench.ts";
import * as reference from "./reference.ts";

const COUNTS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33] as const;
const EPS = 1e-6;

/** Runs the suite on a new device. */
export function deviceSuite(name: string, makeDevice: () => Device, tolerances: Tolerances): void {
  describe(name, () => {
    let device: Device;
    let bench: Bench;
    beforeAll(() => {
      device = makeDevice();
      bench = new Bench(device, tolerances);
    });
    afterAll(() => device.close());

    test("memory: reads return what was written, slices are views, copies are not", () => {
      device.scope(() => {
        const floats = bench.floats(Float32Array.of(1, 2, 3, 4, 5, 6, 7, 8));
        const ints = bench.ints([-1, 2 ** 31 - 1, 7]);
        expect([...device.read(ints)]).toEqual([-1, 2 ** 31 - 1, 7]);
        device.fill(device.part(floats, 2, 3), 9);
        const copy = device.alloc("f32", 8);
        device.copy(floats, copy);
        device.write(device.part(floats, 0, 1), Float32Array.of(-5));
        expect([...device.read(floats)]).toEqual([-5, 2, 9, 9, 9, 6, 7, 8]);
        expect([...device.read(device.part(copy, 0, 3))]).toEqual([1, 2, 9]);
        expect(() => device.write(ints, new Int32Array(4))).toThrow(RangeError);
      });
    });

    test.each(COUNTS)("embed, gather, scatterAdd, addTo and their sums over equal ids: %i rows", (rows) => {
      const r = random("embed", rows);
      const [vocabulary, width] = [5, 24];
      bench.run((b) => {
        const weight = b.weight(vocabulary, width, r);
        const ids = Array.from({ length: rows }, () => r.int(0, vocabulary - 1));
        const out = b.empty(rows * width);
        device.embed(weight.on, b.ints(ids), out, rows);
        const picked = ids.flatMap((id) => [...weight.value.subarray(id * width, (id + 1) * width)]);
        expect([...device.read(out)]).toEqual(picked);
        device.gather(weight.on.value, b.ints(ids), out, rows, width);
        expect([...device.read(out)]).toEqual(picked);

        const dOut = b.normal(r, rows * width);
        const sums = Float64Array.from(weight.grad);
        dOut.forEach((g, i) => {
          sums[ids[Math.floor(i / width)]! * width + (i % width)]! += g;
        });
        device.embedBackward(weight.on, b.ints(ids), b.floats(dOut), rows);
        b.near(weight.on.grad!, sums, tolerances.backward);
        const target = b.floats(weight.grad);
        device.scatterAdd(b.floats(dOut), b.ints(ids), target, rows, width);
        b.near(target, sums, tolerances.backward);
        device.addTo(b.floats(weight.grad), target);
        b.near(
          target,
          sums.map((sum, i) => sum + weight.grad[i]!),
          tolerances.backward,
        );
      });
    });

    const MATMULS: [rows: number, n: number, k: number][] = [
      ...COUNTS.map((rows): [number, number, number] => [rows, 13, 24]),
      ...COUNTS.map((n): [number, number, number] => [5, n, 40]),
      ...[8, 16, 56].map((k): [number, number, number] => [9, 10, k]),
      [150, 47, 72],
    ];
    test.each(MATMULS)("linear and its backward: %i rows, weight %i by %i", (rows, n, k) => {
      const r = random("linear", rows, n, k);
      bench.run((b) => {
        const weight = b.weight(n, k, r);
        const x = b.normal(r, rows * k);
        const stride = device.outStride(weight.on);
        expect(stride).toBeGreaterThanOrEqual(n);
        const out = b.empty(rows * stride);
        device.linear(weight.on, b.floats(x), out, rows);
        b.nearRows(out, stride, reference.linear(x, weight.value, n, k), n, tolerances.forward);

        const c = b.normal(r, rows * n);
        const dy = b.rows(c, n, stride);
        const dx = b.empty(rows * k);
        device.linearBackward({ weight: weight.on, x: b.floats(x), dy, dx, rows });
        b.gradient(dx, x, (at) => dot(reference.linear(at, weight.value, n, k), c), r);
        b.gradient(weight.on.grad!, weight.value, (at) => dot(reference.linear(x, at, n, k), c), r, weight.grad);
        const first = device.read(dx);
        device.linearBackward({ weight: weight.on, x: b.floats(x), dy, dx, rows, add: true });
        b.near(
          dx,
          Float64Array.from(first, (g) => 2 * g),
          tolerances.backward,
        );

        // Changed weights are used after `changed`, forward and backward.
        const other = b.normal(r, n * k);
        device.write(weight.on.value, other);
        device.changed(weight.on);
        device.linear(weight.on, b.floats(x), out, rows);
        b.nearRows(out, stride, reference.linear(x, other, n, k), n, tolerances.forward);
        device.linearBackward({ weight: weight.on, x: b.floats(x), dy, dx, rows });
        b.gradient(dx, x, (at) => dot(reference.linear(at, other, n, k), c), r);
        device.linearBackward({ weight: { ...weight.on, grad: null }, x: b.floats(x), dy, dx: null, rows }); // nothing to do
      });
    });

    test.each([...COUNTS, 150])("rmsNorm with and without residual, and its backward: %i rows", (rows) => {
      const r = random("norm", rows);
      for (const width of [8, 24, 40]) {
        for (const hasResidual of [false, true]) {
          bench.run((b) => {
            const scale = b.scale(width, r);
            const x = b.normal(r, rows * width);
            const residual = b.normal(r, rows * width);
            const sum = hasResidual ? x.map((value, i) => Math.fround(value + residual[i]!)) : x;
            const xBuffer = b.floats(x);
            const [out, rstd] = [b.empty(rows * width), b.empty(rows)];
            device.rmsNorm({
              x: xBuffer,
              residual: hasResidual ? b.floats(residual) : null,
              scale: scale.on,
              out,
              rstd,
              rows,
              eps: EPS,
            });
            const want = reference.rmsNorm(sum, scale.value, EPS);
            b.near(xBuffer, Float64Array.from(sum), tolerances.forward);
            b.near(out, want.out, tolerances.forward);
            b.near(rstd, want.rstd, tolerances.forward);

            const c = b.normal(r, rows * width);
            const before = b.normal(r, rows * width);
            const dx = b.floats(before);
            device.rmsNormBackward({ x: xBuffer, scale: scale.on, rstd, dOut: b.floats(c), dx, rows });
            b.gradient(dx, sum, (at) => dot(reference.rmsNorm(at, scale.value, EPS).out, c), r, before);
            const byScale = (at: Float64Array) => dot(reference.rmsNorm(sum, at, EPS).out, c);
            b.gradient(scale.on.grad!, scale.value, byScale, r, scale.grad);
          });
        }
      }
    });

    test.each([...COUNTS, 150])("swiGlu and its backward: %i rows", (rows) => {
      const r = random("swiglu", rows);
      for (const width of [8, 40]) {
        bench.run((b) => {
          const gateUp = b.normal(r, rows * 2 * width, 3);
          for (const [i, extreme] of [-100, 100, -30, 30, 0, -0].entries()) gateUp[i] = extreme;
          const out = b.empty(rows * width);
          device.swiGlu(b.floats(gateUp), out, rows, width);
          b.near(out, reference.swiGlu(gateUp, width), tolerances.forward);
          const c = b.normal(r, rows * width);
          const dGateUp = b.empty(rows * 2 * width);
          device.swiGluBackward(b.floats(gateUp), b.floats(c), dGateUp, rows, width);
          b.gradient(dGateUp, gateUp, (at) => dot(reference.swiGlu(at, width), c), r);
        });
      }
    });

    const TREES: [name: string, runs: readonly Span[]][] = [
      ["one token", tree([1, null])],
      ...COUNTS.slice(1).map((n): [string, Span[]] => [`a sequence of ${n}`, tree([n, null])]),
      ["a sequence of 41", tree([41, null])],
      ["three sequences", tree([5, null], [1, null], [33, null])],
      ["a prompt and its completions", tree([9, null], [3, 0], [1, 0], [12, 0])],
      ["a prompt that fills its panels", tree([16, null], [8, 0], [1, 0])],
      ["depth three", tree([7, null], [5, 0], [2, 1], [9, 1], [4, 0], [1, 4], [3, 4])],
      ["two trees and a sequence", tree([3, null], [6, 0], [6, 0], [11, null], [10, null], [34, 4], [2, 4])],
    ];
    const SHAPES: [heads: number, kvHeads: number, headDim: number, vectors: "norms" | "bias" | "neither"][] = [
      [2, 2, 8, "norms"],
      [4, 2, 16, "bias"],
      [3, 1, 8, "norms"],
      [4, 1, 24, "norms"],
      [5, 1, 8, "neither"],
    ];
    describe.each(SHAPES)("%i heads on %i of %i, norms or bias: %s:", (heads, kvHeads, headDim, vectors) => {
      const normed = vectors === "norms";
      const shape: HeadShape = { heads, kvHeads, headDim, eps: EPS };
      const width = (heads + 2 * kvHeads) * headDim;

      test.each(TREES)("rotate, attention and backward: %s", (label, runs) => {
        const r = random("attention", label, ...Object.values(shape));
        const contexts = reference.contextsOf(runs);
        const positions = contexts.map((context) => context.length - 1);
        const rows = contexts.length;
        bench.run((b) => {
          const qkv = b.normal(r, rows * width);
          const [qScale, kScale] = [b.scale(headDim, r), b.scale(headDim, r)];
          const norms = normed ? { q: qScale.value, k: kScale.value } : null;
          const onDevice = normed ? { q: qScale.on, k: kScale.on } : null;
          const bias = vectors === "bias" ? b.scale(width, r) : null;
          const rotary = b.rotary(Math.max(...positions) + 1, headDim, angleOf(headDim));
          const { layout, kvLength } = forestLayout(device, runs, shape);
          const kvCache = b.empty(kvLength);
          const [q, rstd] = [b.empty(rows * heads * headDim), b.empty(rows * (heads + kvHeads))];
          const qkvBuffer = b.floats(qkv);
          device.rotate({ qkv: qkvBuffer, norms: onDevice, q, rstd, kvCache, layout, rotary, shape, bias: bias?.on });
          const rotated = reference.rotate(qkv, norms, positions, angleOf(headDim), shape, bias?.value);
          const queries = Float64Array.from({ length: rows * heads * headDim }, (_, i) => {
            const t = Math.floor(i / (heads * headDim));
            return rotated[t * width + (i % (heads * headDim))]!;
          });
          b.near(q, queries, tolerances.forward);
          const [out, lse] = [b.empty(rows * heads * headDim), b.empty(rows * heads)];
          device.attention({ q, kvCache, out, lse, layout, shape });
          b.near(out, reference.attention(rotated, contexts, shape), tolerances.forward);

          const c = b.normal(r, rows * heads * headDim);
          const dqkv = b.floats(new Float32Array(rows * width));
          device.attentionBackward({ q, kvCache, out, dOut: b.floats(c), lse, dqkv, layout, shape });
          // The gradient of the rotated rows, then of their inputs.
          b.gradient(dqkv, rotated, (at) => dot(reference.attention(at, contexts, shape), c), r, undefined, 0.1);
          device.rotateBackward({ dqkv, qkv: qkvBuffer, norms: onDevice, rstd, layout, rotary, shape, bias: bias?.on });
          const through = (
            from: ArrayLike<number>,
            scales: Record<"q" | "k", ArrayLike<number>> | null,
            added: ArrayLike<number> | undefined = bias?.value,
          ) => {
            const rows = reference.rotate(from, scales, positions, angleOf(headDim), shape, added);
            return dot(reference.attention(rows, contexts, shape), c);
          };
          b.gradient(dqkv, qkv, (at) => through(at, norms), r, undefined, 0.1);
          if (bias) b.gradient(bias.on.grad!, bias.value, (at) => through(qkv, null, at), r, bias.grad, 1);
          if (!norms) return;
          b.gradient(qScale.on.grad!, qScale.value, (at) => through(qkv, { ...norms, q: at }), r, qScale.grad, 1);
          b.gradient(kScale.on.grad!, kScale.value, (at) => through(qkv, { ...norms, k: at }), r, kScale.grad, 1);
        });
      });
    });

    test("attention stays exact with scores far apart", () => {
      const r = random("far");
      const shape: HeadShape = { heads: 2, kvHeads: 1, headDim: 8, eps: EPS };
      const runs = tree([20, null]);
      bench.run((b) => {
        const qkv = b.normal(r, 20 * 32, 12);
        const { layout, kvLength } = forestLayout(device, runs, shape);
        const [q, rstd, kvCache] = [b.empty(20 * 16), b.empty(20 * 3), b.empty(kvLength)];
        device.rotate({
          qkv: b.floats(qkv),
          norms: null,
          q,
          rstd,
          kvCache,
          layout,
          rotary: b.rotary(20, 8, angleOf(8)),
          shape,
        });
        const [out, lse] = [b.empty(20 * 16), b.empty(20 * 2)];
        device.attention({ q, kvCache, out, lse, layout, shape });
        const contexts = reference.contextsOf(runs);
        const positions = contexts.map((context) => context.length - 1);
        const rotated = reference.rotate(qkv, null, positions, angleOf(8), shape);
        b.near(out, reference.attention(rotated, contexts, shape), 10 * tolerances.forward); // scores of hundreds
      });
    });

    const HEADS: [rows: number, vocabulary: number, temperature: number][] = [
      ...COUNTS.map((rows): [number, number, number] => [rows, 37, 0.8]),
      ...COUNTS.slice(1).map((vocabulary): [number, number, number] => [3, vocabulary, 1]),
      [40, 131, 1.3],
    ];
    test.each(HEADS)(
      "logProbs and its backward: %i rows, vocabulary %i, temperature %d",
      (rows, vocabulary, temperature) => {
        const r = random("head", rows, vocabulary);
        const k = 16;
        bench.run((b) => {
          const head = b.weight(vocabulary, k, r);
          const x = b.normal(r, rows * k);
          const targets = Array.from({ length: rows }, () => r.int(0, vocabulary - 1));
          const out = { logp: b.empty(rows), entropy: b.empty(rows), lse: b.empty(rows) };
          device.logProbs({ head: head.on, x: b.floats(x), targets: b.ints(targets), temperature, rows, out });
          const of = (from: ArrayLike<number>, weight: ArrayLike<number>) =>
            reference.logProbs(reference.linear(from, weight, vocabulary, k), vocabulary, targets, temperature);
          const want = of(x, head.value);
          b.near(out.logp, want.logp, tolerances.forward);
          b.near(out.entropy, want.entropy, tolerances.forward, 1);

          const [dLogp, dEntropy] = [b.normal(r, rows), b.normal(r, rows)];
          const dx = b.empty(rows * k);
          device.logProbsBackward({
            head: head.on,
            x: b.floats(x),
            targets: b.ints(targets),
            temperature,
            rows,
            saved: out,
            dLogp: b.floats(dLogp),
            dEntropy: b.floats(dEntropy),
            dx,
          });
          const loss = (from: ArrayLike<number>, weight: ArrayLike<number>) => {
            const { logp, entropy } = of(from, weight);
            return dot(logp, dLogp) + dot(entropy, dEntropy);
          };
          b.gradient(dx, x, (at) => loss(at, head.value), r, undefined, 1);
          b.gradient(head.on.grad!, head.value, (at) => loss(x, at), r, head.grad, 1);
        });
      },
    );

    test.each([1, 5, 8, 33, 131])(
      "sample takes the token whose cumulative probability interval contains the number: vocabulary %i",
      (vocabulary) => {
        const r = random("sample", vocabulary);
        const stride = (vocabulary + 7) & ~7;
        const temperatures = [0.3, 0.8, 1, 1.7];
        const uniforms = [0, 1e-3, 0.25, 0.5, 0.75, 0.999, 1 - 2 ** -24, ...Array.from({ length: 12 }, () => r.next())];
        bench.run((b) => {
          const logits = b.normal(r, vocabulary, 2);
          const cases = temperatures.flatMap((temperature) => uniforms.map((uniform) => ({ temperature, uniform })));
          const rows = cases.length;
          const all = Float32Array.from({ length: rows * vocabulary }, (_, i) => logits[i % vocabulary]!);
          const drawn = b.sample(all, vocabulary, stride, cases);
          for (const [i, { temperature, uniform }] of cases.entries()) {
            const line = reference.cumulative(logits, Math.fround(temperature));
            const token = drawn.tokens[i]!;
            expect(uniform).toBeGreaterThanOrEqual((line[token - 1] ?? 0) - tolerances.forward);
            expect(uniform).toBeLessThanOrEqual(line[token]! + tolerances.forward);
            const want = Math.log(line[token]! - (line[token - 1] ?? 0));
            if (want > -8) expect(Math.abs(drawn.logp[i]! - want)).toBeLessThan(100 * tolerances.forward);
          }
        });
      },
    );

    test("sample at temperature 0 takes the first most likely token, with its log-prob at temperature 1", () => {
      bench.run((b) => {
        const rows = [
          [0, 3, 1, 3, -1],
          [5, 3, 1, 3, 5],
          [-9, -8, -7, -6, -5],
        ];
        const cases = rows.map(() => ({ temperature: 0, uniform: 0.99 }));
        const { tokens, logp } = b.sample(Float32Array.from(rows.flat()), 5, 8, cases);
        expect([...tokens]).toEqual([1, 0, 4]);
        const want = reference.logProbs(rows.flat(), 5, [1, 0, 4], 1).logp;
        for (const [i, value] of want.entries())
          expect(Math.abs(logp[i]! - value)).toBeLessThan(tolerances.forward * 10);
      });
    });

    test("sample never takes a token of probability 0, nor one beyond the vocabulary", () => {
      bench.run((b) => {
        const row = [-300, 0, -300, 0.5, -300];
        const cases = [0, 0.3, 0.6, 1 - 2 ** -24].map((uniform) => ({ temperature: 1, uniform }));
        const { tokens } = b.sample(Float32Array.from(cases.flatMap(() => row)), 5, 8, cases);
        expect([...tokens]).toEqual([1, 1, 3, 3]);
        // Also if a sum in another order is below the number.
        const r = random("short");
        const vocabulary = 997;
        const logits = b.normal(r, 40 * vocabulary, 2).map((logit, i) => (i % vocabulary > 990 ? -300 : logit));
        const ends = Array.from({ length: 40 }, () => ({ temperature: 1, uniform: 1 - 2 ** -24 }));
        expect(Math.max(...b.sample(logits, vocabulary, 1_000, ends).tokens)).toBeLessThanOrEqual(990);
      });
    });

    test.each([16, 48, 1040])("adamW is PyTorch's, step after step: %i numbers", (length) => {
      const r = random("adam", length);
      bench.run((b) => {
        const value = b.normal(r, length);
        const zeros = () => b.floats(new Float32Array(length));
        const on = { value: b.floats(value), m: zeros(), v: zeros() };
        const state = { value: Float64Array.from(value), m: new Float64Array(length), v: new Float64Array(length) };
        for (const beta2 of [0.999, 0.95]) {
          for (let step = 1; step <= 5; step++) {
            const options = { learning_rate: 0.1, beta1: 0.9, beta2, eps: 1e-8, weight_decay: 0.02, step };
            const grad = b.normal(r, length, 10 ** -step);
            const clipped = { ...options, gradient_scale: step % 2 ? 1 : 0.25 };
            device.adamW(on.value, b.floats(grad), on.m, on.v, clipped);
            reference.adamW(state, grad, clipped);
            b.near(on.m, state.m, tolerances.optimizer);
            b.near(on.v, state.v, tolerances.optimizer);
            b.near(on.value, state.value, tolerances.optimizer);
          }
        }
      });
    });

    test.each([4, 64, 1000, 16_384, 16_388, 50_000])("sumSquares of %i numbers", (length) => {
      const x = bench.normal(random("squares", length), length);
      device.scope(() => {
        const want = dot(x, x);
        expect(Math.abs(device.sumSquares(bench.floats(x)) / want - 1)).toBeLessThan(tolerances.forward);
      });
    });

    test("NaN propagates", () => {
      bench.run((b) => {
        const r = random("nan");
        const head = b.weight(9, 8, r);
        const x = b.normal(r, 8);
        x[3] = Number.NaN;
        const out = { logp: b.empty(1), entropy: b.empty(1), lse: b.empty(1) };
        device.fill(out.logp, 0);
        device.logProbs({ head: head.on, x: b.floats(x), targets: b.ints([2]), temperature: 1, rows: 1, out });
        expect(device.read(out.logp)[0]).toBeNaN();
        expect(device.sumSquares(b.floats(x))).toBeNaN();
        const swished = b.floats(new Float32Array(8));
        device.swiGlu(b.floats(Float32Array.of(...x, ...x)), swished, 1, 8);
        expect(device.read(swished)[3]).toBeNaN();
      });
    });
  });
}
