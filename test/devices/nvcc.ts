// CUDA's compiler, if installed; it needs no GPU.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { KernelSource } from "../../src/lm/devices/cuda/launch.ts";

const run = promisify(execFile);

export const hasNvcc = await run("nvcc", ["--version"]).then(
  () => true,
  () => false,
);

/** Compiles sources for a target such as "sm_80"; the bytes of registers each of their kernels spills, by source. */
export async function spillsOf(sources: readonly KernelSource[], target: string): Promise<Map<string, number[]>> {
  const folder = await mkdtemp(join(tmpdir(), "kernels-"));
  const spills = new Map<string, number[]>();
  try {
    for (const { name, code } of sources) {
      const file = join(folder, `${name}.cu`);
      await writeFile(file, code);
      const gencode = `arch=${target.replace("sm", "compute")},code=${target}`;
      const flags = ["-cubin", "-std=c++17", "-gencode", gencode, "-Xptxas", "-v", "-o", `${file}.cubin`, file];
      const { stderr, stdout } = await run("nvcc", flags);
      const found = (stderr + stdout).matchAll(/(\d+) bytes spill stores/g);
      spills.set(
        name,
        [...found].map(([, bytes]) => Number(bytes)),
      );
    }
    return spills;
  } finally {
    await rm(folder, { recursive: true });
  }
}
