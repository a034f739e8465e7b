// A small shop with NULLs, ties, odd names and a view, for tests that need a database of known contents.
import type { DataSet, QuestionRecord } from "../../src/gym/data/index.ts";
import { answerTypeOf, formatAnswer } from "../../src/gym/data/index.ts";
import { createDatabase, Database, DatabasePool, loadSqlite } from "../../src/gym/sql/index.ts";

await loadSqlite();

export const shopBytes = createDatabase([
  {
    name: "customers",
    ddl: "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, age INTEGER)",
    rows: [
      [1, "Ada", "Oslo", 36],
      [2, "Bao", "Hanoi", 41],
      [3, "Chi", "Hanoi", 29],
      [4, "Dov", null, 41],
      [5, "Eve", "Oslo", 22],
    ],
  },
  {
    name: "orders",
    ddl: `CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id), "total price" REAL, placed TEXT)`,
    rows: [
      [1, 1, 10.5, "2024-01-05"],
      [2, 1, 20.25, "2024-02-10"],
      [3, 2, 10.5, "2024-02-11"],
      [4, 3, 99.99, "2024-03-01"],
      [5, 5, 3, "2024-03-02"],
    ],
  },
  {
    name: "group",
    ddl: `CREATE TABLE "group" (code TEXT, note TEXT)`,
    rows: [
      ["a", "x, y"],
      ["b", ""],
      ["c", "null"],
    ],
  },
  { name: "oslo", ddl: "CREATE VIEW oslo AS SELECT * FROM customers WHERE city = 'Oslo'", rows: [] },
]);

export function openShop(options = {}): Database {
  return new Database("shop", shopBytes, options);
}

const QUESTIONS: [string, string][] = [
  ["How many customers are there?", "SELECT count(*) FROM customers"],
  ["Who is the youngest customer?", "SELECT name FROM customers ORDER BY age LIMIT 1"],
  ["Who is the oldest customer?", "SELECT name FROM customers ORDER BY age DESC LIMIT 1"],
  ["Which cities do customers live in?", "SELECT DISTINCT city FROM customers WHERE city IS NOT NULL"],
  ["What is the average order total?", `SELECT avg("total price") FROM orders`],
  ["List names and ages of customers in Hanoi.", "SELECT name, age FROM customers WHERE city = 'Hanoi'"],
  [
    "What has each customer spent?",
    `SELECT name, sum("total price") FROM customers JOIN orders ON customers.id = customer_id GROUP BY customers.id`,
  ],
];

/** The shop with one question of each answer type and a tie. */
export function shopDataSet(): DataSet {
  const shop = openShop();
  const questions = QUESTIONS.map(([question_text, gold_sql], i): QuestionRecord => {
    const result = shop.run(gold_sql);
    if (!result.ok) throw new Error(result.error.message);
    return {
      question_id: `shop_eval_${String(i).padStart(3, "0")}`,
      question_text,
      database_name: "shop",
      gold_sql,
      gold_answer: formatAnswer(result.table),
      answer_type: answerTypeOf(result.table),
      difficulty: "easy",
      tables_involved: ["customers"],
      split: i % 2 === 0 ? "train" : "eval",
    };
  });
  shop.close();
  return {
    name: "shop",
    questions,
    databases: new DatabasePool({ names: ["shop"], read: () => shopBytes }),
    rejected: [],
  };
}
