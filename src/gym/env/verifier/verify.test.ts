import { expect, test } from "vitest";
import { openShop } from "../../../../test/helpers/fixtures.ts";
import { formatAnswer, MAX_ANSWER_LENGTH } from "../../data/index.ts";
import { runGold } from "./gold.ts";
import { readNumber, verifyAnswer } from "./verify.ts";

const shop = openShop();
const judge = (sql: string) => {
  const gold = runGold({ question_id: "q", gold_sql: sql }, shop);
  return (answer: string) => verifyAnswer(answer, gold);
};

const RIGHT: [string, string[]][] = [
  [
    "SELECT 3",
    [
      "3",
      "3.0",
      '"3"',
      "'3'",
      "Answer: 3",
      "The answer is 3.",
      "```\n3\n```",
      "+3",
      "[3]",
      "3.",
      " 3\n",
      "**3**",
      "(3,)",
    ],
  ],
  ["SELECT 1234567", ["1234567", "1,234,567", "1234567.00"]],
  ["SELECT -5", ["-5", "−5", "-5.0"]],
  ["SELECT 9007199254740993", ["9007199254740993"]],
  ["SELECT 3.14159", ["3.14159", "3.14", "3.142", "3.1416", "3.14159000", "3.14159e0"]],
  ["SELECT 2.0", ["2", "2.0", "2.00"]],
  ["SELECT 823030.303030303", ["823030.30", "823030.3"]],
  ["SELECT 5.003", ["5.003", "5.00", "5.0"]],
  ["SELECT 0.1 + 0.2", ["0.3", "0.30000000000000004"]],
  [
    "SELECT 'New York'",
    ["New York", "new york", '"New York"', "NEW  YORK", "ANSWER: New York", '["New York"]', "New York."],
  ],
  ["SELECT 'x, y'", ["x, y", '"x, y"']],
  [
    "SELECT name FROM customers WHERE age > 30",
    [
      "Ada, Bao, Dov",
      "Dov\nAda\nBao",
      '["bao", "ada", "dov"]',
      "['Ada', 'Bao', 'Dov']",
      "- Ada\n- Bao\n- Dov",
      "1. Bao\n2. Ada\n3. Dov",
      "name\nAda\nBao\nDov",
      "Ada; Bao; Dov",
      "| name |\n|---|\n| Ada |\n| Bao |\n| Dov |",
    ],
  ],
  ["SELECT name FROM customers ORDER BY age DESC LIMIT 2", ["Bao, Dov", "Dov, Bao"]],
  ["SELECT name FROM customers ORDER BY age DESC LIMIT 1", ["Bao", "Dov"]],
  [
    "SELECT name, age FROM customers WHERE city = 'Hanoi'",
    [
      "Bao | 41\nChi | 29",
      "Chi, 29\nBao, 41",
      '[["Bao", 41], ["Chi", 29]]',
      "[('Chi', 29), ('Bao', 41)]",
      "('Chi', 29), ('Bao', 41)",
      "name | age\nBao | 41\nChi | 29",
      "Bao, 41; Chi, 29",
      '[{"name": "Bao", "age": 41}, {"name": "Chi", "age": 29}]',
    ],
  ],
  ["SELECT min(age), max(age) FROM customers", ["22, 41", "22 | 41", "(22, 41)", "22\n41"]],
  [
    "SELECT name, city FROM customers WHERE age = 41",
    ["Bao | Hanoi\nDov | NULL", "Bao, Hanoi\nDov, None", "[['Bao', 'Hanoi'], ['Dov', None]]", "Dov | \nBao | Hanoi"],
  ],
  ['SELECT note FROM "group"', ['["x, y", "", "null"]', '"x, y", "", "null"']],
];

test.each(RIGHT.flatMap(([sql, answers]) => answers.map((answer) => [sql, answer])))(
  "right: %s = %j",
  (sql, answer) => {
    expect(judge(sql)(answer)).toBe(true);
  },
);

const SPOKEN: [string, string[]][] = [
  [
    "SELECT 42",
    [
      "**Answer:** 42",
      "**Answer: 42**",
      "The answer is **42**.",
      "| 42 |",
      "４２",
      "4.2e1",
      "Final answer: 42",
      "**42**.",
    ],
  ],
  ["SELECT name FROM customers WHERE city = 'Hanoi'", ["Bao, Chi.", "**Bao**, **Chi**", "| Bao | Chi |"]],
  ["SELECT name, age FROM customers WHERE city = 'Hanoi'", ["- Bao | 41\n- Chi | 29", "1. Bao, 41\n2. Chi, 29"]],
  ["SELECT '“Heroes”'", ["“Heroes”", '"“Heroes”"']],
  ["SELECT '''a'''", ["'a'"]],
  ["SELECT '   '", ['"   "', '""']],
];

test.each(SPOKEN.flatMap(([sql, answers]) => answers.map((answer) => [sql, answer])))(
  "as models write: %s = %j",
  (sql, answer) => {
    expect(judge(sql)(answer)).toBe(true);
  },
);

const WRONG: [string, string[]][] = [
  ["SELECT 9e999", ["1", "0", "Infinity", "9e99"]],
  ["SELECT 3", ["", "4", "2", "3.1", "3, 3", "three", "3 students", "NULL", "[]", "3\n3", "0x3", "33", "-3"]],
  ["SELECT 0", ["", "NULL", "none", "[]", "false"]],
  ["SELECT 9007199254740993", ["9007199254740992", "9007199254740994"]],
  ["SELECT 3.14159", ["3.1", "3", "3.15", "3.13", "3.1415", "3.141", "31.4159", "3.14160"]],
  ["SELECT 0.004567", ["0.00", "0.005", "0.0046", "0"]],
  ["SELECT 'New York'", ["New", "York", "New York City", "NewYork", "New York, New York", "NULL"]],
  ["SELECT '007'", ["7", "07", "7.0"]],
  [
    "SELECT name FROM customers WHERE age > 30",
    ["Ada, Bao", "Ada, Bao, Dov, Dov", "Ada, Bao, Chi", "Ada", "", "Ada Bao Dov"],
  ],
  ["SELECT age FROM customers", ["36, 41, 29, 22", "36, 41, 29, 22, 22"]],
  ["SELECT name FROM customers ORDER BY age", ["Ada, Bao, Chi, Dov, Eve", "Bao, Dov, Ada, Chi, Eve"]],
  ["SELECT name FROM customers ORDER BY age DESC LIMIT 1", ["Ada", "Bao, Dov", ""]],
  [
    "SELECT name, age FROM customers WHERE city = 'Hanoi'",
    ["41 | Bao\n29 | Chi", "Bao | 29\nChi | 41", "Bao | 41", "Bao, Chi", "Bao | 41\nChi | 29\nChi | 29"],
  ],
  [
    "SELECT name, city FROM customers WHERE age = 41",
    ["Bao | Hanoi\nDov | 0", "Bao | Hanoi\nDov | 'NULL'", "Bao | Hanoi"],
  ],
];

test.each(WRONG.flatMap(([sql, answers]) => answers.map((answer) => [sql, answer])))(
  "wrong: %s ≠ %j",
  (sql, answer) => {
    expect(judge(sql)(answer)).toBe(false);
  },
);

test("the canonical text of a result is always right", () => {
  for (const table of shop.tables) {
    const sql = `SELECT * FROM "${table.name}"`;
    const result = shop.run(sql);
    expect(result.ok && judge(sql)(formatAnswer(result.table))).toBe(true);
  }
});

test("rounded reals are matched in any order", () => {
  const accepts = judge("SELECT 1.004 AS x UNION ALL SELECT 1.00");
  expect(accepts("1.00, 1.004")).toBe(true);
  expect(accepts("1.00, 1.00")).toBe(true);
  expect(accepts("1.004, 1.004")).toBe(false);
});

test("numbers may be written as people write them", () => {
  expect(readNumber("1,234.50")).toMatchObject({ value: 1234.5, decimals: 2, significant: 6 });
  for (const text of ["", ".", "-", "1,23", "12,34", "1e", "1 2", "0x10", "Infinity", "NaN", "1.2.3"]) {
    expect(readNumber(text), text).toBeUndefined();
  }
});

test("huge and hostile answers are rejected quickly", () => {
  const accepts = judge("SELECT name FROM customers");
  for (const answer of [
    "a,".repeat(50_000),
    "[".repeat(100_000),
    '"'.repeat(100_000),
    "x".repeat(1_000_000),
    "\n".repeat(100_000),
    "'a',".repeat(4_900),
    "'a,".repeat(6_600),
    '"a|'.repeat(6_600),
  ]) {
    expect(accepts(answer)).toBe(false);
  }
});

test("hostile answers are parsed in linear time", () => {
  const right = judge("SELECT name FROM customers");
  for (const part of ['"a,', "answer: "]) {
    const answer = part.repeat(MAX_ANSWER_LENGTH / part.length);
    for (let i = 0; i < 200; i++) expect(right(answer)).toBe(false); // quadratic time would take half a minute
  }
}, 15_000);

test("deep nesting in an answer does not overflow the stack", () => {
  const right = judge("SELECT name FROM customers");
  for (const part of ['"":', "[", "{", "(", "'',", '"a":{']) {
    expect(right(`[${part.repeat((MAX_ANSWER_LENGTH - 1) / part.length)}`), part).toBe(false);
  }
});

test("the work on one answer is bounded, however many ties the gold has", () => {
  // Each row could match each other by rounding, and there is one row too many: a search would far exceed the step
  // limit.
  const rows = (values: readonly number[]) => values.map((value) => [value]);
  const close = Array.from({ length: 299 }, (_, i) => 0.5 + i * 1e-9);
  const group = { rows: rows([...close, 7]), take: 300 };
  const gold = {
    ...{ columns: ["x"], types: ["real" as const], rows: group.rows, truncated: null },
    ...{ answer_type: "list" as const, ordered: false, groups: [group], instructions: 0 },
  };
  expect(verifyAnswer(Array.from({ length: 300 }, () => "0.500").join("\n"), gold)).toBe(false);
  expect(verifyAnswer([...Array.from({ length: 299 }, () => "0.500"), "7"].join("\n"), gold)).toBe(true);
  const many = { rows: rows(Array.from({ length: 100_000 }, () => 1)), take: 2000 };
  expect(verifyAnswer(Array.from({ length: 2000 }, () => '"1"').join("\n"), { ...gold, groups: [many] })).toBe(true);
  const nulls = { rows: Array.from({ length: 100_000 }, () => [null]), take: 2000 };
  expect(verifyAnswer(Array.from({ length: 2000 }, () => '"NULL"').join("\n"), { ...gold, groups: [nulls] })).toBe(
    false,
  );
}, 15_000);
