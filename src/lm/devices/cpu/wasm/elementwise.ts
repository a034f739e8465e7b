// Everything except matmul and attention: norms, SwiGLU, embedding, log-probs, sampling, AdamW.
// Rows are tokens. Widths are multiples of four. Sums over tokens (weight gradients) are divided among threads by
// columns.
import { bound, exp4, max4, sum4 } from "./math";
import { madd } from "./microkernel";

/** x += residual (if given); y = x / rms(x) · w. Saves 1/rms of each row. */
export function rmsNorm(
  x: usize, residual: usize, w: usize, y: usize, rstd: usize, rows: i32, width: i32, eps: f32, part: i32, parts: i32,
): void {
  const bytes = usize(width) << 2;
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const xr = x + usize(t) * bytes;
    const rr = residual + usize(t) * bytes;
    let sum = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) {
      let v = v128.load(xr + i);
      if (residual) {
        v = f32x4.add(v, v128.load(rr + i));
        v128.store(xr + i, v);
      }
      sum = madd(v, v, sum);
    }
    const r: f32 = 1 / sqrt(sum4(sum) / f32(width) + eps);
    store<f32>(rstd + (usize(t) << 2), r);
    const scale = f32x4.splat(r);
    const yr = y + usize(t) * bytes;
    for (let i: usize = 0; i < bytes; i += 16) {
      v128.store(yr + i, f32x4.mul(f32x4.mul(v128.load(xr + i), scale), v128.load(w + i)));
    }
  }
}

/** Computes dx += gradient through y = x · rstd · w. */
export function rmsNormBackward(
  dy: usize, x: usize, w: usize, rstd: usize, dx: usize, rows: i32, width: i32, part: i32, parts: i32,
): void {
  const bytes = usize(width) << 2;
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const at = usize(t) * bytes;
    const r = load<f32>(rstd + (usize(t) << 2));
    let dot = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) {
      dot = madd(f32x4.mul(v128.load(dy + at + i), v128.load(w + i)), v128.load(x + at + i), dot);
    }
    const a = f32x4.splat(r);
    const b = f32x4.splat((-sum4(dot) * r * r * r) / f32(width));
    for (let i: usize = 0; i < bytes; i += 16) {
      const g = f32x4.mul(v128.load(dy + at + i), v128.load(w + i));
      const d = madd(g, a, v128.load(dx + at + i));
      v128.store(dx + at + i, madd(v128.load(x + at + i), b, d));
    }
  }
}

/** Computes dw += Σ over tokens of dy · x · rstd. */
export function rmsNormWeightBackward(
  dy: usize, x: usize, rstd: usize, dw: usize, rows: i32, width: i32, part: i32, parts: i32,
): void {
  const bytes = usize(width) << 2;
  const from = usize(bound(width >> 2, part, parts)) << 4;
  const to = usize(bound(width >> 2, part + 1, parts)) << 4;
  for (let t = 0; t < rows; t++) {
    const at = usize(t) * bytes;
    const r = v128.load32_splat(rstd + (usize(t) << 2));
    for (let i = from; i < to; i += 16) {
      const g = f32x4.mul(v128.load(dy + at + i), f32x4.mul(v128.load(x + at + i), r));
      v128.store(dw + i, f32x4.add(v128.load(dw + i), g));
    }
  }
}

/** Computes a bias's gradient: db += Σ over tokens of dy. */
export function biasBackward(dy: usize, db: usize, rows: i32, width: i32, part: i32, parts: i32): void {
  const bytes = usize(width) << 2;
  const from = usize(bound(width >> 2, part, parts)) << 4;
  const to = usize(bound(width >> 2, part + 1, parts)) << 4;
  for (let t = 0; t < rows; t++) {
    const at = dy + usize(t) * bytes;
    for (let i = from; i < to; i += 16) v128.store(db + i, f32x4.add(v128.load(db + i), v128.load(at + i)));
  }
}

/** a = silu(gate) · up, with gate and up side by side in a row of h. */
export function swiGlu(h: usize, a: usize, rows: i32, width: i32, part: i32, parts: i32): void {
  const bytes = usize(width) << 2;
  const one = f32x4.splat(1);
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const gate = h + usize(t) * bytes * 2;
    const up = gate + bytes;
    const out = a + usize(t) * bytes;
    for (let i: usize = 0; i < bytes; i += 16) {
      const g = v128.load(gate + i);
      const sigmoid = f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(g))));
      v128.store(out + i, f32x4.mul(f32x4.mul(g, sigmoid), v128.load(up + i)));
    }
  }
}

/** Computes dh from da; dh may be h itself. */
export function swiGluBackward(da: usize, h: usize, dh: usize, rows: i32, width: i32, part: i32, parts: i32): void {
  const bytes = usize(width) << 2;
  const one = f32x4.splat(1);
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const gate = usize(t) * bytes * 2;
    const at = da + usize(t) * bytes;
    for (let i: usize = 0; i < bytes; i += 16) {
      const g = v128.load(h + gate + i);
      const u = v128.load(h + gate + bytes + i);
      const d = v128.load(at + i);
      const sigmoid = f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(g))));
      const silu = f32x4.mul(g, sigmoid);
      const slope = f32x4.mul(sigmoid, f32x4.add(one, f32x4.sub(g, silu))); // σ(1 + g(1 − σ))
      v128.store(dh + gate + i, f32x4.mul(f32x4.mul(d, u), slope));
      v128.store(dh + gate + bytes + i, f32x4.mul(d, silu));
    }
  }
}

/** Computes x[t] = weight[ids[t]]; also gathers rows of hidden states. */
export function embed(weight: usize, ids: usize, x: usize, rows: i32, width: i32, part: i32, parts: i32): void {
  const bytes = usize(width) << 2;
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    memory.copy(x + usize(t) * bytes, weight + usize(load<i32>(ids + (usize(t) << 2))) * bytes, bytes);
  }
}

/** dWeight[ids[t]] += dx[t], in order of t, so an id may occur more than once. */
export function embedBackward(dx: usize, ids: usize, dWeight: usize, rows: i32, width: i32, part: i32, parts: i32): void {
  const bytes = usize(width) << 2;
  const from = usize(bound(width >> 2, part, parts)) << 4;
  const to = usize(bound(width >> 2, part + 1, parts)) << 4;
  for (let t = 0; t < rows; t++) {
    const out = dWeight + usize(load<i32>(ids + (usize(t) << 2))) * bytes;
    const at = dx + usize(t) * bytes;
    for (let i = from; i < to; i += 16) v128.store(out + i, f32x4.add(v128.load(out + i), v128.load(at + i)));
  }
}

// Results of `summarize`; globals are per thread, because each thread has its own instance.
let highest: f32 = 0, sumExp: f32 = 0, weightedSum: f32 = 0;

/**
 * Computes the highest logit, Σ e^z and Σ z·e^z of a row, with z = (logit − highest)/temperature. Sampling and training
 * use the same bits.
 */
function summarize(row: usize, vocabulary: i32, inverseTemperature: f32): void {
  const whole = vocabulary & ~3;
  const scale = f32x4.splat(inverseTemperature);
  let top = f32x4.splat(-Infinity);
  for (let j = 0; j < whole; j += 4) top = f32x4.max(top, v128.load(row + (usize(j) << 2)));
  highest = max4(top);
  for (let j = whole; j < vocabulary; j++) highest = max(highest, load<f32>(row + (usize(j) << 2)));
  const shift = f32x4.splat(highest);
  let sum = f32x4.splat(0);
  let weighted = sum;
  for (let j = 0; j < whole; j += 4) {
    const z = f32x4.mul(f32x4.sub(v128.load(row + (usize(j) << 2)), shift), scale);
    const e = exp4(z);
    sum = f32x4.add(sum, e);
    weighted = madd(e, z, weighted);
  }
  sumExp = sum4(sum);
  weightedSum = sum4(weighted);
  for (let j = whole; j < vocabulary; j++) {
    const z = (load<f32>(row + (usize(j) << 2)) - highest) * inverseTemperature;
    const e = f32x4.extract_lane(exp4(f32x4.splat(z)), 0);
    sumExp += e;
    weightedSum += e * z;
  }
}

/**
 * Log-softmax of rows of logits divided by a temperature: computes the target's log-prob, entropy and log-sum-exp. A
 * row is `stride` floats long; only the first `vocabulary` count.
 */
export function logProb(
  logits: usize, stride: i32, targets: usize, logp: usize, entropy: usize, lse: usize,
  rows: i32, vocabulary: i32, inverseTemperature: f32, part: i32, parts: i32,
): void {
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const row = logits + ((usize(t) * usize(stride)) << 2);
    summarize(row, vocabulary, inverseTemperature);
    const logSum = f32(Math.log(sumExp));
    const at = usize(t) << 2;
    const target = load<f32>(row + (usize(load<i32>(targets + at)) << 2));
    store<f32>(lse + at, highest * inverseTemperature + logSum);
    store<f32>(entropy + at, logSum - weightedSum / sumExp);
    store<f32>(logp + at, (target - highest) * inverseTemperature - logSum);
  }
}

/**
 * Samples a token from each row: the first whose cumulative probability exceeds the row's uniform number. Temperature 0
 * picks the likeliest token and reports its log-prob at temperature 1.
 */
export function sample(
  logits: usize, stride: i32, temperatures: usize, uniforms: usize, tokens: usize, logp: usize,
  rows: i32, vocabulary: i32, part: i32, parts: i32,
): void {
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const row = logits + ((usize(t) * usize(stride)) << 2);
    const at = usize(t) << 2;
    const temperature = load<f32>(temperatures + at);
    const inverse: f32 = temperature == 0 ? 1 : 1 / temperature;
    summarize(row, vocabulary, inverse);
    let token = 0;
    if (temperature == 0) {
      while (token < vocabulary - 1 && load<f32>(row + (usize(token) << 2)) != highest) token++;
    } else {
      const wanted = load<f32>(uniforms + at) * sumExp;
      const shift = f32x4.splat(highest);
      const scale = f32x4.splat(inverse);
      let sum: f32 = 0;
      let last = 0;
      token = -1;
      for (let j = 0; j < vocabulary && token < 0; j += 4) {
        const e = exp4(f32x4.mul(f32x4.sub(v128.load(row + (usize(j) << 2)), shift), scale));
        for (let i = 0; i < 4 && j + i < vocabulary && token < 0; i++) {
          const p = lane(e, i);
          if (p > 0) last = j + i;
          sum += p;
          if (sum > wanted) token = j + i;
        }
      }
      if (token < 0) token = last; // rounding kept the running sum below the total
    }
    store<i32>(tokens + at, token);
    const logit = load<f32>(row + (usize(token) << 2));
    store<f32>(logp + at, (logit - highest) * inverse - f32(Math.log(sumExp)));
  }
}

// @ts-ignore: decorator
@inline
function lane(x: v128, i: i32): f32 {
  if (i == 0) return f32x4.extract_lane(x, 0);
  if (i == 1) return f32x4.extract_lane(x, 1);
  if (i == 2) return f32x4.extract_lane(x, 2);
  return f32x4.extract_lane(x, 3);
}

/** Overwrites logits with their gradient, given the gradients of log-prob and entropy. */
export function logProbBackward(
  logits: usize, stride: i32, targets: usize, entropy: usize, lse: usize, dLogp: usize, dEntropy: usize,
  rows: i32, vocabulary: i32, inverseTemperature: f32, part: i32, parts: i32,
): void {
  const scale = f32x4.splat(inverseTemperature);
  const padded = (vocabulary + 3) & ~3;
  for (let t = bound(rows, part, parts); t < bound(rows, part + 1, parts); t++) {
    const row = logits + ((usize(t) * usize(stride)) << 2);
    const at = usize(t) << 2;
    const l4 = v128.load32_splat(lse + at);
    const h4 = v128.load32_splat(entropy + at);
    const dl = load<f32>(dLogp + at);
    const dl4 = f32x4.splat(-dl);
    const dh4 = f32x4.splat(-load<f32>(dEntropy + at));
    for (let j = 0; j < padded; j += 4) {
      const p = row + (usize(j) << 2);
      const logP = f32x4.sub(f32x4.mul(v128.load(p), scale), l4);
      // dz = (dlogp (δ − p) − dH p (log p + H)) / temperature
      const inner = madd(dh4, f32x4.add(logP, h4), dl4);
      v128.store(p, f32x4.mul(f32x4.mul(exp4(logP), inner), scale));
    }
    for (let j = vocabulary; j < stride; j++) store<f32>(row + (usize(j) << 2), 0);
    const target = row + (usize(load<i32>(targets + at)) << 2);
    store<f32>(target, load<f32>(target) + dl * inverseTemperature);
  }
}

/** AdamW as in PyTorch; `gradientScale` implements clipping. */
export function adamW(
  p: usize, g: usize, m: usize, v: usize, n: i32,
  learningRate: f64, beta1: f64, beta2: f64, eps: f32, weightDecay: f64, correction1: f64, correction2: f64,
  gradientScale: f32, part: i32, parts: i32,
): void {
  const from = usize(bound(n >> 2, part, parts)) << 4;
  const to = usize(bound(n >> 2, part + 1, parts)) << 4;
  // Factors are computed in double precision and rounded once: 1 − 0.999 in single precision is off by 1e-5.
  const b1 = f32x4.splat(f32(beta1)), c1 = f32x4.splat(f32(1 - beta1));
  const b2 = f32x4.splat(f32(beta2)), c2 = f32x4.splat(f32(1 - beta2));
  const decay = f32x4.splat(f32(1 - learningRate * weightDecay));
  const step = f32x4.splat(f32(learningRate / correction1));
  const root = f32x4.splat(f32(1 / Math.sqrt(correction2)));
  const e = f32x4.splat(eps);
  const scale = f32x4.splat(gradientScale);
  for (let i = from; i < to; i += 16) {
    const grad = f32x4.mul(v128.load(g + i), scale);
    const m1 = f32x4.add(f32x4.mul(b1, v128.load(m + i)), f32x4.mul(c1, grad));
    const v1 = f32x4.add(f32x4.mul(b2, v128.load(v + i)), f32x4.mul(c2, f32x4.mul(grad, grad)));
    v128.store(m + i, m1);
    v128.store(v + i, v1);
    const denominator = f32x4.add(f32x4.mul(f32x4.sqrt(v1), root), e);
    const moved = f32x4.sub(f32x4.mul(v128.load(p + i), decay), f32x4.mul(step, f32x4.div(m1, denominator)));
    v128.store(p + i, moved);
  }
}

/** Computes sums of squares over blocks of 16,384 floats, as doubles; the caller adds them up in order. */
export function sumSquares(x: usize, out: usize, n: i32, part: i32, parts: i32): void {
  const blocks = (n + 16383) >> 14;
  for (let block = part; block < blocks; block += parts) {
    const end = min(n, (block + 1) << 14);
    let total: f64 = 0;
    for (let i = block << 14; i < end; i += 64) {
      let sum = f32x4.splat(0);
      const stop = min(end, i + 64);
      for (let j = i; j < stop; j += 4) {
        const v = v128.load(x + (usize(j) << 2));
        sum = madd(v, v, sum);
      }
      total += f64(sum4(sum));
    }
    store<f64>(out + (usize(block) << 3), total);
  }
}

/** y += x. */
export function addTo(x: usize, y: usize, n: i32, part: i32, parts: i32): void {
  const to = usize(bound(n >> 2, part + 1, parts)) << 4;
  for (let i = usize(bound(n >> 2, part, parts)) << 4; i < to; i += 16) {
    v128.store(y + i, f32x4.add(v128.load(y + i), v128.load(x + i)));
  }
}
