// Checks the filters against their definitions, token by token, and the probabilities by sweeping the random number.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { SampleRequest } from "../engine.ts";
import { chooseFiltered, hasFilter } from "./top-p.ts";

type Filters = Pick<SampleRequest, "temperature" | "top_k" | "top_p" | "min_p">;

function request(filters: Filters): SampleRequest {
  return { prompt: [0], max_new_tokens: 1, stop_ids: [], key: [], ...filters };
}

/** Probability of each token after the filters, computed from the definition; 0 for excluded tokens. */
function distribution(
  logits: readonly number[],
  { temperature = 1, top_k = 0, top_p = 1, min_p = 0 }: Filters,
): number[] {
  const normalized = (weights: readonly number[]) => {
    const total = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / total);
  };
  let p = normalized(logits.map((logit) => Math.exp(logit / temperature)));
  const before = (a: number, b: number) => p[a]! > p[b]! || (p[a] === p[b] && a < b);
  const likelier = (token: number) => p.map((_, other) => other).filter((other) => before(other, token));
  if (top_k > 0) p = normalized(p.map((x, token) => (likelier(token).length < top_k ? x : 0)));
  if (top_p < 1) {
    // A token is kept if the likelier ones together have less than top_p.
    const above = p.map((_, token) => likelier(token).reduce((sum, other) => sum + p[other]!, 0));
    p = normalized(p.map((x, token) => (above[token]! < top_p ? x : 0)));
  }
  const top = Math.max(...p);
  return normalized(p.map((x) => (x >= min_p * top ? x : 0)));
}

const filters = fc.record({
  temperature: fc.constantFrom(0.5, 1, 1.7),
  top_k: fc.constantFrom(0, 1, 2, 3, 50),
  top_p: fc.constantFrom(1, 0.95, 0.61, 0.31, 0.01),
  min_p: fc.constantFrom(0, 0.05, 0.33, 1),
});

test("exactly the kept tokens are sampled, each with its frequency", () => {
  // Logits are a quarter apart and thresholds are between their probabilities, so that rounding does not matter.
  const logits = fc.array(fc.integer({ min: -8, max: 8 }), { minLength: 1, maxLength: 9 });
  const steps = 400;
  fc.assert(
    fc.property(logits, filters, (quarters, chosen) => {
      const row = quarters.map((quarter) => quarter / 4);
      const want = distribution(row, chosen);
      const counts = row.map(() => 0);
      for (let i = 0; i < steps; i++) {
        counts[chooseFiltered(Float32Array.from(row), request(chosen), (i + 0.5) / steps)]!++;
      }
      for (const [token, count] of counts.entries()) {
        expect(Math.abs(count - steps * want[token]!)).toBeLessThanOrEqual(1);
        if (want[token] === 0) expect(count).toBe(0);
      }
    }),
    { numRuns: 60 },
  );
});

test("uniforms near 0 and 1 give the first and the last kept token", () => {
  const logits = Float32Array.of(0, 3, 1, 2);
  const draw = (uniform: number) => chooseFiltered(logits, request({ top_k: 3 }), uniform);
  expect([draw(0), draw(1 - 2 ** -24)]).toEqual([1, 2]);
});

test("which requests exclude tokens", () => {
  expect([{}, { temperature: 0.5 }, { temperature: 0, top_k: 5 }].map(request).map(hasFilter)).toEqual([
    false,
    false,
    false,
  ]);
  expect([{ top_k: 5 }, { top_p: 0.9 }, { min_p: 0.1 }].map(request).map(hasFilter)).toEqual([true, true, true]);
});
