import { expect, test } from "vitest";
import { tinyModel, tokens } from "../../test/tiny-model.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import type { ModelConfig } from "../model/config.ts";
import { LocalEngine } from "./local.ts";
import { checkCpuMemory, estimateMemory } from "./memory.ts";

const SIZE = {
  ...{ hidden_size: 128, intermediate_size: 384, num_hidden_layers: 6, vocab_size: 500 },
  ...{ num_attention_heads: 8, num_key_value_heads: 2, head_dim: 16, max_position_embeddings: 512 },
};

test.each([false, true])("the estimate is what training takes (recompute: %s)", async (recompute) => {
  const device = createCpu({ threads: 1 });
  const engine = new LocalEngine(tinyModel({ device, config: SIZE }), { recompute });
  const rows = 4 * 256;
  const batch = Array.from({ length: 4 }, (_, i) => {
    const context = tokens(256, "memory", i).map((token) => token % 500);
    return { tokens: context, weights: context.map(() => 1) };
  });
  await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } });
  await engine.optimStep({ learning_rate: 0 });
  const { total } = estimateMemory(engine.model.config, { trains: true, recompute, rows, cacheTokens: 0 });
  const measured = device.memory.peak;
  const logits = 4 * 8_000_000; // the estimate's allowance for logits, of which this vocabulary needs little
  expect(measured).toBeLessThan(total);
  expect(measured).toBeGreaterThan(0.8 * (total - logits));
  await engine.close();
});

test("a model that cannot fit is refused with what it needs", () => {
  const large: ModelConfig = {
    ...tinyModel().config,
    ...{ hidden_size: 2048, intermediate_size: 6144, num_hidden_layers: 28, vocab_size: 151_936 },
    ...{ num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128 },
  };
  expect(() => checkCpuMemory("Qwen/Qwen3-1.7B", large, { trains: true })).toThrow(
    /Qwen3-1.7B does not fit the CPU: training needs: [\d.]+ GiB of 4.0 GiB; use a smaller model/,
  );
  expect(() => checkCpuMemory("x", large, { trains: true })).toThrow(
    expect.objectContaining({ code: "out_of_memory" }),
  );
});
