import fc from "fast-check";
import { expect, test } from "vitest";
import { packContexts } from "./pack.ts";

/** Contexts with many common prefixes: concatenated pieces of a few long texts. */
const contexts = fc
  .record({
    texts: fc.array(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 24 }), {
      minLength: 1,
      maxLength: 4,
    }),
    plans: fc.array(fc.array(fc.nat(), { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 8 }),
  })
  .map(({ texts, plans }) => plans.map((plan) => plan.flatMap((pick) => texts[pick % texts.length]!)));

test("every token has a row, whose ancestors are its context, and no row is unused", () => {
  fc.assert(
    fc.property(contexts, (batch) => {
      const packed = packContexts(batch);
      const starts = packed.spans.map((_, i) =>
        packed.spans.slice(0, i).reduce((sum, span) => sum + span.tokens.length, 0),
      );
      const runOf = (row: number) => starts.findLastIndex((start) => start <= row);
      /** The tokens that a row attends to, ending with itself. */
      const seenBy = (row: number): number[] => {
        const span = runOf(row);
        const { tokens, parent } = packed.spans[span]!;
        const above = parent === null ? [] : seenBy(starts[parent]! + packed.spans[parent]!.tokens.length - 1);
        return [...above, ...tokens.slice(0, row - starts[span]! + 1)];
      };
      const used = new Set<number>();
      for (const [i, context] of batch.entries()) {
        for (let position = 0; position < context.length; position++) {
          const row = packed.rowOf(i, position);
          used.add(row);
          expect(seenBy(row)).toEqual(context.slice(0, position + 1));
        }
      }
      expect(used.size).toBe(packed.rows);
      expect(packed.tokens).toBe(batch.reduce((sum, { length }) => sum + length, 0));
      expect(packed.rows).toBeLessThanOrEqual(packed.tokens);
      for (const [i, { tokens, parent }] of packed.spans.entries()) {
        expect(tokens.length).toBeGreaterThan(0);
        if (parent !== null) expect(parent).toBeLessThan(i);
      }
      expect(packContexts(batch).spans).toEqual(packed.spans);
    }),
  );
});

test("trees are whole: a span's descendants come before the next root", () => {
  fc.assert(
    fc.property(contexts, (batch) => {
      const { spans } = packContexts(batch);
      const rootOf = (i: number): number => (spans[i]!.parent === null ? i : rootOf(spans[i]!.parent!));
      const roots = spans.map((_, i) => rootOf(i));
      expect(roots).toEqual([...roots].sort((a, b) => a - b));
    }),
  );
});

test("a group of eight shares its prompt, and two of them their first answer", () => {
  const prompt = Array.from({ length: 180 }, (_, i) => i);
  const turn = Array.from({ length: 20 }, (_, i) => 300 + i);
  const group = Array.from({ length: 8 }, (_, i) => [...prompt, ...(i < 2 ? turn : []), 500 + i, 600 + i]);
  const packed = packContexts(group);
  expect([packed.rows, packed.tokens]).toEqual([180 + 20 + 8 * 2, 8 * 182 + 2 * 20]);
  expect(packed.rowOf(7, 179)).toBe(packed.rowOf(0, 179));
  expect(packed.rowOf(1, 199)).toBe(packed.rowOf(0, 199));
  expect(packed.rowOf(1, 200)).not.toBe(packed.rowOf(0, 200));
});

test("a context that is a prefix of another, and a duplicate, add nothing", () => {
  const long = Array.from({ length: 30 }, (_, i) => i);
  const packed = packContexts([long, long.slice(0, 20), long, long.slice(0, 20)]);
  expect(packed.rows).toBe(30);
  expect(packed.rowOf(1, 19)).toBe(packed.rowOf(2, 19));
  expect(packContexts([]).rows).toBe(0);
});

test("a prefix too short to share does not prevent sharing of longer ones", () => {
  const question = (n: number) => [1, 2, ...Array.from({ length: 40 }, (_, i) => 100 * n + i)];
  const groups = [1, 2, 3].flatMap((n) => Array.from({ length: 4 }, (_, i) => [...question(n), 900 + i]));
  expect(packContexts(groups).rows).toBe(3 * (42 + 4));
});
