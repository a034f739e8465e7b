import { expect, test } from "vitest";
import { ColumnFilter } from "./columns.ts";

test("patterns choose and exclude columns in any letter case", () => {
  const filter = new ColumnFilter({ columns: ["people", "Orders.*id"], exclude: ["*.EMAIL"] });
  const names = ["people.name", "people.email", "orders.user_id", "orders.total", "peoples.name"];
  expect(names.filter((name) => filter.allows(...(name.split(".") as [string, string])))).toEqual([
    "people.name",
    "orders.user_id",
  ]);
  expect(() => filter.checkUsed()).not.toThrow();
});

test("a pattern that matches nothing is refused, since it would let a column through", () => {
  const filter = new ColumnFilter({ exclude: ["people.emial"] });
  filter.allows("people", "email");
  expect(() => filter.checkUsed()).toThrow("--exclude matches no column: people.emial; did you mean people.email?");
});
