// Compiles every kernel that does not depend on a model's shape for an old, a middle and a new GPU, without a GPU.
import { describe, expect, test } from "vitest";
import { hasNvcc, spillsOf } from "../../../../test/devices/nvcc.ts";
import { some } from "../../../../test/helpers/cases.ts";
import { sourcesFor } from "./kernel-sources.ts";
import { CHAINED } from "./kernels/common.ts";

test("sources are self-contained: NVRTC has no headers", () => {
  for (const { name, code } of sourcesFor(90)) {
    expect(code, name).not.toMatch(/#include (?!EMULATED)|\bstd::|\bINFINITY\b|\bprintf\b/);
    expect(code, name).toContain('extern "C" __global__');
  }
  expect(sourcesFor(75).length).toBeLessThan(sourcesFor(80).length); // bf16 tensor cores need capability 8.0
  expect(sourcesFor(70)).toEqual([]);
});

test("kernels that advance a step's tables are not chained, since tables are read ahead", () => {
  for (const kernel of ["advance", "uniforms", "convert_f32_bf16"]) expect(CHAINED.test(kernel)).toBe(false);
  for (const { name, code } of sourcesFor(90)) {
    const names = [...code.matchAll(/__global__ void (?:__\w+\([^)]*\) )*(\w+)\(/g)].map(([, kernel]) => kernel!);
    if (names.some((kernel) => CHAINED.test(kernel))) expect(code, name).toMatch(/AFTER_PREVIOUS\(\)|CHAINED\(\)/);
  }
});

describe.skipIf(!hasNvcc)("with nvcc (skipped where it is not installed)", () => {
  test.each(
    some(1, [
      [90, "sm_90a"],
      [80, "sm_80"],
      [75, "sm_75"],
    ] as const),
  )("all kernels compile for %i and keep to their registers", { timeout: 240_000 }, async (capability, target) => {
    for (const [name, spills] of await spillsOf(sourcesFor(capability), target)) {
      expect(spills.length, name).toBeGreaterThan(0);
      expect(Math.max(...spills), name).toBeLessThanOrEqual(16); // bytes
    }
  });
});
