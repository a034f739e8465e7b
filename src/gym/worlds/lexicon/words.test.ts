import { expect, test } from "vitest";
import { random } from "../../../random.ts";
import { inventWord, wordPools } from "./words.ts";

const words = wordPools();

test("the vocabulary is large enough that a model learns to copy rather than to memorize", () => {
  expect(words.people.length + words.places.length + words.things.length).toBeGreaterThanOrEqual(1500);
  expect(words.quantities.length + words.counts.length + words.amounts.length).toBeGreaterThanOrEqual(300);
  expect(words.attributes.length).toBeGreaterThanOrEqual(300);
  expect(words.adjectives.length).toBeGreaterThanOrEqual(600);
  expect(words.givenNames.length).toBeGreaterThanOrEqual(500);
  expect(words.surnames.length).toBeGreaterThanOrEqual(500);
  expect(words.placeNames.length).toBeGreaterThanOrEqual(400);
});

test("no pool has a word twice or a malformed one", () => {
  const { spoken, known, occasions, ...plain } = words;
  const pools = { ...plain, occasions: occasions.map(({ noun }) => noun), known: known.map(({ noun }) => noun) };
  for (const [name, pool] of Object.entries(pools)) {
    expect(new Set(pool).size, name).toBe(pool.length);
    for (const word of pool) expect(word).toMatch(/^[\p{L}][\p{L}' -]*[\p{L}]$/u);
  }
  for (const { noun, low, high, decimals, superlatives, comparatives } of spoken) {
    expect(noun).toMatch(/^[a-z ]+$/);
    expect(low).toBeLessThan(high);
    expect([0, 1, 2]).toContain(decimals);
    expect([...superlatives, ...comparatives].filter(Boolean)).toHaveLength(4);
  }
  for (const { participle } of occasions) expect(participle).toMatch(/^[a-z]+(ed|n|t|d|e)$/);
});

test("words that may not be used are left out, also in the plural", () => {
  const without = wordPools((name) => !["bridge", "lanterns", "weight", "color"].includes(name));
  expect(words.places).toContain("bridge");
  expect(without.places).not.toContain("bridge");
  expect(without.things).not.toContain("lantern");
  expect(without.spoken.map(({ noun }) => noun)).not.toContain("weight");
  expect(without.known.map(({ noun }) => noun)).not.toContain("color");
});

test("invented words are pronounceable, of different lengths, and hardly ever the same", () => {
  const r = random("words");
  const invented = Array.from({ length: 2000 }, () => inventWord(r));
  expect(new Set(invented).size).toBeGreaterThan(1800);
  for (const word of invented) {
    expect(word).toMatch(/^[a-z]{3,20}$/);
    expect(word).toMatch(/[aeiou]/);
    expect(word).not.toMatch(/[^aeiou]{6}/);
  }
  expect(new Set(invented.map((word) => word.length)).size).toBeGreaterThan(8);
});
