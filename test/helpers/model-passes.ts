// Forward and backward passes of a model without an engine, for numerical tests.
import type { Buffer } from "../../src/lm/devices/index.ts";
import { backward, forward, infer } from "../../src/lm/model/decoder.ts";
import { forestLayout, type Span } from "../../src/lm/model/layout.ts";
import type { Model } from "../../src/lm/model/parameters.ts";

/** Rows of hidden states, their target tokens, and the loss's gradient by each log-prob and entropy. */
export interface Wanted {
  readonly rows: readonly number[];
  readonly targets: readonly number[];
  readonly temperature: number;
  readonly weights: ArrayLike<number>;
  readonly entropyWeight: number;
}

/** Log-probs and entropies; the gradient of Σ weights · logp + entropyWeight · Σ entropy is added to the model's. */
export function train(
  model: Model,
  runs: readonly Span[],
  wanted: Wanted,
): { logp: Float32Array; entropy: Float32Array } {
  const { device, config } = model;
  const D = config.hidden_size;
  const N = wanted.rows.length;
  return device.scope(() => {
    const ints = (data: readonly number[]) => put(model, Int32Array.from(data));
    const { layout, kvLength } = forestLayout(device, runs, {
      kvHeads: config.num_key_value_heads,
      headDim: config.head_dim,
    });
    const ids = ints(runs.flatMap((run) => run.tokens));
    const { hidden, saved } = forward(model, ids, layout, kvLength);
    const [rows, targets] = [ints(wanted.rows), ints(wanted.targets)];
    const x = device.alloc(device.activations, N * D);
    device.gather(hidden, rows, x, N, D);
    const out = { logp: device.alloc("f32", N), entropy: device.alloc("f32", N), lse: device.alloc("f32", N) };
    device.logProbs({ head: model.head, x, targets, temperature: wanted.temperature, rows: N, out });
    const dLogp = put(model, Float32Array.from(wanted.weights));
    const dEntropy = put(model, new Float32Array(N).fill(wanted.entropyWeight));
    const dx = device.alloc(device.activations, N * D);
    device.logProbsBackward({
      head: model.head,
      x,
      targets,
      temperature: wanted.temperature,
      rows: N,
      saved: out,
      dLogp,
      dEntropy,
      dx,
    });
    const dHidden = device.alloc(device.activations, layout.tokens * D);
    device.fill(dHidden, 0);
    device.scatterAdd(dx, rows, dHidden, N, D);
    backward(model, saved, dHidden);
    return { logp: device.read(out.logp) as Float32Array, entropy: device.read(out.entropy) as Float32Array };
  });
}

/** Logits of every token, without the rows' padding. */
export function logitsOf(model: Model, runs: readonly Span[]): Float32Array {
  const { device, config, head } = model;
  return device.scope(() => {
    const shape = { kvHeads: config.num_key_value_heads, headDim: config.head_dim };
    const { layout, kvLength } = forestLayout(device, runs, shape);
    const ids = put(model, Int32Array.from(runs.flatMap((run) => run.tokens)));
    const stores = model.layers.map(() => device.alloc(device.activations, kvLength));
    const hidden = infer(model, ids, layout, stores);
    const stride = device.outStride(head);
    const logits = device.alloc("f32", layout.tokens * stride);
    device.linear(head, hidden, logits, layout.tokens);
    const all = device.read(logits) as Float32Array;
    const out = new Float32Array(layout.tokens * config.vocab_size);
    for (let t = 0; t < layout.tokens; t++) {
      out.set(all.subarray(t * stride, t * stride + config.vocab_size), t * config.vocab_size);
    }
    return out;
  });
}

export function put({ device }: Model, data: Float32Array | Int32Array): Buffer {
  const buffer = device.alloc(data instanceof Int32Array ? "i32" : "f32", data.length);
  device.write(buffer, data);
  return buffer;
}

/** Every token but a sequence's first, predicted from the row before it. */
export function everyToken(sequences: readonly ArrayLike<number>[]): Pick<Wanted, "rows" | "targets"> {
  let start = 0;
  const items = sequences.flatMap((ids) => {
    start += ids.length;
    return Array.from({ length: ids.length - 1 }, (_, t) => ({ row: start - ids.length + t, target: ids[t + 1]! }));
  });
  return { rows: items.map(({ row }) => row), targets: items.map(({ target }) => target) };
}
