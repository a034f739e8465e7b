// Tests the prefix cache alone: matching, eviction and addresses.
import fc from "fast-check";
import { expect, test } from "vitest";
import { createCpuDevice } from "../../devices/cpu/device.ts";
import { type KvBlock, type Match, PrefixCache } from "./prefix-cache.ts";

const SHAPE = { layers: 2, kvHeads: 1, headDim: 8 };
const UNIT = 16; // floats per token

function cacheOf(maxTokens: number): PrefixCache {
  return new PrefixCache(createCpuDevice({ simd: "plain" }), { ...SHAPE, maxTokens });
}

/** Adds the uncached rest of a context, as a request would. */
function add(cache: PrefixCache, context: readonly number[], room = 0): KvBlock {
  const match = cache.match(context, context.length);
  const needed = context.length - match.tokens + room;
  const block = cache.add(match, needed, needed);
  block.tokens.push(...context.slice(match.tokens));
  block.computed = block.tokens.length;
  return block;
}

/** The whole context of a block. */
function contextOf(block: KvBlock): number[] {
  const above = block.parent ? contextOf(block.parent) : [];
  const cut = block.parent ? block.parent.tokens.length - block.parentTokens : 0;
  return [...above.slice(0, above.length - cut), ...block.tokens];
}

test("finds the longest cached prefix, also one that leaves a block in the middle, up to the limit", () => {
  const cache = cacheOf(1_000);
  add(cache, [1, 2, 3, 4, 5]);
  add(cache, [1, 2, 3, 9, 9]);
  add(cache, [1, 2, 3, 4, 5, 6, 7]);
  add(cache, [8]);
  const found = (context: number[], limit = context.length) => cache.match(context, limit).tokens;
  expect(found([1, 2, 3, 4, 5, 6, 7, 8])).toBe(7);
  expect(found([1, 2, 3, 9, 9])).toBe(5);
  expect(found([1, 2, 3, 9, 1])).toBe(4);
  expect(found([1, 2, 3, 4])).toBe(4);
  expect(found([1, 2, 3, 4, 5, 6], 5)).toBe(5);
  expect(found([1, 2], 1)).toBe(1);
  expect(found([2, 3])).toBe(0);
  expect(found([8, 1])).toBe(1);
  cache.clear();
  expect(found([1, 2, 3])).toBe(0);
});

test("evicts the least recently used block, never one that is pinned or has children", () => {
  const cache = cacheOf(24);
  const held = add(cache, [1, 1, 1, 1, 1, 1, 1, 1]);
  const old = add(cache, [2, 2, 2, 2, 2, 2, 2, 2]);
  const recent = add(cache, [3, 3, 3]);
  cache.release(old);
  cache.release(recent);
  cache.match([2], 1); // marks it as recently used
  const known = (token: number) => cache.match([token], 1).tokens === 1;
  const next = add(cache, [4]);
  expect([1, 2, 3, 4].map(known)).toEqual([true, true, false, true]);
  expect(next.block).toBe(recent.block);
  add(cache, [2, 2, 2, 2, 2, 2, 2, 2, 5]); // a child of `old`, so `old` cannot be evicted and the cache must grow
  expect([1, 2, 4].map(known)).toEqual([true, true, true]);
  expect(cache.kvCaches[0]!.length / UNIT).toBeGreaterThan(24);
  expect(contextOf(held)).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
});

test("a sample continues in its private block if the match ends there, unless it is pinned or has children", () => {
  const cache = cacheOf(1_000);
  const first = add(cache, [1, 2, 3], 10);
  expect(first.capacity).toBe(16);
  const beside = add(cache, [1, 2, 3, 4]); // the first block is pinned
  expect(beside.parent).toBe(first);
  cache.release(first);
  cache.release(beside);
  expect(add(cache, [1, 2, 3, 5]).parent).toBe(first); // another child of the same parent
  const turn = add(cache, [7, 7, 7], 4);
  cache.release(turn);
  expect(add(cache, [7, 7, 7, 8], 2)).toBe(turn);
  cache.release(turn);
  expect(turn.tokens).toEqual([7, 7, 7, 8]);
  expect(add(cache, [7, 7, 9]).parent).toBe(turn); // follows only part of it
  const shared = cache.add(cache.match([5], 1), 8);
  shared.tokens.push(5);
  shared.computed = 1;
  cache.release(shared);
  expect(add(cache, [5, 6]).parent).toBe(shared); // shared blocks are not extended
});

test("a full block moves to one twice as large with its contents, and the old one is freed", () => {
  const device = createCpuDevice({ simd: "plain" });
  const shape = { layers: 2, kvHeads: 2, headDim: 16 };
  const unit = 64;
  const cache = new PrefixCache(device, { ...shape, maxTokens: 400 });
  const turn = add(cache, [1, 2, 3, 4, 5], 3);
  const old = turn.block;
  /** A block's contents by token, layer and index: keys in panels of eight tokens, values in panels of eight dims. */
  const held = () =>
    cache.kvCaches.map((kvCache) => {
      const all = device.read(device.part(kvCache, turn.block, turn.capacity * unit));
      const tokens = Array.from({ length: 5 }, (_, t) => t);
      return [0, 1].map((head) => {
        const keys = head * 2 * turn.capacity * 16;
        const values = keys + turn.capacity * 16;
        const dims = Array.from({ length: 16 }, (_, i) => i);
        return tokens.map((t) => [
          ...dims.map((i) => all[keys + (t >> 3) * 128 + i * 8 + (t & 7)]),
          ...dims.map((i) => all[values + (i >> 3) * turn.capacity * 8 + t * 8 + (i & 7)]),
        ]);
      });
    });
  for (const [layer, kvCache] of cache.kvCaches.entries()) {
    const numbers = Float32Array.from({ length: 8 * unit }, (_, i) => 1_000 * layer + i);
    device.write(device.part(kvCache, old, 8 * unit), numbers);
  }
  const before = held();
  cache.release(turn);
  expect(add(cache, [1, 2, 3, 4, 5, 6], 4)).toBe(turn);
  expect([turn.capacity, turn.block === old]).toEqual([16, false]);
  expect(held()).toEqual(before);
  expect(add(cache, [9], 2).block).toBe(old);
  cache.release(turn);
  // No room for a larger block, so a new one is chained.
  expect(add(cache, [1, 2, 3, 4, 5, 6, 7], 120).parent).toBe(turn);
  cache.clear();
  expect(cache.add(cache.match([1], 1), 8, 100).capacity).toBe(104); // exactly a quarter of the cache
});

test("a block does not exceed the window, except for padding", () => {
  const cache = new PrefixCache(createCpuDevice({ simd: "plain" }), { ...SHAPE, window: 30 });
  const begin = (match: Match, tokens: number) => {
    const block = cache.add(match, tokens, 100);
    block.tokens.push(...Array(tokens).fill(7));
    block.computed = tokens;
    return block;
  };
  const first = begin(cache.match([], 0), 10);
  expect(first.capacity).toBe(32);
  expect(begin({ block: first, blockTokens: 10, tokens: 10 }, 5).capacity).toBe(24);
});

test("grants the wished size while three quarters of the cache stay unpinned, and what is needed always", () => {
  const cache = cacheOf(256);
  const begin = (token: number, wish: number) => {
    const block = cache.add(cache.match([token], 1), 8, wish);
    block.tokens.push(token);
    return block;
  };
  const blocks = [begin(1, 40), begin(2, 24), begin(3, 16), begin(4, 16)];
  expect(blocks.map(({ capacity }) => capacity)).toEqual([40, 24, 8, 8]);
  for (const block of blocks) cache.release(block);
  expect(begin(5, 64).capacity).toBe(64); // unpinned blocks do not count
});

test("growing keeps the contents, and closing frees all memory", () => {
  const device = createCpuDevice({ simd: "plain" });
  const { used } = device.memory;
  const cache = new PrefixCache(device, SHAPE);
  const first = add(cache, [1, 2, 3], 4_000);
  for (const [i, kvCache] of cache.kvCaches.entries())
    device.fill(device.part(kvCache, first.block, first.capacity * UNIT), 7 + i);
  const before = cache.kvCaches[0]!;
  add(cache, [9], 5_000);
  expect(cache.kvCaches[0]).not.toBe(before);
  for (const [i, kvCache] of cache.kvCaches.entries()) {
    expect(device.read(device.part(kvCache, first.block, first.capacity * UNIT)).every((x) => x === 7 + i)).toBe(true);
  }
  cache.close();
  expect(device.memory.used).toBe(used);
});

test("any sequence of requests: blocks never overlap, matches are correct, and pinned blocks stay", () => {
  const step = fc.record({
    context: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 20 }),
    room: fc.nat(12),
    release: fc.option(fc.nat(), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), fc.constantFrom(16, 64, 200), (steps, maxTokens) => {
      const cache = cacheOf(maxTokens);
      const held = new Map<KvBlock, number[]>();
      for (const { context, room, release } of steps) {
        const match = cache.match(context, context.length);
        expect(match.tokens).toBeLessThanOrEqual(context.length);
        if (match.block) {
          const whole = contextOf(match.block);
          expect(whole.slice(0, whole.length - match.block.tokens.length + match.blockTokens)).toEqual(
            context.slice(0, match.tokens),
          );
        }
        const block = add(cache, context, room);
        held.set(block, contextOf(block));
        expect(block.capacity).toBeGreaterThanOrEqual(block.tokens.length + room);
        expect(block.block + block.capacity * UNIT).toBeLessThanOrEqual(cache.kvCaches[0]!.length);
        // Pinned blocks and their parents overlap no other block.
        const kept = new Set<KvBlock>();
        for (const one of held.keys()) for (let at: KvBlock | null = one; at; at = at.parent) kept.add(at);
        const places = [...kept]
          .filter(({ capacity }) => capacity > 0) // a fully cached context takes no room, so its address is irrelevant
          .map(({ block, capacity }) => [block, block + capacity * UNIT] as const)
          .sort(([a], [b]) => a - b);
        for (const [i, [start]] of places.entries()) if (i > 0) expect(start).toBeGreaterThanOrEqual(places[i - 1]![1]);
        for (const [one, whole] of held) expect(contextOf(one)).toEqual(whole);
        if (release !== undefined) {
          const gone = [...held.keys()][release % held.size]!;
          cache.release(gone);
          held.delete(gone);
        }
      }
      for (const block of held.keys()) cache.release(block);
      for (const block of held.keys())
        for (let at: KvBlock | null = block; at; at = at.parent) expect(at.holders).toBe(0);
    }),
  );
});
