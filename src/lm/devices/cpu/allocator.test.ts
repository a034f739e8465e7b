import fc from "fast-check";
import { expect, test } from "vitest";
import { createAllocator } from "./allocator.ts";

test("blocks never overlap, are aligned, and merge again when all are freed", () => {
  const steps = fc.array(
    fc.oneof(fc.record({ bytes: fc.integer({ min: 0, max: 5_000 }) }), fc.record({ free: fc.nat() })),
  );
  fc.assert(
    fc.property(steps, (plan) => {
      let top = 0;
      const allocator = createAllocator(100, (end) => {
        top = Math.max(top, end);
      });
      const live = new Map<number, number>();
      for (const step of plan) {
        if ("bytes" in step) {
          const address = allocator.alloc(step.bytes);
          expect(address % 64).toBe(0);
          expect(address).toBeGreaterThanOrEqual(100);
          expect(address + step.bytes).toBeLessThanOrEqual(top);
          for (const [other, bytes] of live) {
            expect(address + Math.max(1, step.bytes) <= other || other + Math.max(1, bytes) <= address).toBe(true);
          }
          live.set(address, step.bytes);
        } else if (live.size > 0) {
          const address = [...live.keys()][step.free % live.size]!;
          allocator.free(address);
          live.delete(address);
        }
        const sizes = [...live.values()].map((bytes) => Math.ceil(Math.max(1, bytes) / 64) * 64);
        expect(allocator.used).toBe(sizes.reduce((sum, size) => sum + size, 0));
        expect(allocator.peak).toBeGreaterThanOrEqual(allocator.used);
      }
      for (const address of live.keys()) allocator.free(address);
      expect(allocator.used).toBe(0);
      // All gaps have merged into one: the largest possible block fits without growing.
      const before = top;
      if (before > 128) expect(allocator.alloc(before - 128)).toBe(128);
      expect(top).toBe(before);
    }),
  );
});

test("a failed growth leaves the allocator unchanged, and freeing twice is refused", () => {
  const allocator = createAllocator(0, (end) => {
    if (end > 1_024) throw new Error(`no ${end}`);
  });
  const first = allocator.alloc(512);
  expect(() => allocator.alloc(1_000)).toThrow("no 1536");
  expect(allocator.used).toBe(512);
  const second = allocator.alloc(512);
  expect([first, second]).toEqual([0, 512]);
  allocator.free(second);
  expect(() => allocator.alloc(1_000)).toThrow("no 1536"); // the gap at the end is counted
  expect(allocator.alloc(512)).toBe(512);
  allocator.free(first);
  expect(() => allocator.free(first)).toThrow("nothing is allocated at 0");
});
