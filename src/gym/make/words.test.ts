import { expect, test } from "vitest";
import { columnPhrase, referencePhrase, tableNouns } from "./phrases.ts";
import { isAbbreviation, singular, wordsIn } from "./words.ts";

test.each([
  ["bottlePrice", "bottle price"],
  ["bottle_price", "bottle price"],
  ["bottleprice", "bottle price"],
  ["HeadOfState", "head of state"],
  ["GNPOld", "GNP old"],
  ["Official_ratings_(millions)", "official ratings in millions"],
  ["qtyOnHand", "quantity on hand"],
  ["lastname", "last name"],
  ["percentage", "percentage"],
  ["Größe", "größe"],
])("%s is read as %s", (name, words) => {
  expect(wordsIn(name).join(" ")).toBe(words);
});

test("names without separators are split at words of their schema", () => {
  expect(wordsIn("countrylanguage", new Set(["country"]))).toEqual(["country", "language"]);
  expect(wordsIn("StuID", new Set(["student"]))).toEqual(["student", "ID"]);
});

test.each([
  ["countries", "country"],
  ["movies", "movie"],
  ["boxes", "box"],
  ["courses", "course"],
  ["people", "person"],
  ["addresses", "address"],
  ["series", "series"],
  ["status", "status"],
  ["heroes", "hero"],
])("the singular of %s is %s", (many, one) => {
  expect(singular(many)).toBe(one);
  expect(singular(one)).toBe(one);
});

test("tables get nouns, no two alike", () => {
  const nouns = tableNouns(
    ["Ref_Template_Types", "model_list", "model", "cars_data", "staff", "OrderItems", "Customers_Orders"].map(
      (name) => ({ name }),
    ),
  );
  expect(Object.fromEntries(nouns)).toEqual({
    Ref_Template_Types: { one: "template type", many: "template types" },
    model: { one: "model", many: "models" },
    model_list: { one: "model list", many: "model lists" },
    cars_data: { one: "car", many: "cars" },
    staff: { one: "staff member", many: "staff members" },
    OrderItems: { one: "order item", many: "order items" },
    Customers_Orders: { one: "customer order", many: "customer orders" },
  });
});

test("columns lose the words of their table, and references those of a key", () => {
  const stadium = { one: "stadium", many: "stadiums" };
  const phrase = (name: string) => columnPhrase({ name }, stadium, new Set());
  expect(["stadium_name", "capacity", "num_seats", "visitor_count", "cost_of_stadium"].map(phrase)).toEqual([
    "name",
    "capacity",
    "number of seats",
    "number of visitors",
    "cost",
  ]);
  expect(referencePhrase({ name: "home_club_id" }, { one: "club", many: "clubs" }, new Set())).toBe("home club");
  expect(referencePhrase({ name: "Id" }, { one: "club", many: "clubs" }, new Set())).toBe("club");
});

test("a letter before a common word stands for a table, and a last `no` for a number", () => {
  const tables = new Set(["department", "project"]);
  expect(["dname", "pnum", "Dno", "FlightNo"].map((name) => wordsIn(name, tables).join(" "))).toEqual([
    "department name",
    "project number",
    "department number",
    "flight number",
  ]);
});

test("words that cannot be read aloud are abbreviations", () => {
  expect(["edispl", "txn", "qlfd", "cstmr"].filter(isAbbreviation)).toHaveLength(4);
  expect(
    [
      "length",
      "months",
      "world",
      "rhythm",
      "name",
      "GNP",
      "worksheets",
      "budgets",
      "birthplace",
      "accounts",
      "strength",
    ].filter(isAbbreviation),
  ).toEqual([]);
});
