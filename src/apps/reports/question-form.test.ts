import { expect, test } from "vitest";
import { questionForm } from "./question-form.ts";

test.each([
  ["SELECT count(*) FROM lamp WHERE watt > 5", "count"],
  ["SELECT name FROM lamp", "a whole column"],
  ["SELECT name, 'FROM a, b' FROM lamp WHERE id = 1", "rows that meet a condition"],
  ["SELECT MAX(watt) FROM lamp", "minimum or maximum"],
  ["select avg(watt) from lamp", "sum or average"],
  ["SELECT name FROM lamp ORDER BY watt DESC LIMIT 1", "top of a ranking"],
  ["SELECT room, count(*) FROM lamp GROUP BY room", "grouped"],
  ["SELECT r.name FROM lamp AS l JOIN room AS r ON r.id = l.room", "two tables"],
  ["SELECT r.name FROM lamp l, room r WHERE r.id = l.room", "two tables"],
  ["SELECT 1 FROM a JOIN b USING (x) JOIN c USING (y)", "three or more tables"],
  ["SELECT name FROM lamp WHERE watt = (SELECT max(watt) FROM lamp)", "subquery"],
  ["SELECT a FROM t UNION SELECT b FROM u", "set operation"],
])("%s is of the form %s", (query, form) => {
  expect(questionForm({ query })).toBe(form);
});

test("a question without a query has the form other", () => {
  expect([questionForm(null), questionForm({ query: null })]).toEqual(["other", "other"]);
});
