// Tests the WebGPU device: what it computes at all, its limits and its errors. webgpu.slow.test.ts tests every kernel.
import { describe, expect, test } from "vitest";
import { Bench, distance } from "../../../../test/devices/bench.ts";
import { missingWebGpu } from "../../../../test/helpers/webgpu.ts";
import { OOMError, SqlEnvError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { createCpu } from "../cpu/start.node.ts";
import type { Device } from "../device.ts";
import { createWebGpu } from "./create.node.ts";

const missing = missingWebGpu();

function on<T>(device: Device, use: (device: Device) => T): T {
  try {
    return use(device);
  } finally {
    device.close();
  }
}

describe.skipIf(missing !== undefined)(`WebGPU${missing ? ` (${missing})` : ""}`, () => {
  test("a matmul and a sum of squares are the CPU's", () => {
    const [want, got] = [createCpu({ threads: 1 }), createWebGpu()].map((device) =>
      on(device, () => {
        const r = random("webgpu");
        const b = new Bench(device, { forward: 0, backward: 0, optimizer: 0 });
        const [weight, out] = [b.weight(9, 16, r).on, b.empty(3 * 16)];
        device.linear(weight, b.floats(b.normal(r, 3 * 16)), out, 3);
        return [...device.read(device.part(out, 0, 9)), device.sumSquares(weight.value)];
      }),
    );
    expect(distance(got!, want!)).toBeLessThanOrEqual(2e-6);
  });

  test("memory beyond the limits is an error that says so, and the device still works", () => {
    on(createWebGpu({ memory: 2 ** 24 }), (device) => {
      expect(() => device.alloc("f32", 2 ** 23)).toThrow(OOMError);
      expect(() => device.alloc("f32", 2 ** 40)).toThrow(/larger than the GPU allows.*--device cpu/);
      const buffer = device.alloc("f32", 2);
      device.write(buffer, Float32Array.of(1, 2));
      expect([...device.read(buffer)]).toEqual([1, 2]);
    });
  });

  test("a command that WebGPU refuses is an error of the next read", () => {
    on(createWebGpu(), (device) => {
      const buffer = device.alloc("f32", 4);
      device.copy({ ...buffer, length: 2 ** 20 }, device.alloc("f32", 4));
      expect(() => device.read(buffer)).toThrow(SqlEnvError);
    });
  });
});
