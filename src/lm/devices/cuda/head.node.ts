// Log-probs of rows of logits, forward and backward, called by lm-head.ts.
import type { Buffer, Dtype } from "../device.ts";
import type { HeadKernels, LogitRows } from "../lm-head.ts";
import { at, f32, i32 } from "./arguments.node.ts";
import { HEAD_THREADS } from "./kernels/head.ts";
import type { Launch } from "./launch.ts";

export function headKernels(launch: Launch, alloc: (dtype: Dtype, length: number) => Buffer): HeadKernels {
  const threads = [HEAD_THREADS, 1, 1] as const;
  const sizes = ({ vocabulary, stride, inverseTemperature }: LogitRows) => [
    i32(vocabulary),
    i32(stride),
    f32(inverseTemperature),
  ];
  return {
    logProb: (rows, { targets, logp, entropy, lse }) => {
      const args = [...[rows.logits, targets, logp, entropy, lse].map(at), ...sizes(rows)];
      launch("logProb", [rows.rows, 1, 1], threads, 0, args);
    },
    logProbBackward: (rows, { targets, entropy, lse, dLogp, dEntropy }, { dtype }) => {
      const { logits } = rows;
      const dLogits = dtype === "f32" ? logits : alloc(dtype, rows.rows * rows.stride);
      const args = [...[logits, dLogits, targets, entropy, lse, dLogp, dEntropy].map(at), ...sizes(rows)];
      launch(`logProbBackward_${dtype}`, [rows.rows, 1, 1], threads, 0, args);
      return dLogits;
    },
  };
}
