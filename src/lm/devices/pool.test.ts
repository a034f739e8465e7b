// Tests the pool of device memory: reuse, accounting, and running out of memory.
import fc from "fast-check";
import { expect, test } from "vitest";
import { OOMError } from "../../errors.ts";
import { type MemorySource, Pool } from "./pool.ts";

/** A GPU with a given number of bytes. */
function gpu(bytes: number) {
  const held = new Map<number, number>();
  let next = 512;
  const used = () => [...held.values()].reduce((sum, size) => sum + size, 0);
  const source: MemorySource = {
    tryAlloc(size) {
      if (used() + size > bytes) return undefined;
      const address = next;
      next += size;
      held.set(address, size);
      return address;
    },
    free: (address) => void held.delete(address),
    memoryLeft: () => bytes - used(),
    synchronize: () => true,
  };
  return { source, held };
}

test("a freed block is reused for similar sizes", () => {
  const { source, held } = gpu(1e6);
  const pool = new Pool(source);
  const first = pool.alloc(10_000);
  pool.free(first);
  expect(pool.alloc(9_900)).toBe(first);
  expect(held.size).toBe(1);
  expect(pool.used).toBeGreaterThanOrEqual(10_000);
  expect(pool.used).toBeLessThan(11_250);
  expect(() => pool.free(first + 4)).toThrow(RangeError);
});

test("free blocks are returned to the driver before an allocation fails; then the error says how much", () => {
  const { source, held } = gpu(100_000);
  const pool = new Pool(source);
  const blocks = Array.from({ length: 9 }, () => pool.alloc(10_000));
  for (const block of blocks) pool.free(block);
  const large = pool.alloc(80_000);
  expect(held.size).toBe(1);
  expect(() => pool.alloc(50_000)).toThrow(OOMError);
  expect(() => pool.alloc(50_000)).toThrow(/out of memory: 0\.00 GiB asked.*recompute activations/);
  pool.free(large);
  pool.alloc(50_000);
  pool.close();
  expect(held.size).toBe(0);
});

test("blocks never overlap, and the counts are right", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 100_000 })), { maxLength: 60 }), (steps) => {
      const pool = new Pool(gpu(1e12).source);
      const live: { address: number; bytes: number }[] = [];
      for (const [isFree, bytes] of steps) {
        if (isFree && live.length > 0) pool.free(live.splice(bytes % live.length, 1)[0]!.address);
        else live.push({ address: pool.alloc(bytes), bytes });
      }
      const sorted = [...live].sort((a, b) => a.address - b.address);
      sorted.slice(1).forEach((block, i) => {
        expect(block.address).toBeGreaterThanOrEqual(sorted[i]!.address + sorted[i]!.bytes);
      });
      expect(pool.used).toBeGreaterThanOrEqual(live.reduce((sum, { bytes }) => sum + bytes, 0));
      expect(pool.reserved).toBeGreaterThanOrEqual(pool.used);
      for (const { address, bytes } of live) expect(pool.around(address + bytes - 1).address).toBe(address);
    }),
  );
});
