// Kernels over rows of logits: log-probs, their backward, and sampling; one workgroup per row.
import { program, reductions } from "../program.ts";

const INTS = ["rows", "vocabulary", "stride"] as const;
const LOWEST = "-3.4028234e38"; // WGSL has no infinities

/** The target's log-prob, the entropy and the log-sum-exp of each row of logits / temperature. */
export const LOG_PROB = program({
  name: "logProb",
  reads: { logits: "f32", targets: "i32" },
  writes: { logp: "f32", entropy: "f32", lse: "f32" },
  ints: INTS,
  floats: ["inverse"],
  top: reductions(256, "sum", "max"),
  body: `
  for (var t = group.x; t < p.rows; t += groups.x) {
    let row = t * p.stride;
    var top = ${LOWEST};
    for (var j = lane; j < p.vocabulary; j += 256u) { top = max(top, logits(row + j)); }
    let highest = all_max(lane, top);
    var sum = 0.0;
    var weighted = 0.0;
    for (var j = lane; j < p.vocabulary; j += 256u) {
      let z = (logits(row + j) - highest) * p.inverse;
      let e = exp(z);
      sum += e;
      weighted += e * z;
    }
    let total = all_sum(lane, sum);
    let mean = all_sum(lane, weighted) / total;
    if (lane == 0u) {
      let log_sum = log(total);
      set_lse(t, highest * p.inverse + log_sum);
      set_entropy(t, log_sum - mean);
      set_logp(t, (logits(row + u32(targets(t))) - highest) * p.inverse - log_sum);
    }
  }
`,
});

/** Overwrites logits with their gradient: dz = (dlogp (δ − p) − dH p (log p + H)) / temperature. */
export const LOG_PROB_BACKWARD = program({
  name: "logProbBackward",
  reads: { targets: "i32", entropy: "f32", lse: "f32", dLogp: "f32", dEntropy: "f32" },
  writes: { logits: "f32" },
  ints: INTS,
  floats: ["inverse"],
  body: `
  for (var t = group.x; t < p.rows; t += groups.x) {
    let row = t * p.stride;
    let goal = u32(targets(t));
    for (var j = lane; j < p.stride; j += 256u) {
      var d = 0.0;
      if (j < p.vocabulary) {
        let log_p = logits(row + j) * p.inverse - lse(t);
        d = -exp(log_p) * (dLogp(t) + dEntropy(t) * (log_p + entropy(t)));
        if (j == goal) { d += dLogp(t); }
      }
      set_logits(row + j, d * p.inverse);
    }
  }
`,
});

/**
 * Samples a token of each row: the first whose cumulative probability exceeds the row's uniform number, or at
 * temperature 0 the first of the likeliest. Every invocation adds up a piece of the row; the first one finds the piece.
 * `out` receives the tokens and, `logpAt` elements further, the bits of their log-probs.
 */
export const SAMPLE = program({
  name: "sample",
  reads: { logits: "f32", temperatures: "f32", uniforms: "f32" },
  writes: { out: "i32" },
  ints: [...INTS, "logpAt"],
  top: `${reductions(256, "sum", "max")}
var<workgroup> sums: array<f32, 256>;
var<workgroup> firsts: array<u32, 256>;`,
  body: `
  let piece = (p.vocabulary + 255u) / 256u;
  let first = min(p.vocabulary, lane * piece);
  let to = min(p.vocabulary, first + piece);
  for (var t = group.x; t < p.rows; t += groups.x) {
    let row = t * p.stride;
    let temperature = temperatures(t);
    let inverse = select(1.0 / temperature, 1.0, temperature == 0.0);
    var top = ${LOWEST};
    var best = first;
    for (var j = first; j < to; j++) {
      if (logits(row + j) > top) {
        top = logits(row + j);
        best = j;
      }
    }
    let highest = all_max(lane, top);
    var sum = 0.0;
    for (var j = first; j < to; j++) { sum += exp((logits(row + j) - highest) * inverse); }
    workgroupBarrier();
    sums[lane] = sum;
    firsts[lane] = select(p.vocabulary, best, first < to && top == highest);
    workgroupBarrier();
    if (lane == 0u) {
      var total = 0.0;
      for (var i = 0u; i < 256u; i++) { total += sums[i]; }
      var token = 0u;
      if (temperature == 0.0) {
        token = firsts[0];
        for (var i = 1u; i < 256u; i++) { token = min(token, firsts[i]); }
        token = select(0u, token, token < p.vocabulary);
      } else {
        let wanted = uniforms(t) * total;
        var before = 0.0; // the sum of the pieces before the one with the token
        var chosen = 256u;
        var last = 0u;
        for (var i = 0u; i < 256u; i++) {
          if (sums[i] > 0.0) { last = i; }
          if (before + sums[i] > wanted) {
            chosen = i;
            break;
          }
          before += sums[i];
        }
        // Rounding may keep the running sum below the number: then the last token with a probability is taken.
        let isPast = chosen == 256u;
        if (isPast) { chosen = last; }
        let begin = chosen * piece;
        let end = min(p.vocabulary, begin + piece);
        var inside = 0.0;
        for (var j = begin; j < end; j++) {
          let e = exp((logits(row + j) - highest) * inverse);
          if (e > 0.0) { token = j; }
          inside += e;
          if (!isPast && before + inside > wanted) { break; }
        }
      }
      set_out(t, i32(token));
      set_out(p.logpAt + t, bitcast<i32>((logits(row + token) - highest) * inverse - log(total)));
    }
  }
`,
});
