// Attention over the tree of spans (../layout.ts): one workgroup per row and head, in chunks of the keys it sees.
import { type Program, program } from "../program.ts";

const CHUNK = 64; // keys, one per invocation
const TABLES = { spans: "i32", ranges: "i32" } as const;

const FIND_SPAN = `
/* The span of a row: the last one that begins at or before it. */
fn span_of(row: u32) -> u32 {
  var low = 0u;
  var high = p.spanCount;
  while (high - low > 1u) {
    let middle = (low + high) / 2u;
    if (u32(spans(4u * middle)) <= row) { low = middle; } else { high = middle; }
  }
  return low;
}`;

/** Loops over the ranges of row t's context: keys begin at `keys`, values at `values`, and the row sees `seen` of them. */
const eachRange = (body: string) => `
    let span = span_of(t);
    let isLast = u32(spans(4u * span + 7u)) - 1u;
    for (var range = u32(spans(4u * span + 3u)); range <= isLast; range++) {
      let capacity = u32(ranges(3u * range + 1u));
      let keys = u32(ranges(3u * range)) + 2u * g * capacity * D;
      let values = keys + capacity * D;
      var seen = u32(ranges(3u * range + 2u));
      // The tokens of a span see those of the same span up to themselves.
      if (range == isLast) { seen -= u32(spans(4u * span)) + u32(spans(4u * span + 1u)) - 1u - t; }
      for (var chunk = 0u; chunk < seen; chunk += ${CHUNK}u) {
        let count = min(${CHUNK}u, seen - chunk);
        ${body}
      }
    }`;

/** Loops over the rows and heads of this workgroup. */
const eachRow = (body: string) => `
  for (var item = group.x; item < p.tokens * p.heads; item += groups.x) {
    let t = item / p.heads;
    let h = item % p.heads;
    let g = h / (p.heads / p.kvHeads);
    ${body}
  }
`;

/** Dimensions of a head that one invocation adds up. */
const perLane = (headDim: number) => Array.from({ length: Math.ceil(headDim / CHUNK) }, (_, i) => i);

/** `then` for each dimension `i` of this invocation; `#` in it is the number of the dimension. */
const eachDim = (headDim: number, then: string) =>
  perLane(headDim)
    .map((n) => {
      const text = then.replaceAll("#", String(n));
      const i = `lane + ${n * CHUNK}u`;
      return (n + 1) * CHUNK <= headDim ? `{ let i = ${i}; ${text} }` : `if (${i} < D) { let i = ${i}; ${text} }`;
    })
    .join("\n        ");

const INTS = ["tokens", "heads", "kvHeads", "spanCount"] as const;

/** out = softmax(q · kᵀ · scale) · v, with its log-sum-exp. */
export const attentionProgram = (headDim: number): Program =>
  program({
    name: `attention_${headDim}`,
    reads: { q: "f32", kvCache: "f32", ...TABLES },
    writes: { out: "f32", lse: "f32" },
    ints: INTS,
    floats: ["scale"],
    threads: CHUNK,
    top: `const D = ${headDim}u;
var<workgroup> query: array<f32, D>;
var<workgroup> scores: array<f32, ${CHUNK}>;
${FIND_SPAN}`,
    body: eachRow(`
    workgroupBarrier();
    for (var i = lane; i < D; i += ${CHUNK}u) { query[i] = q(item * D + i) * p.scale; }
    workgroupBarrier();
    var highest = -3.4028234e38;
    var total = 0.0;
    ${perLane(headDim)
      .map((n) => `var sum${n} = 0.0;`)
      .join(" ")}
    ${eachRange(`
        var score = 0.0;
        if (lane < count) {
          let at = keys + (chunk + lane) * D;
          for (var i = 0u; i < D; i++) { score = fma(query[i], kvCache(at + i), score); }
        }
        workgroupBarrier();
        scores[lane] = score;
        workgroupBarrier();
        var top = highest;
        for (var j = 0u; j < count; j++) { top = max(top, scores[j]); }
        let shrink = exp(highest - top);
        highest = top;
        workgroupBarrier();
        if (lane < count) { scores[lane] = exp(score - top); }
        workgroupBarrier();
        total *= shrink;
        for (var j = 0u; j < count; j++) { total += scores[j]; }
        ${eachDim(
          headDim,
          `sum# *= shrink;
          for (var j = 0u; j < count; j++) { sum# = fma(scores[j], kvCache(values + (chunk + j) * D + i), sum#); }`,
        )}`)}
    ${eachDim(headDim, "set_out(item * D + i, sum# / total);")}
    if (lane == 0u) { set_lse(item, highest + log(total)); }`),
  });

/** For backward: the log-sum-exp of each row and head, and out · dOut. */
export const ATTENTION_STATISTICS: Program = program({
  name: "attentionStatistics",
  reads: { out: "f32", dOut: "f32", lse: "f32" },
  writes: { statistics: "f32" },
  ints: ["count", "headDim"],
  threads: 64,
  body: `
  for (var item = group.x * 64u + lane; item < p.count; item += groups.x * 64u) {
    var dot = 0.0;
    for (var i = item * p.headDim; i < (item + 1u) * p.headDim; i++) { dot = fma(out(i), dOut(i), dot); }
    set_statistics(2u * item, lse(item));
    set_statistics(2u * item + 1u, dot);
  }
`,
});

/** Writes the gradient of the queries. */
export const attentionQueryBackwardProgram = (headDim: number): Program =>
  program({
    name: `attentionQueryBackward_${headDim}`,
    reads: { q: "f32", kvCache: "f32", dOut: "f32", statistics: "f32", ...TABLES },
    writes: { dqkv: "f32" },
    ints: INTS,
    floats: ["scale"],
    threads: CHUNK,
    top: `const D = ${headDim}u;
var<workgroup> query: array<f32, D>;
var<workgroup> gradient: array<f32, D>;
var<workgroup> slopes: array<f32, ${CHUNK}>;
${FIND_SPAN}`,
    body: eachRow(`
    workgroupBarrier();
    for (var i = lane; i < D; i += ${CHUNK}u) {
      query[i] = q(item * D + i) * p.scale;
      gradient[i] = dOut(item * D + i);
    }
    workgroupBarrier();
    let lse = statistics(2u * item);
    let dot = statistics(2u * item + 1u);
    ${perLane(headDim)
      .map((n) => `var sum${n} = 0.0;`)
      .join(" ")}
    ${eachRange(`
        workgroupBarrier();
        if (lane < count) {
          let key = keys + (chunk + lane) * D;
          let value = values + (chunk + lane) * D;
          var score = 0.0;
          var slope = 0.0;
          for (var i = 0u; i < D; i++) {
            score = fma(query[i], kvCache(key + i), score);
            slope = fma(gradient[i], kvCache(value + i), slope);
          }
          slopes[lane] = exp(score - lse) * (slope - dot) * p.scale;
        }
        workgroupBarrier();
        ${eachDim(
          headDim,
          `for (var j = 0u; j < count; j++) { sum# = fma(slopes[j], kvCache(keys + (chunk + j) * D + i), sum#); }`,
        )}`)}
    let to = t * (p.heads + 2u * p.kvHeads) * D + h * D;
    ${eachDim(headDim, "set_dqkv(to + i, sum#);")}`),
  });

/**
 * Adds to the gradients of keys and values. One workgroup per key and kv head goes through the rows that see the key:
 * those of its own span from it on, and those of spans whose context has its span. Each sum has one writer.
 */
export const attentionKeyBackwardProgram = (headDim: number): Program =>
  program({
    name: `attentionKeyBackward_${headDim}`,
    reads: { q: "f32", kvCache: "f32", dOut: "f32", statistics: "f32", ...TABLES, rangeRows: "i32" },
    writes: { dqkv: "f32" },
    ints: INTS,
    floats: ["scale"],
    threads: CHUNK,
    top: `const D = ${headDim}u;
var<workgroup> key: array<f32, D>;
var<workgroup> value: array<f32, D>;
var<workgroup> weights: array<f32, ${CHUNK}>;
var<workgroup> slopes: array<f32, ${CHUNK}>;
${FIND_SPAN}
fn first_range(span: u32) -> u32 { return u32(spans(4u * span + 3u)); }
/* Whether a span's context has the token at an index of the block whose first token is in a row. */
fn sees(span: u32, row: i32, index: u32) -> bool {
  for (var range = first_range(span); range < first_range(span + 1u); range++) {
    if (rangeRows(range) == row) { return index < u32(ranges(3u * range + 2u)); }
  }
  return false;
}`,
    body: `
  let each = p.heads / p.kvHeads;
  for (var item = group.x; item < p.tokens * p.kvHeads; item += groups.x) {
    let t = item / p.kvHeads;
    let g = item % p.kvHeads;
    let own = span_of(t);
    let block = first_range(own + 1u) - 1u;
    let blockRow = rangeRows(block);
    let index = t - u32(blockRow);
    let capacity = u32(ranges(3u * block + 1u));
    let at = u32(ranges(3u * block)) + (2u * g * capacity + index) * D;
    workgroupBarrier();
    for (var i = lane; i < D; i += ${CHUNK}u) {
      key[i] = kvCache(at + i) * p.scale;
      value[i] = kvCache(at + capacity * D + i);
    }
    workgroupBarrier();
    ${perLane(headDim)
      .map((n) => `var dk${n} = 0.0; var dv${n} = 0.0;`)
      .join(" ")}
    let root = rangeRows(first_range(own));
    for (var span = own; span < p.spanCount; span++) {
      if (rangeRows(first_range(span)) != root) { continue; } // another tree's
      if (span != own && !sees(span, blockRow, index)) { continue; }
      let first = max(t, u32(spans(4u * span)));
      let end = u32(spans(4u * span)) + u32(spans(4u * span + 1u));
      let pairs = (end - first) * each; // of a row and a head
      for (var chunk = 0u; chunk < pairs; chunk += ${CHUNK}u) {
        let count = min(${CHUNK}u, pairs - chunk);
        workgroupBarrier();
        if (lane < count) {
          let pair = chunk + lane;
          let row = (first + pair / each) * p.heads + g * each + pair % each;
          var score = 0.0;
          var slope = 0.0;
          for (var i = 0u; i < D; i++) {
            score = fma(q(row * D + i), key[i], score);
            slope = fma(dOut(row * D + i), value[i], slope);
          }
          let weight = exp(score - statistics(2u * row));
          weights[lane] = weight;
          slopes[lane] = weight * (slope - statistics(2u * row + 1u)) * p.scale;
        }
        workgroupBarrier();
        ${eachDim(
          headDim,
          `for (var j = 0u; j < count; j++) {
          let pair = chunk + j;
          let from_ = ((first + pair / each) * p.heads + g * each + pair % each) * D + i;
          dk# = fma(slopes[j], q(from_), dk#);
          dv# = fma(weights[j], dOut(from_), dv#);
        }`,
        )}
      }
    }
    let to = (t * (p.heads + 2u * p.kvHeads) + p.heads + g) * D;
    ${eachDim(
      headDim,
      `set_dqkv(to + i, dqkv(to + i) + dk#);
      let v = to + p.kvHeads * D + i;
      set_dqkv(v, dqkv(v) + dv#);`,
    )}
  }
`,
  });
