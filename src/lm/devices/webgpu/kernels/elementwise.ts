// Kernels over single numbers and over rows picked by id.
import { elementwise, program, reductions } from "../program.ts";

export const FILL = elementwise({ name: "fill", writes: { x: "u32" }, ints: ["bits"], each: "set_x(i, p.bits);" });

/** y += x. */
export const ADD_TO = elementwise({
  name: "addTo",
  reads: { x: "f32" },
  writes: { y: "f32" },
  each: "set_y(i, y(i) + x(i));",
});

/** out[t] = x[ids[t]]. */
export const GATHER = elementwise({
  name: "gather",
  reads: { x: "f32", ids: "i32" },
  writes: { out: "f32" },
  ints: ["width"],
  each: "set_out(i, x(u32(ids(i / p.width)) * p.width + i % p.width));",
});

/**
 * x[ids[t]] += y[t], in order of t. The workgroup of an id's first row adds all rows of that id, so each sum has one
 * writer.
 */
export const SCATTER_ADD = program({
  name: "scatterAdd",
  reads: { y: "f32", ids: "i32" },
  writes: { x: "f32" },
  ints: ["rows", "width"],
  threads: 64,
  top: "var<workgroup> earlier: array<u32, 64>;",
  body: `
  for (var row = group.x; row < p.rows; row += groups.x) {
    let id = ids(row);
    var found = 0u;
    for (var t = lane; t < row; t += 64u) { found |= u32(ids(t) == id); }
    workgroupBarrier();
    earlier[lane] = found;
    workgroupBarrier();
    if (lane == 0u) {
      for (var i = 1u; i < 64u; i++) { earlier[0] |= earlier[i]; }
    }
    if (workgroupUniformLoad(&earlier[0]) != 0u) { continue; }
    for (var i = lane; i < p.width; i += 64u) {
      let at = u32(id) * p.width + i;
      var sum = x(at);
      for (var t = row; t < p.rows; t++) {
        if (ids(t) == id) { sum += y(t * p.width + i); }
      }
      set_x(at, sum);
    }
  }
`,
});

// The exponential of a negative number cannot overflow, which WGSL would leave undefined.
const SIGMOID = `
fn sigmoid(x: f32) -> f32 {
  let e = exp(-abs(x));
  return select(e, 1.0, x >= 0.0) / (1.0 + e);
}`;

/** out = silu(gate) · up. */
export const SWIGLU = elementwise({
  name: "swiGlu",
  reads: { gateUp: "f32" },
  writes: { out: "f32" },
  ints: ["width"],
  top: SIGMOID,
  each: `
    let at = 2u * p.width * (i / p.width) + i % p.width;
    let gate = gateUp(at);
    set_out(i, gate * sigmoid(gate) * gateUp(at + p.width));
  `,
});

export const SWIGLU_BACKWARD = elementwise({
  name: "swiGluBackward",
  reads: { gateUp: "f32", dOut: "f32" },
  writes: { dGateUp: "f32" },
  ints: ["width"],
  top: SIGMOID,
  each: `
    let at = 2u * p.width * (i / p.width) + i % p.width;
    let gate = gateUp(at);
    let s = sigmoid(gate);
    let slope = s * (1.0 + gate * (1.0 - s));
    set_dGateUp(at, dOut(i) * gateUp(at + p.width) * slope);
    set_dGateUp(at + p.width, dOut(i) * gate * s);
  `,
});

/** AdamW as in PyTorch; the factors are computed in double precision by the host. */
export const ADAMW = elementwise({
  name: "adamW",
  reads: { grad: "f32" },
  writes: { value: "f32", m: "f32", v: "f32" },
  floats: ["b1", "c1", "b2", "c2", "decay", "step", "root", "eps", "scale"],
  each: `
    let g = grad(i) * p.scale;
    let first = p.b1 * m(i) + p.c1 * g;
    let second = p.b2 * v(i) + p.c2 * (g * g);
    set_m(i, first);
    set_v(i, second);
    set_value(i, value(i) * p.decay - p.step * (first / (sqrt(second) * p.root + p.eps)));
  `,
});

/** Numbers that one workgroup of SUM_SQUARES adds up. */
export const SQUARE_BLOCK = 16_384;

/** Sums of squares over blocks; the host adds them up in double precision. */
export const SUM_SQUARES = program({
  name: "sumSquares",
  reads: { x: "f32" },
  writes: { sums: "f32" },
  ints: ["count"],
  top: reductions(256, "sum"),
  body: `
  let first = group.x * ${SQUARE_BLOCK}u;
  let end = min(p.count, first + ${SQUARE_BLOCK}u);
  var sum = 0.0;
  for (var i = first + lane; i < end; i += 256u) { sum += x(i) * x(i); }
  let total = all_sum(lane, sum);
  if (lane == 0u) { set_sums(group.x, total); }
`,
});
