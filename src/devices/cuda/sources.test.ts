// Every kernel that does not depend on a model's shape compiles for the oldest, a middle and a new card, without a GPU.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { sourcesFor } from "./sources.ts";

const run = promisify(execFile);
const hasCompiler = await run("nvcc", ["--version"]).then(
  () => true,
  () => false,
);

test("sources stand alone: NVRTC has no headers", () => {
  for (const { name, code } of sourcesFor(90)) {
    expect(code, name).not.toMatch(/#include|\bstd::|\bINFINITY\b|\bprintf\b/);
    expect(code, name).toContain('extern "C" __global__');
  }
  expect(sourcesFor(75).length).toBeLessThan(sourcesFor(80).length); // bf16 tensor cores came with 8.0
  expect(sourcesFor(70)).toEqual([]);
});

describe.skipIf(!hasCompiler)("with nvcc (skipped where it is not installed)", () => {
  test.each([
    [75, "sm_75"],
    [80, "sm_80"],
    [90, "sm_90a"],
  ])("all kernels compile for %i and keep to their registers", { timeout: 240_000 }, async (capability, target) => {
    const folder = await mkdtemp(join(tmpdir(), "kernels-"));
    try {
      for (const { name, code } of sourcesFor(capability)) {
        const file = join(folder, `${name}.cu`);
        await writeFile(file, code);
        const gencode = `arch=${target.replace("sm", "compute")},code=${target}`;
        const flags = ["-cubin", "-std=c++17", "-gencode", gencode, "-Xptxas", "-v", "-o", `${file}.cubin`, file];
        const { stderr, stdout } = await run("nvcc", flags);
        const spills = [...(stderr + stdout).matchAll(/(\d+) bytes spill stores/g)].map(([, bytes]) => Number(bytes));
        expect(spills.length, name).toBeGreaterThan(0);
        expect(Math.max(...spills), name).toBeLessThanOrEqual(16); // bytes
      }
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
