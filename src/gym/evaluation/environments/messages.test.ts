// Messages between threads contain only differences, from which observations are rebuilt.
import { expect, test } from "vitest";
import { smallDataSet } from "../../../../test/helpers/small-data.ts";
import { SQLEnvironment, type SQLObservation } from "../../env/index.ts";
import { applyDiff, diffObservation } from "./messages.ts";

test("only differences are sent, and the observation is restored to the byte", async () => {
  const data = await smallDataSet();
  const env = new SQLEnvironment(data, { step_budget: 6 });
  const actions = [
    { action_type: "DESCRIBE", argument: "product" },
    { action_type: "QUERY", argument: "SELECT name FROM product" },
    { action_type: "QUERY", argument: "SELECT name FROM product" },
    { action_type: "QUERY", argument: "SELECT nothing FROM product" },
    { action_type: "ANSWER", argument: "5" },
  ] as const;
  let [there, here]: (SQLObservation | undefined)[] = [];
  for (const action of [null, ...actions]) {
    const observation = action ? env.step(action) : env.reset({ question_id: data.questions[0]!.question_id });
    const news = structuredClone(diffObservation(there, observation));
    there = observation;
    here = applyDiff(here, news);
    expect(JSON.stringify(here)).toBe(JSON.stringify(observation));
    if (!action) continue;
    expect(news).not.toHaveProperty("question");
    expect(news.history).toHaveLength(1);
    if (action.action_type === "QUERY") expect(news).not.toHaveProperty("schema_info");
  }
});
