import { expect, test } from "vitest";
import { z } from "zod";
import { readRunJson } from "./read-json.ts";

const schema = z.looseObject({ seed: z.number() });
const storeWith = (text: string | null) => ({ name: "runs/lamps", read: () => text });

test.each([
  ['{"seed": 1', /damaged \(.*JSON.*\): runs\/lamps\/split\.json; restore it, or delete it/],
  ["null", /damaged \(Invalid input: expected object, received null\): runs\/lamps\/split\.json/],
  ["[]", /damaged \(Invalid input: expected object, received array\)/],
  ["{}", /damaged \(seed: Invalid input: expected number, received undefined\)/],
])("a damaged file is named with what to do: %s", (text, message) => {
  expect(() => readRunJson(storeWith(text), "split.json", schema)).toThrow(message);
});

test("a whole file is read; a missing one is null", () => {
  expect(readRunJson(storeWith('{"seed": 1, "new": 2}'), "split.json", schema)).toEqual({ seed: 1, new: 2 });
  expect(readRunJson(storeWith(null), "split.json", schema)).toBeNull();
});
