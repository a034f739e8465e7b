import { expect, test } from "vitest";
import { createCpu } from "../devices/cpu/start.node.ts";
import type { Device } from "../devices/index.ts";
import { checkDevice } from "./check-device.ts";

test("a device that computes what the CPU does passes, and one that does not is named", async () => {
  const device = createCpu({ threads: 1 });
  await expect(checkDevice(device)).resolves.toBeUndefined();
  const { used } = device.memory;
  const wrong: Partial<Device> = {
    addTo: () => {},
    swiGluBackward: (gateUp, dOut, dGateUp) => device.fill(dGateUp, dOut.length + gateUp.length),
  };
  await expect(checkDevice(Object.assign(device, wrong))).rejects.toThrow(/computes wrong numbers: .* instead of/);
  expect(device.memory.used).toBe(used); // all of it freed
  device.close();
});
