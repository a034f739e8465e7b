// Runs every kernel once on the same numbers, to compare two devices, or one device with different threads.
import type { Buffer, Device, HeadShape } from "../../src/lm/devices/index.ts";
import { forestLayout } from "../../src/lm/model/layout.ts";
import { random } from "../../src/random.ts";
import { angleOf, Bench, tree } from "./bench.ts";

type Results = Map<string, Float32Array | Int32Array>;

/** Results of every kernel by name, with few rows and with many. */
export function everyKernel(device: Device): Results {
  const results: Results = new Map();
  for (const scale of [1, 9]) {
    device.scope(() => {
      for (const [name, buffer] of Object.entries(run(device, scale))) {
        results.set(`${name}, ${scale === 1 ? "few" : "many"} rows`, device.read(buffer));
      }
    });
  }
  const b = new Bench(device, { forward: 0, backward: 0, optimizer: 0 });
  const x = b.normal(random("every squares"), 100_000);
  results.set("sumSquares", Float32Array.of(device.scope(() => device.sumSquares(b.floats(x)))));
  return results;
}

function run(device: Device, scale: number): Record<string, Buffer> {
  const r = random("every", scale);
  const b = new Bench(device, { forward: 0, backward: 0, optimizer: 0 });
  const shape: HeadShape = { heads: 6, kvHeads: 2, headDim: 16, eps: 1e-6 };
  const runs = tree([5 * scale, null], [4 * scale, 0], [3 * scale, 0], [2 * scale, 1], [scale, 1], [3 * scale, null]);
  const { layout, kvLength } = forestLayout(device, runs, shape);
  const T = layout.tokens;
  const [D, V, H, G, d] = [40, 133, shape.heads, shape.kvHeads, shape.headDim];
  const width = (H + 2 * G) * d;
  const A = device.activations;
  const out: Record<string, Buffer> = {};
  const ids = b.ints(Array.from({ length: T }, () => r.int(0, V - 1)));

  const embedding = b.weight(V, D, r).on;
  out.embed = b.empty(T * D);
  device.embed(embedding, ids, out.embed, T);
  const norm = b.scale(D, r).on;
  const [rstd, residual] = [b.empty(T), b.floats(b.normal(r, T * D), A)];
  out.rmsNorm = b.empty(T * D, A);
  device.rmsNorm({ x: out.embed, residual, scale: norm, out: out.rmsNorm, rstd, rows: T, eps: 1e-6 });
  const qkvWeight = b.weight(width, D, r).on;
  out.linear = b.empty(T * width, A);
  device.linear(qkvWeight, out.rmsNorm, out.linear, T);
  const norms = { q: b.scale(d, r).on, k: b.scale(d, r).on };
  const rotary = b.rotary(layout.maxContext, d, angleOf(d));
  const [kvCache, headRstd, lse] = [b.empty(kvLength, A), b.empty(T * (H + G)), b.empty(T * H)];
  out.rotate = b.empty(T * H * d, A);
  device.rotate({ qkv: out.linear, norms, q: out.rotate, rstd: headRstd, kvCache, layout, rotary, shape });
  const bias = b.scale(width, random("every bias", scale)).on;
  const biasedCache = b.floats(new Float32Array(kvLength), A); // capacities are rounded up, so the last rows stay unwritten
  out["rotate, bias"] = b.empty(T * H * d, A);
  const spare = b.empty(T * (H + G));
  device.rotate({
    qkv: out.linear,
    norms: null,
    q: out["rotate, bias"],
    rstd: spare,
    kvCache: biasedCache,
    layout,
    rotary,
    shape,
    bias,
  });
  out["attention, bias"] = b.empty(T * H * d, A); // KV cache layouts differ between devices: compared by what attention reads from it
  device.attention({
    q: out["rotate, bias"],
    kvCache: biasedCache,
    out: out["attention, bias"],
    lse: null,
    layout,
    shape,
  });
  out.attention = b.empty(T * H * d, A);
  device.attention({ q: out.rotate, kvCache, out: out.attention, lse, layout, shape });

  if (device.moveBlock) {
    out.moveBlock = b.floats(b.normal(random("every move", scale), 2 * kvLength), A);
    const capacity = (runs[0]!.tokens.length + 7) & ~7;
    device.moveBlock(
      out.moveBlock,
      { block: 0, capacity },
      { block: kvLength, capacity: capacity + 8 },
      5 * scale,
      shape,
    );
  }

  const dOut = b.floats(b.normal(r, T * H * d), A);
  out.attentionBackward = b.floats(new Float32Array(T * width), A);
  device.attentionBackward({
    q: out.rotate,
    kvCache,
    out: out.attention,
    dOut,
    lse,
    dqkv: out.attentionBackward,
    layout,
    shape,
  });
  out.rotateBackward = device.alloc(A, T * width);
  device.copy(out.attentionBackward, out.rotateBackward);
  device.rotateBackward({ dqkv: out.rotateBackward, qkv: out.linear, norms, rstd: headRstd, layout, rotary, shape });
  const dBiased = device.alloc(A, T * width);
  device.copy(out.attentionBackward, dBiased);
  device.rotateBackward({ dqkv: dBiased, qkv: out.linear, norms: null, rstd: spare, layout, rotary, shape, bias });
  out["rotateBackward, bias"] = bias.grad!;
  out["rotateBackward, q scale"] = norms.q.grad!;
  out["rotateBackward, k scale"] = norms.k.grad!;
  out.linearBackward = b.empty(T * D, A);
  device.linearBackward({ weight: qkvWeight, x: out.rmsNorm, dy: out.rotateBackward, dx: out.linearBackward, rows: T });
  out["linearBackward, weight"] = qkvWeight.grad!;
  out.rmsNormBackward = b.floats(b.normal(r, T * D));
  device.rmsNormBackward({
    x: out.embed,
    scale: norm,
    rstd,
    dOut: out.linearBackward,
    dx: out.rmsNormBackward,
    rows: T,
  });
  out["rmsNormBackward, scale"] = norm.grad!;

  out.swiGlu = b.empty(T * 24, A);
  const gateUp = b.floats(b.normal(r, T * 48), A);
  device.swiGlu(gateUp, out.swiGlu, T, 24);
  out.swiGluBackward = b.empty(T * 48, A);
  device.swiGluBackward(gateUp, out.swiGlu, out.swiGluBackward, T, 24);

  Object.assign(out, { logp: b.empty(T), entropy: b.empty(T), lse: b.empty(T) });
  const saved = { logp: out.logp!, entropy: out.entropy!, lse: out.lse! };
  device.logProbs({ head: embedding, x: out.rmsNorm, targets: ids, temperature: 0.7, rows: T, out: saved });
  out.logProbsBackward = b.empty(T * D, A);
  const [dLogp, dEntropy] = [b.floats(b.normal(r, T)), b.floats(b.normal(r, T))];
  device.logProbsBackward({
    head: embedding,
    x: out.rmsNorm,
    targets: ids,
    temperature: 0.7,
    rows: T,
    saved,
    dLogp,
    dEntropy,
    dx: out.logProbsBackward,
  });
  out["logProbsBackward, head"] = b.floats(device.read(embedding.grad!) as Float32Array);
  device.embedBackward(embedding, ids, out.rmsNormBackward, T);
  out.embedBackward = embedding.grad!;

  out.gather = b.empty(T * D);
  const rows = b.ints(Array.from({ length: T }, () => r.int(0, T - 1)));
  device.gather(out.embed, rows, out.gather, T, D);
  out.scatterAdd = b.floats(new Float32Array(T * D));
  device.scatterAdd(out.embed, rows, out.scatterAdd, T, D);
  device.addTo(out.gather, out.scatterAdd);

  const stride = device.outStride(embedding);
  const logits = b.empty(T * stride);
  device.linear(embedding, out.rmsNorm, logits, T);
  const draw = {
    temperatures: b.floats(Float32Array.from({ length: T }, (_, i) => [0, 0.7, 1, 1.5][i % 4]!)),
    uniforms: b.floats(Float32Array.from({ length: T }, () => r.next())),
  };
  out["sample, tokens"] = device.alloc("i32", T);
  out["sample, logp"] = b.empty(T);
  device.sample({
    logits,
    vocabulary: V,
    stride,
    rows: T,
    draw,
    out: { tokens: out["sample, tokens"], logp: out["sample, logp"] },
  });

  const [value, m] = [b.floats(b.normal(r, V * D)), b.floats(b.normal(r, V * D))];
  const v = b.floats(b.normal(r, V * D).map((x) => x * x + 0.1));
  const step = { learning_rate: 0.01, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1, step: 3 };
  device.adamW(value, embedding.grad!, m, v, { ...step, gradient_scale: 0.5 });
  return { ...out, "adamW, value": value, "adamW, m": m, "adamW, v": v };
}
