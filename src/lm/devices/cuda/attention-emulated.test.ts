// Compares attention kernels on an emulated GPU with plain sums (needs a C++ compiler, no GPU).
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { some } from "../../../../test/helpers/cases.ts";
import { type AttentionGpu, type AttentionShape, attentionKernels, attentionPlanSource } from "./attention.ts";

const run = promisify(execFile);
const emulator = fileURLToPath(new URL("../../../../test/devices/emulator/", import.meta.url));
const compiler = await run("g++", ["--version"]).then(
  () => process.platform === "linux", // the emulator needs fibers
  () => false,
);

const T4 = { capability: 75, sharedPerBlock: 64 << 10 };
const A100 = { capability: 80, sharedPerBlock: 163 << 10 };
const H200 = { capability: 90, sharedPerBlock: 227 << 10 };
const CASES: [instructionSet: string, AttentionShape, AttentionGpu][] = [
  ["float", { heads: 4, kvHeads: 2, headDim: 24, precision: "f32" }, T4],
  ["wgmma", { heads: 3, kvHeads: 1, headDim: 64, precision: "bf16" }, H200],
  ["mma", { heads: 3, kvHeads: 1, headDim: 24, precision: "bf16" }, A100],
  ["float", { heads: 3, kvHeads: 1, headDim: 128, precision: "f32" }, T4],
  ["wgmma", { heads: 2, kvHeads: 1, headDim: 128, precision: "bf16" }, H200],
];

interface Errors {
  readonly tree: string;
  readonly out: number;
  readonly lse: number;
  readonly dqkv: number;
}

/** Runs the kernels on several trees of spans; returns the relative errors of each. */
async function errorsOf(shape: AttentionShape, gpu: AttentionGpu): Promise<Errors[]> {
  const { suffix, sources, forward, backward } = attentionKernels(shape, gpu);
  const folder = await mkdtemp(join(tmpdir(), "emulated-"));
  try {
    const files = { FORWARD: sources[0]!, BACKWARD: sources[1]!, PLAN: attentionPlanSource };
    const defines: string[] = [];
    for (const [name, { code }] of Object.entries(files)) {
      const path = join(folder, `${name}.inc`);
      // The emulator runs one block at a time and declares its shared memory under the same name.
      await writeFile(path, code.replaceAll(/extern __shared__[^;]*;/g, "").replaceAll('extern "C"', ""));
      defines.push(`-D${name}="${path}"`);
    }
    const numbers = {
      ...{ SUFFIX: suffix, ELEMENT: shape.precision === "f32" ? "float" : "short" },
      ...{ HEADS_ALL: shape.heads, KV_HEADS: shape.kvHeads },
      ...{ FORWARD_HEADS: forward.heads, BACKWARD_HEADS: backward.heads },
      FORWARD_QUERIES: (16 * forward.warps) / forward.heads,
      BACKWARD_QUERIES: (16 * backward.warps) / backward.heads,
      BACKWARD_KEYS: 16 * backward.warps,
    };
    for (const [name, value] of Object.entries(numbers)) defines.push(`-D${name}=${value}`);
    const program = join(folder, "attention");
    const flags = ["-std=c++17", "-O1", "-w", ...defines, "-I", emulator, "-o", program];
    await run("g++", [...flags, join(emulator, "attention.cpp")]);
    const { stdout } = await run(program, { timeout: 120_000 });
    const lines = stdout.trim().split("\n");
    return lines.map((line) => JSON.parse(line.replaceAll(/-?nan/g, "null")) as Errors);
  } finally {
    await rm(folder, { recursive: true });
  }
}

describe.skipIf(!compiler)("emulated (skipped where there is no g++),", () => {
  test.each(some(2, CASES))(
    "by %s: %o is right to its precision on every tree",
    { timeout: 180_000 },
    async (instructionSet, shape, gpu) => {
      expect(attentionKernels(shape, gpu).forward.instructionSet).toBe(instructionSet);
      const limits = shape.precision === "f32" ? { sums: 3e-6, lse: 1e-6 } : { sums: 6e-3, lse: 1e-5 };
      const trees = await errorsOf(shape, gpu);
      expect(trees).toHaveLength(4);
      for (const { tree, out, lse, dqkv } of trees) {
        for (const sum of [out, dqkv]) expect(sum ?? Number.NaN, tree).toBeLessThan(limits.sums);
        expect(lse ?? Number.NaN, tree).toBeLessThan(limits.lse);
      }
    },
  );
});
