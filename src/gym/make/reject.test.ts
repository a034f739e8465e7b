import { expect, test } from "vitest";
import { faultOfText, isOdd, isRedundant } from "./reject.ts";

test.each([
  "SELECT year, AVG(year) FROM car GROUP BY year",
  "SELECT name, name FROM car",
  "SELECT kind FROM car GROUP BY kind HAVING AVG(kind) > 3",
  "SELECT COUNT(*) FROM car WHERE kind = 3 AND kind > 2",
  "SELECT MAX(weight) FROM car WHERE weight > 10",
  "SELECT COUNT(DISTINCT kind) FROM car WHERE kind > 10",
  'SELECT "top speed" FROM car ORDER BY "top speed" DESC LIMIT 1',
  "SELECT age FROM dog ORDER BY CAST(age AS INTEGER) LIMIT 1",
  "SELECT name FROM city WHERE id NOT IN (SELECT city_id FROM shop WHERE city_id = 3)",
  "SELECT a.id, b.id FROM a JOIN b ON a.id = b.id WHERE a.x = 1",
  "SELECT COUNT(*) FROM airport WHERE city = 'Aberdeen '",
])("%s is not worth asking", (sql) => {
  expect(isRedundant(sql)).toBe(true);
});

test.each([
  "SELECT year, AVG(weight) FROM car GROUP BY year",
  "SELECT name FROM car WHERE kind = 'van' AND weight > 2",
  "SELECT COUNT(*) FROM car WHERE kind = 'van' OR kind = 'bus'",
  "SELECT name FROM car WHERE weight > (SELECT weight FROM car WHERE name = 'Beetle')",
  "SELECT a.id, b.name FROM a JOIN b ON a.b_id = b.id",
  "SELECT name FROM city WHERE id NOT IN (SELECT city_id FROM shop WHERE kind = 3)",
  "SELECT name FROM car ORDER BY weight DESC LIMIT 1",
])("%s is", (sql) => {
  expect(isRedundant(sql)).toBe(false);
});

test("texts that are long, double a word or contain their answer are refused", () => {
  expect(faultOfText("What is the highest maximum speed?", undefined)).toBe("unclear_text");
  expect(faultOfText("x".repeat(300), undefined)).toBe("unclear_text");
  expect(faultOfText("In which country is the Bank of France?", "France")).toBe("answer_in_text");
  expect(faultOfText("Which Frenchman won?", "France")).toBeUndefined();
});

test("yes-or-no values and pairs are only asked about where the words fit", () => {
  expect(isOdd('Which "is male" values have singers?', "big_groups")).toBe(true);
  expect(isOdd('What is the "is male" value of Ana Ruiz?', "look_up")).toBe(false);
  expect(isOdd("How many student-pet pairs are there?", "count")).toBe(false);
  expect(isOdd("Count the student-pet pairs for each age.", "count_per_group")).toBe(true);
});
