// The bundled starter has the skill but not the habit; a few steps of GRPO change that.
import { GRPOTrainer, loadModelAndTokenizer, loadSqlite, practiceSet, resolveConfig } from "sqlenv";
import { beforeAll, expect, test } from "vitest";

beforeAll(async () => void (await loadSqlite()));

test("a few GRPO steps raise the bundled starter's success rate", async () => {
  const data = practiceSet({ seed: 1, seen: 24, unseen: 2, forms: ["count", "count_above", "count_below"] });
  const model = await loadModelAndTokenizer("starter", { device: "cpu" });
  const config = resolveConfig({
    ...{ model_name: "starter", max_steps: 8, num_train_epochs: 100, learning_rate: 2e-3, seed: 3 },
    ...{ per_device_train_batch_size: 48, gradient_accumulation_steps: 1, num_generations: 8, logging_steps: 1 },
    ...{ max_new_tokens: 48, max_completion_length: 160, max_context_tokens: 768, step_budget: 5, eval_steps: 0 },
  });
  try {
    const { metrics } = await new GRPOTrainer({ model, data, config }).train();
    const right = metrics.flatMap((line) => line["rewards/reward_correctness/mean"] ?? []);
    const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(right).toHaveLength(8);
    expect(mean(right.slice(-2))).toBeGreaterThan(mean(right.slice(0, 2)) + 0.2);
  } finally {
    await model.engine.close();
    data.databases.close();
  }
}, 180_000);
