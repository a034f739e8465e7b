import { expect, test, vi } from "vitest";
import { shopDataSet } from "../../../test/helpers/fixtures.ts";
import { limitStatementTime, sharingTime } from "../sql/index.ts";
import type { SQLAction } from "./action.ts";
import { SQLEnvironment } from "./environment.ts";

const data = shopDataSet();
const act = (action_type: SQLAction["action_type"], argument: string): SQLAction => ({ action_type, argument });
const started = (options = {}) => {
  const env = new SQLEnvironment(data, options);
  env.reset({ question_id: "shop_eval_000" });
  return env;
};

test("an episode from the first DESCRIBE to the right answer", () => {
  const env = new SQLEnvironment(data);
  const first = env.reset({ question_id: "shop_eval_000" });
  expect(first).toEqual({
    question: "How many customers are there?",
    schema_info: 'customers, orders, "group", oslo',
    result: "",
    error: null,
    error_class: null,
    step_count: 0,
    budget_remaining: 10,
    action_history: [],
    reward_breakdown: { exec_ok: 0, new_info: 0, repeat: 0, step_cost: 0, progress: 0, correctness: 0 },
    done: false,
    reward: null,
  });
  const described = env.step(act("DESCRIBE", "orders"));
  expect(described.result).toBe(
    'orders: 5 rows\nid INTEGER primary key\ncustomer_id INTEGER -> customers.id\n"total price" REAL\nplaced TEXT',
  );
  expect(described.schema_info).toBe('customers\norders(id, customer_id, "total price", placed)\n"group"\noslo');
  expect(described.reward).toBe(0.025);
  const sampled = env.step(act("SAMPLE", "customers"));
  expect(sampled.result).toContain("4 | Dov | NULL | 41");
  const queried = env.step(act("QUERY", "SELECT count(*) FROM customers"));
  expect(queried.result).toBe("count(*)\n5");
  expect(queried.reward_breakdown.progress).toBe(0.15);
  const answered = env.step(act("ANSWER", "5"));
  expect(answered).toMatchObject({ done: true, step_count: 4, budget_remaining: 6, error: null });
  expect(answered.reward_breakdown).toEqual({
    exec_ok: 0.01,
    new_info: 0,
    repeat: 0,
    step_cost: -0.005,
    progress: 0,
    correctness: 1,
  });
  expect(env.outcome).toEqual({ correctness: 1, progress: 1, operational: 0.1, done_reason: "answered" });
  expect(answered.action_history).toEqual([
    "DESCRIBE: orders",
    "SAMPLE: customers",
    "QUERY: SELECT count(*) FROM customers",
    "ANSWER: 5",
  ]);
});

test("after the end a step changes nothing and says so", () => {
  const env = started();
  const last = env.step(act("ANSWER", "4"));
  expect(last).toMatchObject({ done: true });
  expect(env.outcome).toMatchObject({ correctness: 0, done_reason: "answered" });
  const again = env.step(act("ANSWER", "5"));
  expect(again).toMatchObject({ done: true, error_class: "episode_done", reward: 0, step_count: 1 });
  expect(again.action_history).toEqual(last.action_history);
  expect(env.outcome).toMatchObject({ correctness: 0 });
});

test("the budget ends an episode", () => {
  const env = started({ step_budget: 2 });
  expect(env.step(act("DESCRIBE", "orders")).done).toBe(false);
  expect(env.step(act("DESCRIBE", "customers"))).toMatchObject({ done: true, budget_remaining: 0 });
  expect(env.outcome).toMatchObject({ correctness: 0, done_reason: "budget" });
});

test("repeating an action shows the same result and costs reward", () => {
  const env = started();
  const first = env.step(act("QUERY", "SELECT name FROM customers"));
  const again = env.step(act("QUERY", "select name  FROM customers; -- again"));
  expect(again).toMatchObject({ error_class: "repeat", result: first.result, reward: -0.035 });
  expect(env.step(act("DESCRIBE", "ORDERS")).error).toBeNull();
  expect(env.step(act("DESCRIBE", '"orders"')).error_class).toBe("repeat");
});

test.each([
  [act("DESCRIBE", "custmers"), "unknown_table", /no such table: custmers; tables: customers, orders/],
  [act("QUERY", "SELECT nope FROM customers"), "unknown_column", /no such column: nope/],
  [act("QUERY", "DROP TABLE customers"), "not_select", /only one SELECT/],
  [act("ANSWER", "  "), "bad_action", /needs an argument/],
  [act("QUERY", ""), "bad_action", /needs an argument/],
  [act("QUERY", "x".repeat(1_000_000)), "bad_action", /longer than/],
  [{ action_type: "EXPLODE", argument: "x" }, "bad_action", /DESCRIBE\|SAMPLE\|QUERY\|ANSWER/],
  [{ action_type: "QUERY", argument: 5 }, "bad_action", /argument: text/],
  [null, "bad_action", /an action is/],
  [act("QUERY", "\u0000\u001b[31m"), "syntax", /NUL/],
  [act("SAMPLE", "<|im_start|>system"), "unknown_table", /no such table/],
] as [SQLAction, string, RegExp][])(
  "a bad action is an observation, not a crash: %j",
  (action, error_class, message) => {
    const env = started();
    const observation = env.step(action);
    expect(observation).toMatchObject({ error_class, done: false, step_count: 1, result: "" });
    expect(observation.error).toMatch(message);
    expect(observation.reward).toBeLessThan(0);
    expect(JSON.stringify(observation).length).toBeLessThan(3000);
  },
);

test("actions with throwing getters are bad actions, and an unknown question keeps the running episode", () => {
  const fails = () => {
    throw new Error("no");
  };
  const odd = [
    Object.defineProperty({ argument: "x" }, "action_type", { get: fails }),
    new Proxy({}, { get: fails }),
    { action_type: Object.create(null), argument: Symbol("x") },
  ];
  const env = started();
  for (const action of odd) expect(env.step(action as never)).toMatchObject({ error_class: "bad_action" });
  expect(env.step(act("SAMPLE", `a${".,".repeat(9_000)}x`))).toMatchObject({ error_class: "unknown_table" });
  const bad = { ...data.questions[0]!, question_id: "bad", gold_sql: "SELECT 1 WHERE 0" };
  const other = new SQLEnvironment({ ...data, questions: [...data.questions, bad] });
  other.reset({ question_id: "shop_eval_000" });
  expect(() => other.reset({ question_id: "bad" })).toThrow(/gives no rows/);
  expect(other.step(act("ANSWER", "5"))).toMatchObject({ done: true, reward_breakdown: { correctness: 1 } });
  expect(() => new SQLEnvironment(data, { rewards: { step_cost: 1 } })).toThrow(/rewards.step_cost/);
});

test("long results are truncated, and say so", () => {
  const env = started();
  const { result } = env.step(
    act(
      "QUERY",
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 57) SELECT x, printf('%.500c', 'y') FROM c",
    ),
  );
  expect(result).toContain("(20 of 57 rows shown)");
  expect(result).toContain("… (500 characters)");
  expect(env.step(act("QUERY", "SELECT 1 WHERE 0")).result).toBe("1\n(no rows)");
});

test("questions are chosen by id, by index, or by seed", () => {
  const env = new SQLEnvironment(data);
  expect(env.reset({ split: "eval", index: 1 }).question).toBe(data.questions[3]!.question_text);
  expect(env.reset({ seed: 7 }).question).toBe(new SQLEnvironment(data).reset({ seed: 7 }).question);
  const drawn = (seed: number) => {
    const other = new SQLEnvironment(data, { seed });
    return Array.from({ length: 8 }, () => other.reset().question);
  };
  expect(drawn(1)).toEqual(drawn(1));
  expect(new Set(drawn(1)).size).toBeGreaterThan(1);
  expect(() => env.reset({ question_id: "shop_eval_00" })).toThrow(
    /no such question_id: shop_eval_00; did you mean shop_eval_00/,
  );
  expect(() => env.reset({ split: "eval", index: 99 })).toThrow(/index: 99; use 0 to 2/);
  expect(() => new SQLEnvironment(data).step(act("ANSWER", "1"))).toThrow(/reset\(\) first/);
  expect(() => new SQLEnvironment(data, { step_budget: 0 })).toThrow(/step_budget/);
});

test("no observation contains the gold before the player finds it", () => {
  for (const question of data.questions) {
    const env = new SQLEnvironment(data);
    const seen = [
      env.reset({ question_id: question.question_id }),
      env.step(act("DESCRIBE", "nope")),
      env.step(act("QUERY", "SELECT gold_sql")),
      env.step(act("ANSWER", "wrong")),
    ];
    expect(JSON.stringify(seen)).not.toContain(question.gold_sql);
    expect(JSON.stringify(env.state)).not.toContain(question.gold_sql);
    if (question.gold_answer.length > 3)
      expect(JSON.stringify(seen)).not.toContain(JSON.stringify(question.gold_answer).slice(1, -1));
  }
});

test("thousands of environments share one database, and none sees another's episode", () => {
  const envs = Array.from({ length: 2000 }, () => new SQLEnvironment(data));
  for (const [i, env] of envs.entries())
    env.reset({ question_id: data.questions[i % data.questions.length]!.question_id });
  envs.forEach((env, i) => {
    if (i % 2 === 0) env.step(act("DESCRIBE", "orders"));
  });
  envs.forEach((env, i) => {
    const observation = env.step(act("SAMPLE", "orders"));
    expect(observation.step_count).toBe(i % 2 === 0 ? 2 : 1);
    expect(observation.reward_breakdown.new_info).toBe(i % 2 === 0 ? 0 : 0.01);
  });
});

test("the same actions give identical observations", () => {
  const run = () => {
    const env = started();
    return JSON.stringify([
      env.step(act("SAMPLE", "orders")),
      env.step(act("QUERY", "SELECT avg(age), city FROM customers GROUP BY city")),
      env.step(act("ANSWER", "5")),
      env.outcome,
    ]);
  };
  expect(run()).toBe(run());
});

test("rendering takes linear time, and the size of a row is limited", () => {
  const env = started({ step_budget: 100 });
  const columns = Array.from({ length: 490 }, () => "a").join(",");
  const spaces = env.step(act("QUERY", `WITH t(a) AS (SELECT printf('%16000s', '')) SELECT ${columns} FROM t`));
  expect(spaces.error).toBeNull();
  expect(spaces.result.length).toBeLessThan(100_000);
  expect(spaces.result).toMatch(/\(cells cut at 2040 bytes; 1 of 1 rows shown\)$/);
  const name = "n".repeat(5000);
  const empty = env.step(act("QUERY", `WITH t("${name}") AS (SELECT 1) SELECT ${"t.*,".repeat(400)} 1 FROM t WHERE 0`));
  expect(empty.result).toMatch(/… \(5000 characters\) \| 1\n\(no rows\)$/);
  expect(empty.result.length).toBeLessThan(100_000);
});

test("the statements of one step share one time limit", () => {
  const env = started();
  let now = 1000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => now);
  try {
    limitStatementTime(() => 5000);
    sharingTime(() => {
      now += 6000;
      expect(env.step(act("QUERY", "SELECT count(*) FROM customers a, customers b, customers c"))).toMatchObject({
        error_class: "timeout",
        reward: null,
      });
    });
    expect(env.step(act("QUERY", "SELECT count(*) FROM customers a, customers b, customers d")).error).toBeNull();
  } finally {
    limitStatementTime();
    clock.mockRestore();
  }
});
