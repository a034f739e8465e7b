// The device suite on WebGPU in a browser's worker, with plain.ts as the test runner, and every kernel against the CPU's.
// Bundled by src/lm/devices/webgpu/browser.slow.test.ts; posts a Report.
import { describe, expect, test } from "vitest";
import { createCpuDevice } from "../../src/lm/devices/cpu/device.ts";
import { createWebGpuInBrowser } from "../../src/lm/devices/webgpu/create.web.ts";
import { whyNoGpu } from "../../src/lm/devices/webgpu/find.web.ts";
import { checkDevice } from "../../src/lm/engine/check-device.ts";
import { distance } from "./bench.ts";
import { everyKernel } from "./every.ts";
import { type Outcome, runAll } from "./plain.ts";
import { deviceSuite } from "./suite.ts";

export interface Report extends Outcome {
  readonly adapter: string;
  /** Why no GPU is found where none may be emulated. */
  readonly real: string | undefined;
}

async function run(): Promise<Report> {
  const device = await createWebGpuInBrowser();
  const second = await createWebGpuInBrowser();
  deviceSuite("webgpu", () => device, { forward: 1e-5, backward: 2e-5, optimizer: 2e-6 });
  describe("every kernel", () => {
    test("agrees with the CPU's", () => {
      const [want, got] = [everyKernel(createCpuDevice()), everyKernel(second)];
      for (const [kernel, values] of want) {
        const isCompared = !kernel.startsWith("moveBlock") && !kernel.startsWith("sample, ");
        if (isCompared) expect(distance(got.get(kernel)!, values), kernel).toBeLessThanOrEqual(5e-5);
      }
    });
    test("works together in a tiny model", () => checkDevice(second));
    test("reports a command that WebGPU refuses", () => {
      const buffer = second.alloc("f32", 4);
      second.copy({ ...buffer, length: 2 ** 20 }, second.alloc("f32", 4));
      let message = "";
      try {
        second.read(buffer);
      } catch (error) {
        message = String(error);
      }
      expect(message.includes("WebGPU refused a command")).toBe(true);
      second.close();
    });
  });
  const outcome = await runAll(() => {});
  return { ...outcome, adapter: device.variant, real: await whyNoGpu() };
}

run().then(
  (report) => postMessage(report),
  (error: unknown) => postMessage({ passed: 0, failed: [{ name: "start", error: String(error) }] }),
);
