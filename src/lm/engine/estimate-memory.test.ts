import { expect, test } from "vitest";
import { tinyModel, tokens } from "../../../test/helpers/tiny-model.ts";
import { OOMError } from "../../errors.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import type { ModelConfig } from "../model/config.ts";
import {
  CPU_MEMORY_LIMIT,
  capacityText,
  checkCpuMemory,
  cpuCapacity,
  cudaLimits,
  estimateMemory,
} from "./estimate-memory.ts";
import { loadModelAndTokenizer } from "./load.node.ts";
import { LocalEngine } from "./local-engine.ts";

const SIZE = {
  ...{ hidden_size: 128, intermediate_size: 384, num_hidden_layers: 6, vocab_size: 500 },
  ...{ num_attention_heads: 8, num_key_value_heads: 2, head_dim: 16, max_position_embeddings: 512 },
};

test.each([false, true])("the estimate is what training allocates (recompute: %s)", async (recompute) => {
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
  const logits = 4 * 8_000_000; // the estimate reserves this for logits, far more than this vocabulary needs
  expect(measured).toBeLessThan(total);
  expect(measured).toBeGreaterThan(0.8 * (total - logits));
  await engine.close();
});

test("a model that does not fit is rejected with what it needs", () => {
  const large: ModelConfig = {
    ...tinyModel().config,
    ...{ hidden_size: 2048, intermediate_size: 6144, num_hidden_layers: 28, vocab_size: 151_936 },
    ...{ num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128 },
  };
  expect(() => checkCpuMemory("Qwen/Qwen3-1.7B", large, { trains: true })).toThrow(
    /Qwen3-1.7B does not fit the CPU: training needs: [\d.]+ GiB of 4.0 GiB \(activations .*\); use a smaller model/,
  );
  expect(() => checkCpuMemory("x", large, { trains: true })).toThrow(
    expect.objectContaining({ code: "out_of_memory" }),
  );
});

test("what fits the CPU is computed from the estimate", () => {
  const { samples, trains } = cpuCapacity();
  // docs/platforms.md, docs/pretrained.md and docs/decisions/0007-the-cpu-engine.md quote these.
  expect([samples, trains]).toEqual([280e6, 150e6]);
  expect(capacityText({ samples, trains })).toBe(
    "at most about 150M parameters train here, with use_peft and gradient_checkpointing; 280M sample",
  );
});

test("a well-known model that does not fit is refused before it is downloaded", async () => {
  const loading = loadModelAndTokenizer("Qwen/Qwen3-0.6B", {
    device: "cpu",
    hub: { cacheDir: "/nowhere", offline: true },
  });
  await expect(loading).rejects.toThrow(/Qwen3-0.6B does not fit the CPU: training needs: [\d.]+ GiB of/);
});

const QWEN: ModelConfig = {
  ...{ architecture: "Qwen3ForCausalLM", vocab_size: 151_936, hidden_size: 1024, intermediate_size: 3072 },
  ...{ num_hidden_layers: 28, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128, rms_norm_eps: 1e-6 },
  ...{
    rope_theta: 1e6,
    rope_scaling: null,
    max_position_embeddings: 40_960,
    tie_word_embeddings: true,
    qk_norm: true,
    qkv_bias: false,
  },
  ...{ bos_token_id: null, eos_token_ids: [151_645], pad_token_id: null },
};

/** The config of SmolLM2-135M, which has 30 layers. */
const SMOL: ModelConfig = {
  ...{ ...QWEN, architecture: "LlamaForCausalLM", qk_norm: false, vocab_size: 49_152, max_position_embeddings: 8_192 },
  ...{ hidden_size: 576, intermediate_size: 1536, num_attention_heads: 9, num_key_value_heads: 3, head_dim: 64 },
};

test.each([
  [20, true, CPU_MEMORY_LIMIT, /of 4\.0 GiB .*; it fits with gradient_checkpointing; or use a smaller model/],
  [30, true, CPU_MEMORY_LIMIT, /; it fits with use_peft and gradient_checkpointing; or/],
  [44, true, CPU_MEMORY_LIMIT, /; it can be sampled here, but not trained; or use a smaller model/],
  [30, false, 2 ** 30, /of 1\.0 GiB .*; use a smaller model/],
] as const)("%d layers that do not fit: what would is said", (num_hidden_layers, trains, available, message) => {
  const check = () => checkCpuMemory("x", { ...SMOL, num_hidden_layers }, { trains }, available);
  expect(check).toThrow(`x does not fit the CPU: ${trains ? "training" : "sampling"} needs`);
  expect(check).toThrow(message);
});

function gpuOf(memory: number) {
  const rest = { multiprocessors: 40, sharedPerBlock: 65_536, driverVersion: 12_000 };
  return { gpu: { name: "GPU", capability: 75, memory, ...rest }, precision: "fp32" as const };
}

test("a GPU's memory is divided between rows of training and the KV cache", () => {
  const large = cudaLimits("Qwen3-0.6B", QWEN, { ...gpuOf(150e9), precision: "bf16" }, { trains: true });
  expect(large).toEqual({ maxRows: 16_384, maxCachedTokens: 262_144 });
  const small = cudaLimits("Qwen3-0.6B", QWEN, gpuOf(15.8e9), { trains: true, recompute: true });
  expect(small.maxRows).toBeGreaterThanOrEqual(1_024);
  expect(small.maxCachedTokens).toBeGreaterThanOrEqual(8_192);
});

test("a model too large for a GPU is rejected before it is loaded, with what would help", () => {
  const load = () => cudaLimits("Qwen3-0.6B", QWEN, gpuOf(15.8e9), { trains: true });
  expect(load).toThrow(OOMError);
  expect(load).toThrow(
    /Qwen3-0.6B does not fit the GPU: training needs: 1\d\.\d GiB of 13\.\d GiB \(optimizer 4.5 GiB.*\); recompute activations .*use_peft/,
  );
});
