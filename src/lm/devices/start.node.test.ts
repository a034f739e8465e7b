// Tests which device is started on a machine without a GPU.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { candidatesOf } from "./cuda/libraries.node.ts";
import { startDevice } from "./start.node.ts";

const hasGpu = (() => {
  try {
    execFileSync("nvidia-smi", ["-L"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

test.skipIf(hasGpu)("auto takes the CPU, and cuda says what is missing and how to get it", () => {
  const device = startDevice({ threads: 1 });
  expect(device.name).toBe("cpu");
  device.close();
  expect(() => startDevice({ device: "cuda" })).toThrow(/(driver|koffi).*(--device cpu)/);
});

test("libraries are searched by full path, each once", () => {
  for (const name of ["driver", "nvrtc", "cublas"] as const) {
    const paths = candidatesOf(name);
    expect(new Set(paths).size).toBe(paths.length);
    for (const path of paths) expect(path).toMatch(/lib(cuda|nvrtc|cublas)\.so/);
  }
});

test("WebGPU has no bf16", () => {
  expect(() => startDevice({ device: "webgpu", precision: "bf16" })).toThrow(/bf16.*fp32/);
});
