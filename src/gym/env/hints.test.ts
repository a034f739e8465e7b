import { expect, test } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { random } from "../../random.ts";
import { createDatabase, DatabasePool, quoteName } from "../sql/index.ts";
import { DEFAULT_RULES, type SQLAction, SQLEnvironment } from "./index.ts";

const shop = shopDataSet();
const act = (action_type: SQLAction["action_type"], argument: string): SQLAction => ({ action_type, argument });

/** Runs a query after describing some tables and returns its error. */
function errorOf(sql: string, described: readonly string[], error_hints = true): string {
  const env = new SQLEnvironment(shop, { error_hints });
  env.reset({ question_id: "shop_eval_000" });
  for (const table of described) env.step(act("DESCRIBE", table));
  return env.step(act("QUERY", sql)).error ?? "";
}

const CUSTOMERS = "columns: customers(id, name, city, age)";
const ORDERS = 'orders(id, customer_id, "total price", placed)';

test.each([
  ["SELECT nam FROM customers", ["customers"], `no such column: nam; did you mean customers.name? ${CUSTOMERS}`],
  [
    "SELECT T1.placed FROM customers AS T1 JOIN orders T2 ON T1.id = T2.customer_id",
    ["customers", "orders"],
    `no such column: T1.placed; did you mean T2.placed? ${CUSTOMERS}, ${ORDERS}`,
  ],
  [
    "SELECT total_price FROM orders WHERE id = 1",
    ["orders", "customers"],
    `no such column: total_price; did you mean orders."total price"? columns: ${ORDERS}`,
  ],
  [
    "SELECT orders.placed FROM customers",
    ["orders", "customers"],
    `no such column: orders.placed; orders is not in FROM; columns: ${ORDERS}, customers(id, name, city, age)`,
  ],
  [
    "SELECT placed FROM customers",
    ["orders", "customers"],
    `no such column: placed; did you mean orders.placed? orders is not in FROM; ${CUSTOMERS}`,
  ],
  [
    "SELECT id FROM customers a JOIN orders ON a.id = customer_id",
    ["customers", "orders"],
    `ambiguous column name: id; did you mean a.id or orders.id? ${CUSTOMERS}, ${ORDERS}`,
  ],
  [
    "SELECT c.zzz, o.placed FROM customers c, orders o",
    ["customers"],
    `no such column: c.zzz; DESCRIBE orders first; ${CUSTOMERS}`,
  ],
  ["SELECT zzz FROM customers", ["orders"], "no such column: zzz; DESCRIBE customers first"],
  ["SELECT zzz FROM customers", [], "no such column: zzz; DESCRIBE customers first"],
  // The column may be in the table that was not described, so no hint guesses another column.
  [
    "SELECT o.name FROM customers c, orders o",
    ["customers"],
    `no such column: o.name; DESCRIBE orders first; ${CUSTOMERS}`,
  ],
  [
    "SELECT c.nam FROM customers c, orders o",
    ["customers"],
    `no such column: c.nam; DESCRIBE orders first; did you mean c.name? ${CUSTOMERS}`,
  ],
  ["SELECT zzz", [], "no such column: zzz"],
  [
    "SELECT 1 FROM custmers",
    [],
    'no such table: custmers; did you mean customers? tables: customers, orders, "group", oslo',
  ],
  [
    "SELECT o.ids FROM customers c JOIN orders o ON c.id = o.customer_id",
    ["customers", "orders"],
    `no such column: o.ids; did you mean o.id? ${CUSTOMERS}, ${ORDERS}`,
  ],
  [
    "SELECT customer FROM orders",
    ["orders"],
    `no such column: customer; did you mean orders.customer_id? columns: ${ORDERS}`,
  ],
  ["SELECT 1 +", ["customers"], "incomplete input"],
] as const)("%s", (sql, described, error) => {
  expect(errorOf(sql, described)).toBe(error);
});

test("DESCRIBE of several tables is told that it takes one", () => {
  const env = new SQLEnvironment(shop, { error_hints: true });
  env.reset({ question_id: "shop_eval_000" });
  expect(env.step(act("DESCRIBE", "Customers | orders")).error).toBe(
    'no such table: Customers | orders; one table at a time, such as customers; tables: customers, orders, "group", oslo',
  );
});

test("without the rule errors are SQLite's messages", () => {
  expect(errorOf("SELECT nam FROM customers", ["customers"], false)).toBe("no such column: nam");
  expect(DEFAULT_RULES.error_hints).toBe(false);
});

test("no hint names a column of a table that was not described", () => {
  const SCHEMAS = 40;
  let hinted = 0;
  for (let seed = 0; seed < SCHEMAS; seed++) {
    const r = random("hints", seed);
    // Every name is unique and differs from the words of a hint, so a leak can be found as a substring.
    let made = 0;
    const name = () => `${r.pick(["q", "Q w", "ü_", "x.y", '"', "vv"])}${(made++).toString(36)}${seed}k`;
    const tables = Array.from({ length: r.int(1, 5) }, () => ({
      name: name(),
      columns: Array.from({ length: r.int(1, r.chance(0.1) ? 90 : 6) }, name),
    }));
    const bytes = createDatabase(
      tables.map((table) => ({
        name: table.name,
        ddl: `CREATE TABLE ${quoteName(table.name)} (${table.columns.map(quoteName).join(", ")})`,
        rows: [],
      })),
    );
    const databases = new DatabasePool({ names: ["d"], read: () => bytes });
    const question = { ...shop.questions[0]!, database_name: "d", gold_sql: "SELECT 1" };
    const env = new SQLEnvironment(
      { name: "d", questions: [question], databases, rejected: [] },
      { error_hints: true, step_budget: 60 },
    );
    env.reset();
    const described = new Set<string>();
    for (let i = 0; i < 25; i++) {
      if (r.chance(0.1)) {
        const { name: table } = r.pick(tables);
        env.step(act("DESCRIBE", table));
        described.add(table);
        continue;
      }
      const sql = randomQuery(tables, r);
      const { error } = env.step(act("QUERY", sql));
      if (error === null) continue;
      if (error.includes("columns: ")) hinted++;
      for (const table of tables.filter((other) => !described.has(other.name))) {
        for (const column of table.columns) {
          const isLeak = error.includes(column.replaceAll('"', '""')) && !sql.includes(column.replaceAll('"', '""'));
          expect({ sql, error, column, isLeak }).toMatchObject({ isLeak: false });
        }
      }
    }
    databases.close();
  }
  expect(hinted).toBeGreaterThan(SCHEMAS);
});

/** Generates a query that usually fails: real, misspelt and foreign names, with and without aliases. */
function randomQuery(
  tables: readonly { name: string; columns: readonly string[] }[],
  r: ReturnType<typeof random>,
): string {
  const [a, b] = [r.pick(tables), r.pick(tables)];
  const misspelt = (name: string) => (r.chance(0.5) ? name : name.slice(0, r.int(1, name.length)) || "z");
  const column = quoteName(misspelt(r.pick(r.pick(tables).columns)));
  const [left, right] = [quoteName(a.name), quoteName(b.name)];
  return r.pick([
    `SELECT ${column} FROM ${left}`,
    `SELECT T1.${column} FROM ${left} AS T1 JOIN ${right} AS T2 USING (${column})`,
    `SELECT ${right}.${column} FROM ${left}`,
    `SELECT ${column} FROM ${left} a, ${right} b WHERE a.${column} = b.z`,
    `SELECT count(*) FROM ${quoteName(misspelt(a.name))} ORDER BY ${column}`,
    `SELECT s.${column} FROM (SELECT * FROM ${left}) s`,
  ]);
}
