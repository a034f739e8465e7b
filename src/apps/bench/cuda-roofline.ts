// Measures each kernel of training and decoding at its real size against the GPU's limits (roofline model).
import type { CudaDevice } from "../../lm/devices/cuda/device.ts";
import type { Buffer, Device, HeadShape, TokenLayout, Weight } from "../../lm/devices/index.ts";
import { forestLayout, layoutOf, type NewTokens } from "../../lm/model/layout.ts";
import type { Model } from "../../lm/model/parameters.ts";
import { type Ceilings, CUDA_SPEC, contexts, medianTime, randomize } from "./cuda.ts";

export interface RooflineRow {
  readonly kernel: string;
  readonly milliseconds: number;
  /** Memory traffic of one call in GB; `teraflops` is its arithmetic. */
  readonly gigabytes: number;
  readonly teraflops: number;
  /** Achieved share of the limit that bounds the kernel. */
  readonly share: number;
  readonly bound: "memory" | "arithmetic";
}

interface RooflineOptions {
  /** Milliseconds of a kernel. */
  readonly time: (work: () => void) => number;
  readonly tokens?: number;
  readonly length?: number;
}

/** Measures every kernel of a training step at its real size against the GPU's limits. */
export function measureRoofline(
  model: Model,
  device: Device,
  ceilings: Ceilings,
  { time, tokens = 8192, length = 1024 }: RooflineOptions,
): RooflineRow[] {
  const { config } = model;
  const {
    hidden_size: D,
    intermediate_size: F,
    num_attention_heads: H,
    num_key_value_heads: G,
    head_dim: d,
    vocab_size: V,
  } = config;
  const layer = model.layers[0]!;
  const A = device.activations;
  const a = A === "bf16" ? 2 : 4; // bytes
  const T = tokens;
  const rows: RooflineRow[] = [];
  device.scope(() => {
    const shape = { heads: H, kvHeads: G, headDim: d, eps: 1e-6 };
    const sequences = contexts(V, T / length, length).map((ids) => ({ tokens: ids, parent: null }));
    const { layout, kvLength } = forestLayout(device, sequences, shape);
    const act = (width: number) => {
      const buffer = device.alloc(A, T * width);
      randomize(device, buffer, 1);
      return buffer;
    };
    const floats = (width: number, count = T) => {
      const buffer = device.alloc("f32", count * width);
      randomize(device, buffer, 1);
      return buffer;
    };
    const measure = (kernel: string, bytes: number, flops: number, work: () => void) => {
      const milliseconds = time(work);
      const [byMemory, byArithmetic] = [bytes / ceilings.terabytes_per_s / 1e9, flops / ceilings.tflops / 1e9];
      rows.push({
        kernel,
        milliseconds,
        gigabytes: bytes / 1e9,
        teraflops: flops / 1e12,
        share: Math.max(byMemory, byArithmetic) / milliseconds,
        bound: byMemory > byArithmetic ? "memory" : "arithmetic",
      });
    };
    const ids = device.alloc("i32", T);
    device.write(ids, Int32Array.from(sequences.flatMap(({ tokens }) => tokens)));
    const [x, dx, h, rstd] = [floats(D), floats(D), act(D), floats(1)];
    const width = (H + 2 * G) * d;
    const [qkv, dqkv, q, attended, dAttended] = [act(width), act(width), act(H * d), act(H * d), act(H * d)];
    const [headRstd, lse, kvCache] = [floats(H + G), floats(H), device.alloc(A, kvLength)];
    const [gateUp, dGateUp, activated] = [act(2 * F), act(2 * F), act(F)];
    measure("embed", T * D * 8, 0, () => device.embed(model.embedding, ids, x, T));
    measure("rmsNorm with residual", T * D * (8 + 2 * a), 0, () =>
      device.rmsNorm({ x, residual: h, scale: layer.attentionNorm, out: h, rstd, rows: T, eps: 1e-6 }),
    );
    const linear = (name: string, weight: Weight, from: Buffer, to: Buffer) => {
      const { rows: n, columns: k } = weight;
      measure(`${name} [${T}, ${k}]·[${k}, ${n}]`, a * (T * k + k * n + T * n), 2 * T * k * n, () =>
        device.linear(weight, from, to, T),
      );
    };
    const back = (name: string, weight: Weight, from: Buffer, dy: Buffer, to: Buffer) => {
      const { rows: n, columns: k } = weight;
      measure(`${name}, backward (dx and dW)`, a * 2 * (T * k + T * n) + (a + 8) * k * n, 4 * T * k * n, () =>
        device.linearBackward({ weight, x: from, dy, dx: to, rows: T }),
      );
    };
    linear("qkv", layer.qkv, h, qkv);
    measure("rotate", 2 * T * width * a, 0, () =>
      device.rotate({
        qkv,
        norms: layer.headNorms,
        q,
        rstd: headRstd,
        kvCache,
        layout,
        rotary: model.rotary,
        shape,
        bias: layer.qkvBias,
      }),
    );
    const square = ((T / length) * (length * (length + 1))) / 2;
    const attentionBytes = a * T * (2 * H + 2 * G) * d;
    measure("attention", attentionBytes, 4 * square * H * d, () =>
      device.attention({ q, kvCache, out: attended, lse, layout, shape }),
    );
    linear("output", layer.output, attended, h);
    linear("gate and up", layer.gateUp, h, gateUp);
    measure("swiGlu", 3 * T * F * a, 0, () => device.swiGlu(gateUp, activated, T, F));
    linear("down", layer.down, activated, h);
    back("down", layer.down, activated, dx, activated);
    measure("swiGlu backward", 5 * T * F * a, 0, () => device.swiGluBackward(gateUp, activated, dGateUp, T, F));
    back("gate and up", layer.gateUp, h, dGateUp, h);
    measure("rmsNorm backward", T * D * (12 + a), 0, () =>
      device.rmsNormBackward({ x, scale: layer.mlpNorm, rstd, dOut: h, dx, rows: T }),
    );
    back("output", layer.output, attended, dx, dAttended);
    measure("attention backward", 2 * attentionBytes, 10 * square * H * d, () =>
      device.attentionBackward({ q, kvCache, out: attended, dOut: dAttended, lse, dqkv, layout, shape }),
    );
    measure("rotate backward", 3 * T * (H + G) * d * a, 0, () =>
      device.rotateBackward({
        dqkv,
        qkv,
        norms: layer.headNorms,
        rstd: headRstd,
        layout,
        rotary: model.rotary,
        shape,
        bias: layer.qkvBias,
      }),
    );
    back("qkv", layer.qkv, h, dqkv, h);
    measure("embed backward", T * D * 12, 0, () => device.embedBackward(model.embedding, ids, dx, T));
    const out = { logp: floats(1), entropy: floats(1), lse: floats(1) };
    const head = model.head;
    const logits = T * device.outStride(head);
    measure("LM head: matmul and log-probs", a * (T * D + V * D) + 8 * logits, 2 * T * D * V, () =>
      device.scope(() => device.logProbs({ head, x: h, targets: ids, temperature: 1, rows: T, out })),
    );
    const [dLogp, dEntropy] = [floats(1), floats(1)];
    measure("LM head: forward and backward", a * 3 * (T * D + V * D) + (12 + 3 * a) * logits, 6 * T * D * V, () =>
      device.scope(() => {
        device.logProbs({ head, x: h, targets: ids, temperature: 1, rows: T, out });
        device.logProbsBackward({
          head,
          x: h,
          targets: ids,
          temperature: 1,
          rows: T,
          saved: out,
          dLogp,
          dEntropy,
          dx: attended,
        });
      }),
    );
    measure("copy of the residual stream", 8 * T * D, 0, () => device.copy(x, dx));
  });
  return rows;
}

/**
 * Measures the kernels of a decode step in a CUDA graph, as time per call. Each runs over all layers, so that weights
 * are not cached.
 */
export function measureDecodeRoofline(
  model: Model,
  device: CudaDevice,
  ceilings: Ceilings,
  rows: number,
  context = CUDA_SPEC.prompt,
): RooflineRow[] {
  const { config, layers } = model;
  const { hidden_size: D, intermediate_size: F, num_attention_heads: H, num_key_value_heads: G, head_dim: d } = config;
  const A = device.activations;
  const a = A === "bf16" ? 2 : 4; // bytes
  const shape = { heads: H, kvHeads: G, headDim: d, eps: 1e-6 };
  return device.scope(() => {
    const make = (dtype: Buffer["dtype"], length: number, value: number) => {
      const buffer = device.alloc(dtype, length);
      device.fill(buffer, value);
      return buffer;
    };
    const act = (width: number) => make(A, rows * width, 0.01);
    const floats = (width: number, value = 1) => make("f32", rows * width, value);
    const [h, qkv, q, attended, activated] = [act(D), act((H + 2 * G) * d), act(H * d), act(H * d), act(F)];
    const [gateUp, added] = [act(2 * F), act(D)];
    const [x, rstd, headRstd, logits] = [floats(D), floats(1), floats(H + G), floats(device.outStride(model.head))];
    const capacity = (context + 8) & ~7;
    const unit = 2 * G * d * capacity;
    const news = Array.from({ length: rows }, (_, i) => ({
      own: { block: i * unit, capacity },
      start: context - 1,
      count: 1,
      ancestors: [],
    }));
    const kvCaches = layers.map(() => make(A, (rows + 1) * unit, 0.01));
    const one = [{ block: rows * unit, capacity, tokens: context - 1, row: 0 }];
    const shared = news.map(({ own }) => ({ own, start: 0, count: 1, ancestors: one }));
    const [layout, sharedLayout] = [decodeLayout(device, news, shape), decodeLayout(device, shared, shape)];
    const attend = (i: number, of: TokenLayout) => {
      const { headNorms, qkvBias } = layers[i]!;
      if (
        device.rotateAttend?.({
          qkv,
          norms: headNorms,
          kvCache: kvCaches[i]!,
          out: attended,
          layout: of,
          rotary: model.rotary,
          shape,
          bias: qkvBias,
        })
      )
        return;
      device.rotate({
        qkv,
        norms: headNorms,
        q,
        rstd: headRstd,
        kvCache: kvCaches[i]!,
        layout: of,
        rotary: model.rotary,
        shape,
        bias: qkvBias,
      });
      device.attention({ q, kvCache: kvCaches[i]!, out: attended, lse: null, layout: of, shape });
    };
    const [draw, out] = [
      { temperatures: floats(1), uniforms: floats(1, 0.5) },
      { tokens: make("i32", rows, 0), logp: floats(1) },
    ];
    const weightBytes = (n: number, k: number) => a * (n * k + rows * (n + k));
    const project = (i: number, which: "output" | "down", from: Buffer) => {
      const weight = layers[i]![which];
      if (!device.linearAdd?.(weight, from, x, rows)) device.linear(weight, from, added, rows);
    };
    const normed = (i: number) => {
      const { qkv: weight, attentionNorm } = layers[i]!;
      if (device.linearNormed?.({ weight, x, scale: attentionNorm, eps: 1e-6, out: qkv, rows })) return;
      device.rmsNorm({ x, residual: null, scale: attentionNorm, out: h, rstd, rows, eps: 1e-6 });
      device.linear(weight, h, qkv, rows);
    };
    const gated = (i: number) => {
      const { gateUp: weight, mlpNorm } = layers[i]!;
      if (device.linearNormed?.({ weight, x, scale: mlpNorm, eps: 1e-6, out: activated, rows, isGated: true })) return;
      device.rmsNorm({ x, residual: null, scale: mlpNorm, out: h, rstd, rows, eps: 1e-6 });
      if (device.linearSwiGlu?.(weight, h, activated, rows)) return;
      device.linear(weight, h, gateUp, rows);
      device.swiGlu(gateUp, activated, rows, F);
    };
    const kernels: readonly (readonly [name: string, bytes: number, work: (layer: number) => void])[] = [
      [
        "rmsNorm",
        rows * D * (4 + a),
        (i) => device.rmsNorm({ x, residual: null, scale: layers[i]!.attentionNorm, out: h, rstd, rows, eps: 1e-6 }),
      ],
      ["norm and qkv", weightBytes((H + 2 * G) * d, D), normed],
      [
        ...(["positions and attention", a * rows * (2 * (H + G) * d + 2 * G * d * context)] as const),
        (i) => attend(i, layout),
      ],
      [
        ...(["… one prompt for all", a * (rows * 2 * (H + 2 * G) * d + 2 * G * d * context)] as const),
        (i) => attend(i, sharedLayout),
      ],
      ["output, added", weightBytes(D, H * d), (i) => project(i, "output", attended)],
      ["norm, gate, up and SwiGLU", weightBytes(2 * F, D), gated],
      ["down, added", weightBytes(D, F), (i) => project(i, "down", activated)],
      ["head", weightBytes(config.vocab_size, D), () => device.linear(model.head, h, logits, rows)],
      [
        ...(["sample", 4 * rows * config.vocab_size] as const),
        () =>
          device.sample({
            logits,
            vocabulary: config.vocab_size,
            stride: device.outStride(model.head),
            rows,
            draw,
            out,
          }),
      ],
    ];
    for (const [, , work] of kernels) work(0); // copies weights and compiles kernels
    return kernels.map(([kernel, bytes, work]): RooflineRow => {
      const graph = device.decoding!.capture(() => layers.forEach((_, i) => void work(i)));
      const milliseconds = medianTime(device, () => graph.launch()) / layers.length;
      graph.free();
      const share = bytes / ceilings.terabytes_per_s / 1e9 / milliseconds;
      return {
        kernel: `${kernel}, ${rows} rows`,
        milliseconds,
        gigabytes: bytes / 1e9,
        teraflops: 0,
        share,
        bound: "memory",
      };
    });
  });
}

/** A layout with the tables of decoding. */
function decodeLayout(device: CudaDevice, news: readonly NewTokens[], shape: HeadShape): TokenLayout {
  const layout = layoutOf(device, news, [0]);
  const table = device.decoding?.sharing;
  if (!table) return layout;
  const words = new Int32Array(table.length(news.length, shape));
  const [spans, ranges] = [layout.spans, layout.ranges].map((buffer) => device.read(buffer) as Int32Array);
  table.fill(words, news.length, spans!, ranges!, shape);
  const sharing = device.alloc("i32", words.length);
  device.write(sharing, words);
  return { ...layout, sharing };
}
