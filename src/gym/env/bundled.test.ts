// Tests the environment's rules on the bundled questions.
import { expect, test } from "vitest";
import { MUTATIONS } from "../../apps/bench/verifier/mutated-queries.ts";
import { rewriteQuery } from "../../apps/bench/verifier/rewrites.ts";
import { formatAnswer } from "../data/index.ts";
import { loadSqlite } from "../sql/index.ts";
import { bundledDataSet } from "../worlds/index.ts";
import { runGold, type SQLAction, SQLEnvironment, verifyAnswer, verifyResult } from "./index.ts";

await loadSqlite();
const data = bundledDataSet();
const act = (action_type: SQLAction["action_type"], argument: string): SQLAction => ({ action_type, argument });

test("every bundled gold query is right as @last, and a mutated one exactly when its text is right", () => {
  const env = new SQLEnvironment(data, { answer_last: true });
  const counts = { right: 0, wrong: 0 };
  for (const [index, question] of data.questions.entries()) {
    env.reset({ question_id: question.question_id });
    env.step(act("QUERY", question.gold_sql));
    env.step(act("ANSWER", "@last"));
    expect({ ...env.outcome, question }).toMatchObject({ correctness: 1 });

    if (index % 3 > 0) continue; // a third of them is enough
    const database = data.databases.get(question.database_name);
    const gold = runGold(question, database);
    const changed = Object.values(MUTATIONS).map((mutate) => mutate(question.gold_sql));
    const queries = [...changed, ...rewriteQuery(question.gold_sql).map(([, sql]) => sql)];
    for (const sql of new Set(queries.filter((sql) => sql !== question.gold_sql))) {
      const result = database.run(sql);
      if (!result.ok || result.table.rows.length === 0) continue;
      const byText = verifyAnswer(formatAnswer(result.table), gold);
      const byCells = verifyResult(result.table, gold);
      expect({ sql, gold_sql: question.gold_sql, byCells }).toMatchObject({ byCells: byText });
      counts[byCells ? "right" : "wrong"]++;
    }
  }
  expect(counts.right).toBeGreaterThan(500);
  expect(counts.wrong).toBeGreaterThan(500);
});

test("for typical mistakes in the bundled joins the hint names the intended column", () => {
  const env = new SQLEnvironment(data, { error_hints: true });
  const slips: ((table: string, column: string) => string)[] = [
    (table, column) => `${table}.${column}s`,
    (table, column) => `${table}.${column.replaceAll("_", "")}`,
    (table, column) => `${table}.${column.split("_").at(-1)}`,
    (_, column) => `t.${column}`,
  ];
  let [tried, right] = [0, 0];
  for (const { question_id, gold_sql, tables_involved } of data.questions) {
    const [reference, table, column] = /\b([a-z]\w*)\.([a-z]\w*)/.exec(gold_sql) ?? [];
    if (reference === undefined || tables_involved.length < 2) continue;
    for (const slip of slips) {
      env.reset({ question_id });
      for (const name of tables_involved) env.step(act("DESCRIBE", name));
      const { error, error_class } = env.step(act("QUERY", gold_sql.replace(reference, slip(table!, column!))));
      if (error_class !== "unknown_column") continue;
      tried++;
      if (error!.includes(`did you mean ${reference}?`)) right++;
    }
  }
  expect(tried).toBeGreaterThan(300);
  expect(right / tried).toBeGreaterThan(0.9);
});
