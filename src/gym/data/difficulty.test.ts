import { expect, test } from "vitest";
import { difficultyOf, tablesInvolved } from "./difficulty.ts";

test.each([
  ["SELECT name FROM pet", "easy"],
  ["SELECT count(*) FROM pet WHERE weight > 3", "easy"],
  ["SELECT name FROM pet WHERE weight > 3 ORDER BY name", "easy"],
  ["SELECT name FROM pet WHERE weight > 3 LIMIT 2", "easy"],
  ["SELECT name FROM pet ORDER BY weight DESC LIMIT 1", "medium"],
  ["SELECT city, count(*) FROM owner GROUP BY city", "medium"],
  ["SELECT count(DISTINCT city) FROM owner", "medium"],
  ["SELECT T1.name FROM owner AS T1 JOIN pet AS T2 ON T1.id = T2.owner_id WHERE T2.name = 'Rex' ORDER BY 1", "medium"],
  ["select o.name from owner o, pet p where o.id = p.owner_id", "medium"],
  ["SELECT 1 FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y", "hard"],
  ["SELECT 1 FROM a, b, c", "hard"],
  ["SELECT name FROM pet WHERE weight > (SELECT avg(weight) FROM pet)", "hard"],
  ["SELECT city FROM owner GROUP BY city HAVING count(*) > 1", "hard"],
  ["SELECT name FROM pet UNION SELECT name FROM owner", "hard"],
  ["WITH heavy AS (SELECT * FROM pet) SELECT name FROM heavy", "hard"],
  ["SELECT 'a JOIN b HAVING c' FROM pet -- GROUP BY", "easy"],
  ["SELECT coalesce(a, b), max(c, d) FROM pet WHERE a IN (1, 2, 3)", "easy"],
])("%s is %s", (sql, difficulty) => {
  expect(difficultyOf(sql)).toBe(difficulty);
});

test("tables have the database's own spelling, once each, also in subqueries and quotes", () => {
  const tables = [{ name: "Owner" }, { name: "pet" }, { name: "vet visit" }];
  const of = (sql: string) => tablesInvolved(sql, tables);
  expect(of("SELECT * FROM owner JOIN PET ON 1")).toEqual(["Owner", "pet"]);
  expect(of("SELECT * FROM pet WHERE id IN (SELECT pet FROM [vet visit], `Owner`) AND pet.id > 0")).toEqual([
    "pet",
    "vet visit",
    "Owner",
  ]);
  expect(of('SELECT owner FROM main."vet visit" v LEFT JOIN (pet p) USING (id, owner)')).toEqual(["vet visit", "pet"]);
  expect(of("SELECT * FROM pet WHERE name IS DISTINCT FROM owner")).toEqual(["pet"]);
  expect(of("WITH heavy AS (SELECT * FROM pet) SELECT * FROM heavy")).toEqual(["pet"]);
});
