// The reference files are consistent: what can be recomputed from the logits alone agrees.
import { describe, expect, test } from "vitest";
import { REFERENCES, readMinimind, readReference, TEMPERATURE } from "./read.ts";

describe.each(REFERENCES)("%s", (name) => {
  const reference = readReference(name);
  const vocabulary = reference.config.vocab_size as number;
  const rowOf = (position: number) =>
    Array.from(reference.logits.data.subarray(position * vocabulary, (position + 1) * vocabulary));
  /** For each target: the row of logits that predicts it. */
  const targets = reference.sequences.flatMap((ids, s) => {
    const start = reference.sequences.slice(0, s).reduce((total, { length }) => total + length, 0);
    return Array.from(ids.subarray(1), (token, t) => ({ token, row: rowOf(start + t) }));
  });

  test("log-probs and entropies follow from the logits", () => {
    expect(reference.sequences.map(({ length }) => length)).toEqual([17, 5, 29]);
    expect(targets.length).toBe(reference.logp.length);
    for (const [i, { token, row }] of targets.entries()) {
      const logps = logSoftmax(row, TEMPERATURE);
      expect(Math.abs(logps[token]! - reference.logp[i]!)).toBeLessThan(2e-6);
      expect(Math.abs(-dot(logps.map(Math.exp), logps) - reference.entropy[i]!)).toBeLessThan(2e-6);
    }
  });

  test("both losses start at the recomputed values, and training lowers the second", () => {
    const { weights, logp, entropy, loss, adamw, adamwUndecayedNorms } = reference;
    expect(dot(weights, logp) + 0.01 * entropy.reduce((a, b) => a + b, 0)).toBeCloseTo(loss, 4);
    const crossEntropy = -targets.reduce((total, { token, row }) => total + logSoftmax(row, 1)[token]!, 0);
    for (const { losses, grad_norms } of [adamw, adamwUndecayedNorms]) {
      expect(losses[0]).toBeCloseTo(crossEntropy / targets.length, 5);
      expect([losses.length, grad_norms.length]).toEqual([11, 10]);
      expect(losses[10]).toBeLessThan(losses[0]! / 2);
      expect(grad_norms.every((norm) => norm > 1)).toBe(true); // so that clipping has an effect
    }
  });

  test("every parameter has a gradient of its shape", () => {
    const { parameters, gradients, config } = reference;
    expect([...gradients.keys()].sort()).toEqual([...parameters.keys()].sort());
    for (const [key, { shape, data }] of gradients) {
      expect(shape).toEqual(parameters.get(key)!.shape);
      expect(data.some((x) => x !== 0) && data.every(Number.isFinite)).toBe(true);
    }
    expect(parameters.has("lm_head.weight")).toBe(!config.tie_word_embeddings);
    expect(vocabulary % 2).toBe(1);
  });
});

test("minimind.json: top logits are sorted, and those of the last position are among all its logits", () => {
  const { ids, top_ids, top_logits, last_logits, greedy } = readMinimind();
  expect([top_ids.length, top_logits.length, greedy.length]).toEqual([ids.length, ids.length, 64]);
  for (const row of top_logits) expect(row.every((x, k) => k === 0 || x <= row[k - 1]!)).toBe(true);
  expect(top_ids.at(-1)!.map((id) => last_logits[id])).toEqual(top_logits.at(-1));
  expect(greedy[0]).toBe(top_ids.at(-1)![0]);
});

function logSoftmax(row: readonly number[], temperature: number): number[] {
  const scaled = row.map((x) => x / temperature);
  const top = Math.max(...scaled);
  const logSum = top + Math.log(scaled.reduce((total, x) => total + Math.exp(x - top), 0));
  return scaled.map((x) => x - logSum);
}

function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i]! * b[i]!;
  return total;
}
