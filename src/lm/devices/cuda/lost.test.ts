// Tests a GPU whose context is lost: it is reported by its error code, and closing neither fails nor hangs.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { isSticky } from "./driver.node.ts";

test("errors that lose the context are distinguished from those of one call", () => {
  const lost = [46, 214, 700, 702, 719, 999]; // unavailable, ECC, illegal address, time-out, launch failure, unknown
  const others = [1, 2, 400, 500, 600]; // invalid value, out of memory, invalid handle, not found, not ready
  expect(lost.filter(isSticky)).toEqual(lost);
  expect(others.filter(isSticky)).toEqual([]);
});

test.skipIf(!existsSync("/dev/nvidia0"))(
  "an illegal address (skipped where there is no GPU)",
  { timeout: 120_000 },
  () => {
    const create = new URL("../../../../dist/lm/devices/cuda/create.node.js", import.meta.url).href;
    const script = `
    import { createCuda } from ${JSON.stringify(create)};
    const device = createCuda();
    const codes = [];
    for (let i = 0; i < 2; i++)
      try {
        device.sumSquares({ dtype: "f32", length: 4096, address: 4096 });
      } catch ({ code, message }) {
        codes.push([code, message]);
      }
    device.close();
    console.log(JSON.stringify(codes));`;
    const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      encoding: "utf8",
      timeout: 100_000,
    });
    expect(status, stderr).toBe(0);
    const lost = [
      "device_lost",
      expect.stringMatching(/the GPU was lost: .* failed: CUDA_ERROR_ILLEGAL_ADDRESS \(700\)/),
    ];
    expect(JSON.parse(stdout)).toEqual([lost, lost]);
  },
);
