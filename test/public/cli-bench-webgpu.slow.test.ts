// `sqlenv bench webgpu` on whatever adapter there is; a software adapter measures a tiny model only.
import { expect, test } from "vitest";
import { sqlenv } from "../helpers/cli-process.ts";
import { missingWebGpu } from "../helpers/webgpu.ts";

const missing = missingWebGpu();

test.skipIf(missing !== undefined)(
  `measures WebGPU beside the CPU${missing ? ` (${missing})` : ""}`,
  async () => {
    const { code, stdout, stderr } = await sqlenv(["bench", "webgpu", "--quick", "--kernels", "--json"]);
    expect(code, stderr).toBe(0);
    const result = JSON.parse(stdout);
    expect(result.adapter.limits.maxBufferSize).toBeGreaterThan(0);
    expect(result.gflops).toBeGreaterThan(0);
    expect(result.devices.map(({ device }: { device: string }) => device)).toEqual(
      expect.arrayContaining(["WebGPU", "CPU", "CPU, WebAssembly"]),
    );
    for (const { matmul_gflops, models } of result.devices) {
      expect(matmul_gflops).toBeGreaterThan(0);
      expect(models[0].training_tokens_per_s).toBeGreaterThan(0);
    }
    expect(result.kernels.map(({ kernel }: { kernel: string }) => kernel)).toContain("attention backward");
  },
  300_000,
);
