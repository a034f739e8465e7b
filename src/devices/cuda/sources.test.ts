// Every kernel that does not depend on a model's shape compiles for the oldest, a middle and a new card, without a GPU.
import { describe, expect, test } from "vitest";
import { hasNvcc, spillsOf } from "../../../test/devices/nvcc.ts";
import { sourcesFor } from "./sources.ts";

test("sources stand alone: NVRTC has no headers", () => {
  for (const { name, code } of sourcesFor(90)) {
    expect(code, name).not.toMatch(/#include (?!EMULATED)|\bstd::|\bINFINITY\b|\bprintf\b/);
    expect(code, name).toContain('extern "C" __global__');
  }
  expect(sourcesFor(75).length).toBeLessThan(sourcesFor(80).length); // bf16 tensor cores came with 8.0
  expect(sourcesFor(70)).toEqual([]);
});

describe.skipIf(!hasNvcc)("with nvcc (skipped where it is not installed)", () => {
  test.each([
    [75, "sm_75"],
    [80, "sm_80"],
    [90, "sm_90a"],
  ])("all kernels compile for %i and keep to their registers", { timeout: 240_000 }, async (capability, target) => {
    for (const [name, spills] of await spillsOf(sourcesFor(capability), target)) {
      expect(spills.length, name).toBeGreaterThan(0);
      expect(Math.max(...spills), name).toBeLessThanOrEqual(16); // bytes
    }
  });
});
