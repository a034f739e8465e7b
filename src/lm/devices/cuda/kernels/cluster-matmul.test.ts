// Tests how matmuls of a batch are divided, and that their kernels compile without a GPU.
import { expect, test } from "vitest";
import { hasNvcc, spillsOf } from "../../../../../test/devices/nvcc.ts";
import { ALL } from "../../../../../test/helpers/cases.ts";
import {
  type ClusteredShape,
  clusteredBlocks,
  clusteredName,
  clusteredShape,
  clusteredShared,
  clusteredSource,
} from "./cluster-matmul.ts";

const H200 = { multiprocessors: 132, sharedPerBlock: 227 << 10 };
const QKV = [4096, 1024, "bf16"] as const;
const GATE_UP = [6144, 1024, "gated"] as const;

test("all of a weight is read at once, by as many blocks as the GPU has room for", () => {
  for (const rows of [17, 32, 33, 64]) {
    for (const [n, k, end] of [QKV, GATE_UP]) {
      const shape = clusteredShape(rows, n, k, end, H200)!;
      expect(shape.columns).toBeGreaterThanOrEqual(rows);
      expect(clusteredBlocks(shape, n)).toBeLessThanOrEqual(132);
      expect(clusteredBlocks(shape, n)).toBeGreaterThan(90);
      expect(clusteredShared(shape)).toBeLessThanOrEqual(227 << 10);
      expect(clusteredBlocks(shape, n) * (64 * shape.groups) * (k / shape.pieces)).toBe(n * k);
    }
  }
});

test("sizes that do not fit are left to cuBLAS", () => {
  expect(clusteredShape(65, ...QKV, H200)).toBeUndefined();
  expect(clusteredShape(64, 4096 + 8, 1024, "bf16", H200)).toBeUndefined();
  expect(clusteredShape(64, 4096, 1000, "bf16", H200)).toBeUndefined();
  // Many times more than fits on the GPU at once.
  expect(clusteredShape(64, 151_936, 1024, "f32", H200)).toBeUndefined();
  expect(clusteredShape(64, ...QKV, { multiprocessors: 132, sharedPerBlock: 48 << 10 })).toBeUndefined();
});

test("kernels are named by all they are compiled for", () => {
  const shape = clusteredShape(64, ...QKV, H200)!;
  const others: ClusteredShape[] = [
    ...[{ end: "f32" }, { columns: 32 }, { groups: 2 }, { pieces: 4 }, { k: 2048 }].map(
      (change) => ({ ...shape, ...change }) as ClusteredShape,
    ),
  ];
  expect(new Set([shape, ...others].map(clusteredName)).size).toBe(6);
  expect(clusteredSource(shape).code).toContain(`${clusteredName(shape)}(`);
});

test.skipIf(!hasNvcc || !ALL)(
  "kernels compile (skipped where nvcc is not installed)",
  { timeout: 120_000 },
  async () => {
    const sources = [QKV, GATE_UP, [192, 64, "f32"] as const].flatMap(([n, k, end]) =>
      [32, 64].map((rows) => clusteredSource(clusteredShape(rows, n, k, end, H200)!)),
    );
    for (const [name, spills] of await spillsOf(sources, "sm_90a")) expect(spills, name).toEqual([0]);
  },
);
