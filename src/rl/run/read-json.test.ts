import { expect, test } from "vitest";
import { readRunJson } from "./read-json.ts";

const storeWith = (text: string | null) => ({ name: "runs/lamps", read: () => text });

test.each([
  ['{"seed": 1', /damaged \(.*JSON.*\): runs\/lamps\/split\.json; restore it, or delete it/],
  ["null", /damaged \(it has no seed\): runs\/lamps\/split\.json/],
  ["[]", /damaged \(it has no seed\)/],
  ["{}", /damaged \(it has no seed\)/],
])("a damaged file is named with what to do: %s", (text, message) => {
  expect(() => readRunJson<{ seed: number }>(storeWith(text), "split.json", ["seed"])).toThrow(message);
});

test("a whole file is read, and one that is not there is null", () => {
  expect(readRunJson(storeWith('{"seed": 1}'), "split.json", ["seed" as never])).toEqual({ seed: 1 });
  expect(readRunJson(storeWith(null), "split.json", [])).toBeNull();
});
