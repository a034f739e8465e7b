import { expect, test } from "vitest";
import { an, fill, listed, plural, sentence, third } from "./english.ts";

test("articles follow the sound", () => {
  expect(
    ["apple", "book", "hour", "university", "unit", "umbrella", "European", "one-way trip", "8", "18"].map(an),
  ).toEqual([
    "an apple",
    "a book",
    "an hour",
    "a university",
    "a unit",
    "an umbrella",
    "a European",
    "a one-way trip",
    "an 8",
    "an 18",
  ]);
});

test("plurals change the noun that counts", () => {
  expect(["book", "city", "box", "day", "number of pages", "date of birth", "species", "branch"].map(plural)).toEqual([
    "books",
    "cities",
    "boxes",
    "days",
    "numbers of pages",
    "dates of birth",
    "species",
    "branches",
  ]);
});

test("verbs agree with one subject", () => {
  expect(["have", "teach", "look after", "carry", "play", "go into"].map(third)).toEqual([
    "has",
    "teaches",
    "looks after",
    "carries",
    "plays",
    "goes into",
  ]);
});

test("sentences are tidied and templates filled", () => {
  expect(sentence(" how many  dogs , cats ?")).toBe("How many dogs, cats?");
  expect(fill("{a} and {b}", { a: 1, b: "x" })).toBe("1 and x");
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
});
