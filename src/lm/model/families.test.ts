// Tests families other than Qwen3 through the engine and files: Qwen2's biases and Llama 3's rotary scaling.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../../../test/helpers/data-files.ts";
import { logitsOf } from "../../../test/helpers/model-passes.ts";
import { difference, FAMILIES, tinyModel, tokens } from "../../../test/helpers/tiny-model.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import type { Datum } from "../engine/engine.ts";
import { LocalEngine } from "../engine/local-engine.ts";
import { loadModelFolder, saveModelFolder } from "./formats/folder.node.ts";
import { loadWeights, tensorsOf } from "./formats/load.ts";
import { mergedWeights } from "./formats/merge.node.ts";
import { readAdapterConfig, saveAdapter } from "./formats/peft.node.ts";
import { addLora } from "./lora.ts";
import { createModel, type Model } from "./parameters.ts";
import { trainBpe } from "./text/bpe-trainer.ts";

const RUNS = [{ tokens: tokens(50, "families"), parent: null }];
const BATCH: Datum[] = [0, 1].map((i) => ({ tokens: tokens(40, "learn", i), weights: new Array(40).fill(1) }));
const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
const tokenizerFiles = {
  tokenizer: trainBpe(["a model"], { vocabSize: 262, specialTokens: SPECIAL }),
  config: { eos_token: "<|im_end|>" },
};

async function saved(model: Model): Promise<string> {
  const dir = join(temporaryFolder(), "model");
  await saveModelFolder(dir, { config: model.config, tokenizerFiles, tensors: tensorsOf(model) });
  return dir;
}

describe.each(["qwen2", "llama3"] as const)("a %s", (family) => {
  const config = { ...FAMILIES[family], vocab_size: 280 };

  test("differs from the model without its biases or its rotary scaling", () => {
    const plain = logitsOf(tinyModel({ config: { ...config, rope_scaling: null } }), RUNS);
    const model = tinyModel({ config });
    const logits = logitsOf(model, RUNS);
    for (const { name, value } of model.tensors) if (name.endsWith(".bias")) model.device.fill(value, 0);
    expect(Math.max(difference(plain, logits), difference(logitsOf(model, RUNS), logits))).toBeGreaterThan(0.1);
  });

  test("samples with the log-probs that training computes, to the bit", async () => {
    const engine = new LocalEngine(tinyModel({ config }));
    const prompts = [30, 30, 7].map((length, i) => tokens(length, "prompt", i >> 1));
    const samples = await Promise.all(
      prompts.map((prompt, i) => engine.sample({ prompt, max_new_tokens: 24, stop_ids: [], key: ["family", i] })),
    );
    const whole = prompts.map((prompt, i) => ({ tokens: [...prompt, ...samples[i]!.tokens], weights: [] }));
    const computed = await engine.logprobs(whole);
    for (const [i, { logprobs }] of samples.entries()) {
      expect(logprobs).toEqual([...computed[i]!.slice(prompts[i]!.length)]);
    }
    await engine.close();
  });

  test("trains, is saved, and loads with the same bits", async () => {
    const model = tinyModel({ config });
    const before = new Map([...tensorsOf(model)].map(({ name, data }) => [name, data]));
    const engine = new LocalEngine(model);
    const losses: number[] = [];
    for (let step = 0; step < 3; step++) {
      losses.push((await engine.forwardBackward(BATCH, { loss: { type: "cross_entropy" } })).loss);
      await engine.optimStep({ learning_rate: 1e-2, max_grad_norm: 1 });
    }
    expect(losses[2]!).toBeLessThan(losses[0]!);
    for (const { name, data } of tensorsOf(model)) expect(data, name).not.toEqual(before.get(name));
    const folder = await loadModelFolder(await saved(model));
    expect(folder.config).toEqual(model.config);
    const copy = createModel(createCpu({ threads: 1 }), folder.config, { trains: false });
    await loadWeights(copy, folder.weights);
    await folder.weights.close();
    expect([...tensorsOf(copy)]).toEqual([...tensorsOf(model)]);
    expect(logitsOf(copy, RUNS)).toEqual(logitsOf(model, RUNS));
    await engine.close();
  });

  test("adapters leave biases unchanged, and merge into the trained model", async () => {
    const plain = tinyModel({ config });
    const dir = await saved(plain);
    const frozen = createModel(plain.device, plain.config, { trains: false });
    const base = await loadModelFolder(dir);
    await loadWeights(frozen, base.weights);
    const model = addLora(frozen, { r: 4, alpha: 8 });
    const engine = new LocalEngine(model);
    for (let step = 0; step < 2; step++) {
      await engine.forwardBackward(BATCH, { loss: { type: "cross_entropy" } });
      await engine.optimStep({ learning_rate: 1e-2 });
    }
    const adapter = join(temporaryFolder(), "adapter");
    await saveAdapter(model, adapter, dir);
    const merged = await mergedWeights(base.weights, adapter, readAdapterConfig(adapter));
    const whole = createModel(createCpu({ threads: 1 }), plain.config, { trains: false });
    await loadWeights(whole, merged);
    await merged.close();
    const untouched = new Map([...tensorsOf(plain)].map(({ name, data }) => [name, data]));
    for (const { name, data } of tensorsOf(whole)) {
      expect(
        data.every((value, i) => value === untouched.get(name)![i]),
        name,
      ).toBe(!/(proj)\.weight$/.test(name));
    }
    expect(difference(logitsOf(whole, RUNS), logitsOf(model, RUNS))).toBeLessThan(1e-5);
    await engine.close();
  });
});
