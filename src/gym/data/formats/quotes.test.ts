import { expect, test } from "vitest";
import type { Table } from "../../sql/index.ts";
import { withPlainStrings } from "./quotes.ts";

const column = (name: string) => ({ name, type: "text", primary_key: false, not_null: false });
const tables: Table[] = [
  { name: "pet", kind: "table", columns: [column("name"), column("First Owner")], foreign_keys: [] },
  { name: "vet", kind: "table", columns: [column("Rex")], foreign_keys: [] },
];

test.each([
  // The query does not use vet, which has a column Rex.
  ['SELECT name FROM pet WHERE name = "Rex"', "SELECT name FROM pet WHERE name = 'Rex'"],
  ['SELECT "first owner" FROM pet', 'SELECT "first owner" FROM pet'],
  ['SELECT "Rex" FROM vet', 'SELECT "Rex" FROM vet'],
  ['SELECT T."x", "pet".name FROM "pet" AS T', 'SELECT T."x", "pet".name FROM "pet" AS T'],
  ['SELECT name AS "n 1" FROM pet ORDER BY "n 1"', 'SELECT name AS "n 1" FROM pet ORDER BY "n 1"'],
  ['SELECT name FROM pet WHERE name = "it\'s ""it"""', "SELECT name FROM pet WHERE name = 'it''s \"it\"'"],
  ["SELECT name FROM pet WHERE name = 'say \"hi\"'", "SELECT name FROM pet WHERE name = 'say \"hi\"'"],
])("%s", (before, after) => {
  expect(withPlainStrings(before, tables)).toBe(after);
});
