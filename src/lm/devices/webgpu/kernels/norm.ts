// RMSNorm and its backward, one workgroup per row; sums over rows, one workgroup per 32 columns.
import { program, reductions } from "../program.ts";

/** into += residual (if any), out = norm(into) · scale. */
export const rmsNormProgram = (hasResidual: boolean) =>
  program({
    name: hasResidual ? "rmsNorm_residual" : "rmsNorm",
    reads: { ...(hasResidual && { residual: "f32" as const }), scale: "f32" },
    writes: { into: "f32", out: "f32", rstd: "f32" },
    ints: ["rows", "width"],
    floats: ["eps"],
    top: reductions(256, "sum"),
    body: `
  for (var t = group.x; t < p.rows; t += groups.x) {
    var squares = 0.0;
    for (var i = lane; i < p.width; i += 256u) {
      let at = t * p.width + i;
      let value = into(at)${hasResidual ? " + residual(at);\n      set_into(at, value)" : ""};
      squares += value * value;
    }
    let r = 1.0 / sqrt(all_sum(lane, squares) / f32(p.width) + p.eps);
    for (var i = lane; i < p.width; i += 256u) {
      let at = t * p.width + i;
      set_out(at, into(at) * r * scale(i));
    }
    if (lane == 0u) { set_rstd(t, r); }
  }
`,
  });

/** dx += the gradient through the norm. */
export const RMS_NORM_BACKWARD = program({
  name: "rmsNormBackward",
  reads: { dOut: "f32", x: "f32", scale: "f32", rstd: "f32" },
  writes: { dx: "f32" },
  ints: ["rows", "width"],
  top: reductions(256, "sum"),
  body: `
  for (var t = group.x; t < p.rows; t += groups.x) {
    let r = rstd(t);
    var dot = 0.0;
    for (var i = lane; i < p.width; i += 256u) {
      let at = t * p.width + i;
      dot += dOut(at) * scale(i) * x(at);
    }
    let b = -all_sum(lane, dot) * r * r * r / f32(p.width);
    for (var i = lane; i < p.width; i += 256u) {
      let at = t * p.width + i;
      set_dx(at, dx(at) + dOut(at) * scale(i) * r + x(at) * b);
    }
  }
`,
});

/** Adds to `sums` the sum of `term` over rows, 8 rows at a time in parallel. */
const columnSums = (name: string, reads: Record<string, "f32">, ints: readonly string[], term: string) =>
  program({
    name,
    reads,
    writes: { sums: "f32" },
    ints: ["rows", "width", ...ints],
    top: "var<workgroup> parts: array<f32, 256>;",
    body: `
  let i = group.x * 32u + lane % 32u;
  var sum = 0.0;
  if (i < p.width) {
    for (var t = lane / 32u; t < p.rows; t += 8u) {${term}}
  }
  parts[lane] = sum;
  workgroupBarrier();
  if (lane < 32u && i < p.width) {
    for (var k = 1u; k < 8u; k++) { sum += parts[lane + 32u * k]; }
    set_sums(i, sums(i) + sum);
  }
`,
  });

/** The gradient of a norm's scale. */
export const NORM_SCALE_BACKWARD = columnSums(
  "normScaleBackward",
  { dOut: "f32", x: "f32", rstd: "f32" },
  [],
  " sum += dOut(t * p.width + i) * x(t * p.width + i) * rstd(t); ",
);

/** The gradient of a bias. */
export const BIAS_BACKWARD = columnSums("biasBackward", { dOut: "f32" }, [], " sum += dOut(t * p.width + i); ");

/** The gradient of the scale of head norms: `count` heads from `first` on, in rows of `heads` normed and other heads. */
export const HEAD_SCALE_BACKWARD = columnSums(
  "headScaleBackward",
  { dqkv: "f32", qkv: "f32", rstd: "f32" },
  ["first", "count", "normed", "stride"],
  `
      for (var h = p.first; h < p.first + p.count; h++) {
        let at = t * p.stride + h * p.width + i;
        sum += dqkv(at) * qkv(at) * rstd(t * p.normed + h);
      }
    `,
);
