import { expect, test } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { DEFAULT_RULES, GUIDED_RULES, MAX_DESCRIBED, type SQLAction, SQLEnvironment, tableNames } from "./index.ts";

const shop = shopDataSet();
const act = (action_type: SQLAction["action_type"], argument: string): SQLAction => ({ action_type, argument });

function started(rules = { ...DEFAULT_RULES, describe_many: true }): SQLEnvironment {
  const env = new SQLEnvironment(shop, rules);
  env.reset({ question_id: "shop_eval_000" });
  return env;
}

test.each([
  ["customers, orders", ["customers", "orders"]],
  ['"group" | customers; orders', ["group", "customers", "orders"]],
  ["tables customers and orders.", ["customers", "orders"]],
  ["customers, Customers,, ", ["customers"]],
  ["band", ["band"]],
])("%s names tables", (argument, names) => {
  expect(tableNames(argument)).toEqual(names);
});

test("one action describes several tables, each as if alone", () => {
  const one = started();
  const results = ["customers", "orders"].map((table) => one.step(act("DESCRIBE", table)).result);
  const many = started();
  const observation = many.step(act("DESCRIBE", "Customers, orders"));
  expect(observation).toMatchObject({ result: results.join("\n\n"), error: null, step_count: 1 });
  expect(observation.schema_info).toContain("customers(id, name, city, age)");
  expect(observation.schema_info).toContain("orders(id");
  expect(observation.reward_breakdown.new_info).toBeGreaterThan(0); // paid once, not once per table
  expect(observation.reward_breakdown).toEqual(started().step(act("DESCRIBE", "customers")).reward_breakdown);
});

test("the same tables in another order are a repeat", () => {
  const env = started();
  env.step(act("DESCRIBE", "customers, orders"));
  expect(env.step(act("DESCRIBE", "orders | CUSTOMERS"))).toMatchObject({ error_class: "repeat" });
});

test("a table named twice counts once, and describing it again is a repeat", () => {
  const env = started(GUIDED_RULES);
  const twice = env.step(act("DESCRIBE", "customers, customers"));
  expect(twice).toMatchObject({ error: null, result: started().step(act("DESCRIBE", "customers")).result });
  expect(env.step(act("DESCRIBE", "customers")).error_class).toBe("repeat");
});

test("an unknown table fails the whole action, and no table counts as described", () => {
  const env = started(GUIDED_RULES);
  const { error, schema_info } = env.step(act("DESCRIBE", "customers, prices"));
  expect(error).toBe('no such table: prices; tables: customers, orders, "group", oslo');
  expect(schema_info).not.toContain("(");
});

test("more tables than MAX_DESCRIBED are refused", () => {
  const names = Array.from({ length: MAX_DESCRIBED + 1 }, (_, i) => `t${i}`).join(", ");
  expect(started().step(act("DESCRIBE", names))).toMatchObject({ error_class: "bad_action" });
});

test("without the rule, and for SAMPLE, only one table is allowed", () => {
  const plain = started(DEFAULT_RULES);
  expect(plain.step(act("DESCRIBE", "customers, orders")).error_class).toBe("unknown_table");
  const guided = started(GUIDED_RULES);
  expect(guided.step(act("SAMPLE", "customers, orders")).error).toContain("one table at a time, such as customers");
});
