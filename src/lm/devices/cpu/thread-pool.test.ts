// Tests CPU threads that die: the caller of a kernel gets an error instead of waiting forever.
import { existsSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { type CpuDevice, createCpuDevice } from "./device.ts";
import { startThread } from "./thread.node.ts";

/** A device with two threads; the second runs a changed worker source. */
function deviceWith(change: (source: string) => string): { device: CpuDevice; worker: Worker } {
  let worker: Worker | undefined;
  const device = createCpuDevice({
    threads: 2,
    startWorker: (source, data) => {
      const thread = startThread(change(source), data);
      worker = thread.worker;
      return thread;
    },
  });
  return { device, worker: worker! };
}

const runKernel = (device: CpuDevice) => device.sumSquares(device.alloc("f32", 4096));
const lost = (what: RegExp) => expect.objectContaining({ code: "device_lost", message: expect.stringMatching(what) });

const isLinux = existsSync("/proc/thread-self"); // other systems cannot tell whether a thread is alive

test.skipIf(!isLinux)("a thread that was ended between two kernels", async () => {
  const { device, worker } = deviceWith((source) => source);
  runKernel(device);
  await worker.terminate();
  expect(() => runKernel(device)).toThrow(lost(/^thread 2 of the CPU's 2 has ended; .*resumed/));
  expect(() => runKernel(device)).toThrow(lost(/has ended/)); // at once: nothing can be computed anymore
  device.close();
});

test.skipIf(!isLinux)("a thread that ends in the middle of a kernel, while the caller waits", () => {
  const { device } = deviceWith((source) =>
    source.replace("kernels[control[2]](", "process.exit(7); kernels[control[2]]("),
  );
  expect(() => runKernel(device)).toThrow(lost(/has ended/));
  device.close();
});

test("a thread that cannot instantiate the kernels", () => {
  const { device } = deviceWith((source) =>
    source.replace("WebAssembly.instantiate(module", "WebAssembly.instantiate(null"),
  );
  expect(() => runKernel(device)).toThrow(lost(/could not start/));
  device.close();
});

test("a thread that is slow is waited for", () => {
  // Longer than one waiting interval.
  const slow = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);";
  const { device } = deviceWith((source) => source.replace("kernels[control[2]](", `${slow} kernels[control[2]](`));
  expect(runKernel(device)).toBe(0);
  device.close();
});
