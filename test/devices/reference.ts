// Reference of every device operation: its formula in double precision.
import type { AdamStep, HeadShape } from "../../src/lm/devices/index.ts";
import type { Span } from "../../src/lm/model/layout.ts";

type Numbers = ArrayLike<number>;

/** x / rms(x) · scale for each row, and each row's 1/rms. */
export function rmsNorm(x: Numbers, scale: Numbers, eps: number): { out: Float64Array; rstd: Float64Array } {
  const width = scale.length;
  const rstd = new Float64Array(x.length / width);
  for (let t = 0; t < rstd.length; t++) {
    let squares = 0;
    for (let i = 0; i < width; i++) squares += x[t * width + i]! ** 2;
    rstd[t] = 1 / Math.sqrt(squares / width + eps);
  }
  const out = Float64Array.from(x, (value, i) => value * rstd[Math.floor(i / width)]! * scale[i % width]!);
  return { out, rstd };
}

/** y[T, n] = x[T, k] · Wᵀ, W [n, k]. */
export function linear(x: Numbers, weight: Numbers, n: number, k: number): Float64Array {
  const rows = x.length / k;
  const out = new Float64Array(rows * n);
  for (let t = 0; t < rows; t++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let i = 0; i < k; i++) sum += x[t * k + i]! * weight[j * k + i]!;
      out[t * n + j] = sum;
    }
  }
  return out;
}

/** silu(gate) · up, gate and up concatenated in a row. */
export function swiGlu(gateUp: Numbers, width: number): Float64Array {
  return Float64Array.from({ length: gateUp.length / 2 }, (_, i) => {
    const at = Math.floor(i / width) * 2 * width + (i % width);
    const gate = gateUp[at]!;
    return (gate / (1 + Math.exp(-gate))) * gateUp[at + width]!;
  });
}

/** The context of each token of a tree of spans: the rows it sees, itself last. Their number is its position plus one. */
export function contextsOf(spans: readonly Span[]): number[][] {
  const contexts: number[][] = [];
  const ends: number[][] = []; // of each span: the context of its last token
  for (const { tokens, parent } of spans) {
    let context = parent === null ? [] : ends[parent]!;
    for (let i = 0; i < tokens.length; i++) {
      context = [...context, contexts.length];
      contexts.push(context);
    }
    ends.push(context);
  }
  return contexts;
}

/** Rows of [q heads | k heads | v heads], with a bias if any → q and k with norm (if any) and rotary position, v unchanged. */
export function rotate(
  qkv: Numbers,
  norms: { readonly q: Numbers; readonly k: Numbers } | null,
  positions: readonly number[],
  angle: (position: number, i: number) => number,
  { heads, kvHeads, headDim: d, eps }: HeadShape,
  bias: Numbers | null = null,
): Float64Array {
  const out = Float64Array.from(qkv, (x, i) => x + (bias ? bias[i % bias.length]! : 0));
  const width = (heads + 2 * kvHeads) * d;
  const half = d / 2;
  for (const [t, position] of positions.entries()) {
    const cosines = Float64Array.from({ length: half }, (_, i) => Math.cos(angle(position, i)));
    const sines = Float64Array.from({ length: half }, (_, i) => Math.sin(angle(position, i)));
    for (let h = 0; h < heads + kvHeads; h++) {
      const at = t * width + h * d;
      const head = out.subarray(at, at + d);
      const scale = norms && (h < heads ? norms.q : norms.k);
      const normed = scale ? rmsNorm(head, scale, eps).out : Float64Array.from(head);
      for (let i = 0; i < half; i++) {
        const [a, b] = [normed[i]!, normed[half + i]!];
        head[i] = a * cosines[i]! - b * sines[i]!;
        head[half + i] = b * cosines[i]! + a * sines[i]!;
      }
    }
  }
  return out;
}

/** softmax(q · kᵀ / √d) · v over each token's context; rows as `rotate` gives them. */
export function attention(
  qkv: Numbers,
  contexts: readonly (readonly number[])[],
  { heads, kvHeads, headDim: d }: HeadShape,
): Float64Array {
  const width = (heads + 2 * kvHeads) * d;
  const out = new Float64Array(contexts.length * heads * d);
  for (const [t, context] of contexts.entries()) {
    for (let h = 0; h < heads; h++) {
      const kv = Math.floor(h / (heads / kvHeads));
      const scores = context.map((row) => {
        let sum = 0;
        for (let i = 0; i < d; i++) sum += qkv[t * width + h * d + i]! * qkv[row * width + (heads + kv) * d + i]!;
        return sum / Math.sqrt(d);
      });
      const { lse } = logSumExp(scores);
      for (const [j, row] of context.entries()) {
        const p = Math.exp(scores[j]! - lse);
        const v = row * width + (heads + kvHeads + kv) * d;
        for (let i = 0; i < d; i++) out[(t * heads + h) * d + i]! += p * qkv[v + i]!;
      }
    }
  }
  return out;
}

/** Log-prob of each row's target and entropy of logits / temperature. */
export function logProbs(
  logits: Numbers,
  vocabulary: number,
  targets: Numbers,
  temperature: number,
): { logp: Float64Array; entropy: Float64Array } {
  const logp = new Float64Array(targets.length);
  const entropy = new Float64Array(targets.length);
  for (let t = 0; t < targets.length; t++) {
    const row = Array.from({ length: vocabulary }, (_, j) => logits[t * vocabulary + j]! / temperature);
    const { lse } = logSumExp(row);
    logp[t] = row[targets[t]!]! - lse;
    entropy[t] = row.reduce((sum, z) => sum - Math.exp(z - lse) * (z - lse), 0);
  }
  return { logp, entropy };
}

/** Cumulative probabilities of logits / temperature. */
export function cumulative(logits: Numbers, temperature: number): number[] {
  const row = Array.from(logits, (logit) => logit / temperature);
  const { lse } = logSumExp(row);
  let sum = 0;
  return row.map((z) => {
    sum += Math.exp(z - lse);
    return sum;
  });
}

function logSumExp(row: readonly number[]): { lse: number } {
  const top = row.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return { lse: top + Math.log(row.reduce((sum, z) => sum + Math.exp(z - top), 0)) };
}

export interface AdamState {
  readonly value: Float64Array;
  readonly m: Float64Array;
  readonly v: Float64Array;
}

/** One step of torch.optim.AdamW, in place. */
export function adamW({ value, m, v }: AdamState, grad: Numbers, options: AdamStep): void {
  const { learning_rate, beta1, beta2, eps, weight_decay, step, gradient_scale } = options;
  for (let i = 0; i < value.length; i++) {
    const g = grad[i]! * gradient_scale;
    value[i]! *= 1 - learning_rate * weight_decay;
    m[i] = beta1 * m[i]! + (1 - beta1) * g;
    v[i] = beta2 * v[i]! + (1 - beta2) * g * g;
    const mHat = m[i]! / (1 - beta1 ** step);
    const vHat = v[i]! / (1 - beta2 ** step);
    value[i]! -= (learning_rate * mHat) / (Math.sqrt(vHat) + eps);
  }
}

/** Slope of f at x along a direction, (f(x + h·u) − f(x − h·u)) / 2h. */
export function centralDifference(
  f: (x: Float64Array) => number,
  x: Numbers,
  direction: (i: number) => number,
  h = 1e-5,
): number {
  const moved = (by: number) => Float64Array.from(x, (value, i) => value + by * direction(i));
  return (f(moved(h)) - f(moved(-h))) / (2 * h);
}
