// A hand-made data set for tests: two training databases, two unseen ones, a few questions of each kind.
import { assemble, type DataSet, type QuestionDraft } from "../../src/gym/data/index.ts";
import { createDatabase, DatabasePool, loadSqlite, type NewTable } from "../../src/gym/sql/index.ts";

const SHOP: readonly NewTable[] = [
  {
    name: "maker",
    ddl: "CREATE TABLE maker (id INTEGER PRIMARY KEY, name TEXT, country TEXT)",
    rows: [
      [1, "Acme", "Peru"],
      [2, "Borealis", "Norway"],
      [3, "Cobalt", "Norway"],
    ],
  },
  {
    name: "product",
    ddl: 'CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price REAL, colour TEXT, "year made" INTEGER, maker_id INTEGER REFERENCES maker(id))',
    rows: [
      [1, "lamp", 20.5, "red", 2001, 1],
      [2, "chair", 45, "blue", 2005, 2],
      [3, "table", 120, "red", 1999, 2],
      [4, "vase", 12.25, "green", 2010, 1],
      [5, "clock", 60, "red", 2010, 3],
    ],
  },
];

const ZOO: readonly NewTable[] = [
  {
    name: "animal",
    ddl: "CREATE TABLE animal (id INTEGER PRIMARY KEY, name TEXT, species TEXT, age INTEGER, weight REAL)",
    rows: [
      [1, "Nala", "lion", 7, 130.5],
      [2, "Otto", "otter", 3, 9.5],
      [3, "Pia", "lion", 11, 121],
      [4, "Quin", "tapir", 5, 210],
    ],
  },
];

const DATABASES: Readonly<Record<string, readonly NewTable[]>> = { shop: SHOP, zoo: ZOO, store: SHOP, park: ZOO };

const SHOP_QUESTIONS = [
  ["How many products are there?", "SELECT count(*) FROM product"],
  ["How many products have the colour red?", "SELECT count(*) FROM product WHERE colour = 'red'"],
  ["What is the price of the chair?", "SELECT price FROM product WHERE name = 'chair'"],
  ["Which product has the highest price?", "SELECT name FROM product ORDER BY price DESC LIMIT 1"],
  [
    "List the names of the products made by makers from Norway.",
    "SELECT product.name FROM product JOIN maker ON maker.id = maker_id WHERE country = 'Norway'",
  ],
  ["What are name and price of every product?", "SELECT name, price FROM product"],
] as const;

const ZOO_QUESTIONS = [
  ["How many animals are there?", "SELECT count(*) FROM animal"],
  ["What is the average weight of the animals?", "SELECT avg(weight) FROM animal"],
  ["Which animal is the oldest?", "SELECT name FROM animal ORDER BY age DESC LIMIT 1"],
  ["How many animals are older than 5?", "SELECT count(*) FROM animal WHERE age > 5"],
] as const;

/** shop and zoo have training questions; store and park, with the same tables, are for evaluation only. */
export async function smallDataSet(): Promise<DataSet> {
  await loadSqlite();
  const asked = (database_name: string, split: "train" | "eval", questions: readonly (readonly [string, string])[]) =>
    questions.map(([question_text, gold_sql]): QuestionDraft => ({ question_text, gold_sql, database_name, split }));
  const drafts = [
    ...asked("shop", "train", SHOP_QUESTIONS.slice(0, 3)),
    ...asked("zoo", "train", ZOO_QUESTIONS.slice(0, 2)),
    ...asked("shop", "eval", SHOP_QUESTIONS.slice(3)),
    ...asked("zoo", "eval", ZOO_QUESTIONS.slice(2)),
    ...asked("store", "eval", SHOP_QUESTIONS),
    ...asked("park", "eval", ZOO_QUESTIONS),
  ];
  const read = (name: string) => createDatabase(DATABASES[name]!);
  return assemble("small", drafts, new DatabasePool({ names: Object.keys(DATABASES), read }), { file: read });
}
