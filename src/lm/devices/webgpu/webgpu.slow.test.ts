// Runs the device suite on WebGPU in Node, and compares every kernel with the CPU's and with itself.
import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { distance } from "../../../../test/devices/bench.ts";
import { everyKernel } from "../../../../test/devices/every.ts";
import { deviceSuite } from "../../../../test/devices/suite.ts";
import { missingWebGpu } from "../../../../test/helpers/webgpu.ts";
import { createCpu } from "../cpu/start.node.ts";
import type { Device } from "../device.ts";
import { createWebGpu, findWebGpu } from "./create.node.ts";
import type { WebGpuDevice } from "./device.ts";

const missing = missingWebGpu();
const COMPILING_MS = 300_000; // a software adapter compiles each kernel for a good part of a second

function on<T>(device: Device, use: (device: Device) => T): T {
  try {
    return use(device);
  } finally {
    device.close();
  }
}

describe.skipIf(missing !== undefined)(`WebGPU${missing ? ` (${missing})` : ""}`, () => {
  deviceSuite("webgpu", () => createWebGpu(), { forward: 1e-5, backward: 2e-5, optimizer: 2e-6 });

  test("auto takes no software adapter", () => {
    const { software } = on(createWebGpu(), (device) => (device as WebGpuDevice).adapter);
    expect(findWebGpu() === null).toBe(software || !existsSync("/dev/dri"));
  });

  test(
    "every kernel agrees with the CPU, and has the same bits again",
    () => {
      const want = on(createCpu({ threads: 1 }), everyKernel);
      const got = on(createWebGpu(), everyKernel);
      const again = on(createWebGpu(), everyKernel);
      for (const [kernel, values] of want) {
        if (kernel.startsWith("moveBlock")) continue; // the one kernel that is optional
        expect(again.get(kernel), kernel).toEqual(got.get(kernel));
        if (kernel.startsWith("sample, ")) continue; // rounding may move a boundary between tokens
        expect(distance(got.get(kernel)!, values), kernel).toBeLessThanOrEqual(5e-5);
      }
    },
    COMPILING_MS,
  );
});
