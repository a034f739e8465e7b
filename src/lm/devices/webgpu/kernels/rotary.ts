// Rotary embedding of queries and keys, with their norms or bias, and its backward: one workgroup per token and head.
import { program, reductions } from "../program.ts";

const SIZES = ["tokens", "heads", "kvHeads", "headDim"] as const;
const EACH_HEAD = `
  let d = p.headDim;
  let half = d / 2u;
  let normed = p.heads + p.kvHeads;
  let width = (p.heads + 2u * p.kvHeads) * d;
  for (var item = group.x; item < p.tokens * normed; item += groups.x) {
    let t = item / normed;
    let h = item % normed;
    let at = t * width + h * d;
    let turn = u32(positions(t)) * d;`;

/** Writes the rotated heads of queries to `q` and those of keys to `k`. */
export const rotateProgram = (vectors: "norms" | "bias" | "neither") => {
  const scale = "select(kScale(i), qScale(i), h < p.heads)";
  const value = vectors === "bias" ? "qkv(at + i) + bias(h * d + i)" : "qkv(at + i)";
  return program({
    name: `rotate_${vectors}`,
    reads: {
      ...{ qkv: "f32", positions: "i32", rotary: "f32" },
      ...(vectors === "norms" && { qScale: "f32" as const, kScale: "f32" as const }),
      ...(vectors === "bias" && { bias: "f32" as const }),
    },
    writes: { q: "f32", k: "f32", ...(vectors === "norms" && { rstd: "f32" as const }) },
    ints: SIZES,
    floats: ["eps"],
    threads: 64,
    top: `${vectors === "norms" ? reductions(64, "sum") : ""}
fn head(at: u32, h: u32, d: u32, i: u32, r: f32) -> f32 {
  return ${vectors === "norms" ? `(${value}) * r * ${scale}` : value};
}`,
    body: `${EACH_HEAD}
    var r = 1.0;
    ${
      vectors === "norms"
        ? `var squares = 0.0;
    for (var i = lane; i < d; i += 64u) { squares += qkv(at + i) * qkv(at + i); }
    r = 1.0 / sqrt(all_sum(lane, squares) / f32(d) + p.eps);
    if (lane == 0u) { set_rstd(item, r); }`
        : ""
    }
    for (var i = lane; i < half; i += 64u) {
      let c = rotary(turn + i);
      let s = rotary(turn + half + i);
      let a = head(at, h, d, i, r);
      let b = head(at, h, d, half + i, r);
      let first = a * c - b * s;
      let second = b * c + a * s;
      if (h < p.heads) {
        let to = (t * p.heads + h) * d + i;
        set_q(to, first);
        set_q(to + half, second);
      } else {
        let to = (t * p.kvHeads + h - p.heads) * d + i;
        set_k(to, first);
        set_k(to + half, second);
      }
    }
  }
`,
  });
};

/** Stores rotated keys, and values with their bias, in the KV cache. */
export const storeProgram = (hasBias: boolean) =>
  program({
    name: hasBias ? "store_bias" : "store",
    reads: {
      ...{ k: "f32", qkv: "f32", blockAddresses: "i32", capacities: "i32", indices: "i32" },
      ...(hasBias && { bias: "f32" as const }),
    },
    writes: { kvCache: "f32" },
    ints: ["count", ...SIZES],
    body: `
  let d = p.headDim;
  let keys = p.kvHeads * d;
  for (var n = group.x * 256u + lane; n < p.count; n += groups.x * 256u) {
    let t = n / keys;
    let g = n % keys / d;
    let i = n % d;
    let capacity = u32(capacities(t));
    let to = u32(blockAddresses(t)) + (2u * g * capacity + u32(indices(t))) * d + i;
    let v = (p.heads + p.kvHeads + g) * d + i;
    set_kvCache(to, k(n));
    set_kvCache(to + capacity * d, qkv(t * (p.heads * d + 2u * keys) + v)${hasBias ? " + bias(v)" : ""});
  }
`,
  });

/** In place: rotates the gradients of queries and keys back. */
export const UNROTATE = program({
  name: "unrotate",
  reads: { positions: "i32", rotary: "f32" },
  writes: { dqkv: "f32" },
  ints: SIZES,
  threads: 64,
  body: `${EACH_HEAD}
    for (var i = lane; i < half; i += 64u) {
      let c = rotary(turn + i);
      let s = rotary(turn + half + i);
      let a = dqkv(at + i);
      let b = dqkv(at + half + i);
      set_dqkv(at + i, a * c + b * s);
      set_dqkv(at + half + i, b * c - a * s);
    }
  }
`,
});

/** In place: turns gradients of normed heads into gradients of the rows of qkv. */
export const HEAD_NORM_BACKWARD = program({
  name: "headNormBackward",
  reads: { qkv: "f32", rstd: "f32", qScale: "f32", kScale: "f32" },
  writes: { dqkv: "f32" },
  ints: SIZES,
  threads: 64,
  top: `${reductions(64, "sum")}
fn scale(isQuery: bool, i: u32) -> f32 { return select(kScale(i), qScale(i), isQuery); }`,
  body: `
  let d = p.headDim;
  let normed = p.heads + p.kvHeads;
  for (var item = group.x; item < p.tokens * normed; item += groups.x) {
    let h = item % normed;
    let at = (item / normed * (p.heads + 2u * p.kvHeads) + h) * d;
    let r = rstd(item);
    var dot = 0.0;
    for (var i = lane; i < d; i += 64u) { dot += dqkv(at + i) * scale(h < p.heads, i) * qkv(at + i); }
    let b = -all_sum(lane, dot) * r * r * r / f32(d);
    for (var i = lane; i < d; i += 64u) {
      set_dqkv(at + i, dqkv(at + i) * scale(h < p.heads, i) * r + qkv(at + i) * b);
    }
  }
`,
});
