import fc from "fast-check";
import { expect, test } from "vitest";
import { duplicateKey } from "./duplicate-key.ts";

test.each([
  ['{"a":1,"a":2}', "a"],
  ['{"a" : 1, "b": [{"c": 1}], "\\u0061"\n: 2}', "a"],
  ['{"x":{"dtype":"F32","shape":[],"dtype":"F16"}}', "dtype"],
  ['[{"":1,"":2}]', ""],
  ['{"a\\"b":1,"a\\"b":2}', 'a"b'],
])("%s has a key twice", (json, key) => {
  expect(duplicateKey(json)).toBe(key);
});

test("keys of different objects, values and text that looks like JSON are no duplicates", () => {
  expect(duplicateKey('{"a":{"a":["a","a",{"a":"a"}]},"b":"a","c":"{\\"a\\":1,\\"a\\":2}"}')).toBeUndefined();
  fc.assert(
    fc.property(fc.json(), (json) => {
      expect(duplicateKey(json)).toBeUndefined();
    }),
  );
});
