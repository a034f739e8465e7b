// Compares adapters with peft (../../test/reference/), merged and separate, over AdamW steps and through files.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { everyToken, logitsOf, train } from "../../../test/helpers/model-passes.ts";
import { difference, tinyModel, tokens } from "../../../test/helpers/tiny-model.ts";
import {
  ADAMW,
  ENTROPY_WEIGHT,
  LORA_REFERENCES,
  readLora,
  readReference,
  TEMPERATURE,
} from "../../../test/reference/read.ts";
import { UsageError } from "../../errors.ts";
import { createCpu } from "../devices/cpu/start.node.ts";
import { LocalEngine } from "../engine/local-engine.ts";
import { parseConfig } from "./config.ts";
import { loadWeights, tensorsOf } from "./formats/load.ts";
import { loadAdapter, readAdapterConfig, saveAdapter } from "./formats/peft.node.ts";
import { openSafetensors } from "./formats/safetensors.node.ts";
import { adaptedLength, addLora, LORA_MODULES, loraLength, loraTensorsOf, mergeLora } from "./lora.ts";
import { createModel, type Model } from "./parameters.ts";

describe.each(LORA_REFERENCES)("%s with an adapter, against peft", (name) => {
  const reference = readReference(name);
  const adapter = readLora(name);
  const runs = reference.sequences.map((ids) => ({ tokens: [...ids], parent: null }));
  const all = everyToken(reference.sequences);

  async function load(threads = 1): Promise<Model> {
    const plain = createModel(createCpu({ threads }), parseConfig(reference.config), { trains: false });
    const source = await openSafetensors(reference.folder);
    await loadWeights(plain, source);
    await source.close();
    const model = addLora(plain, readAdapterConfig(adapter.folder).spec);
    await loadAdapter(model, adapter.folder);
    return model;
  }

  test("logits, log-probs and the gradients of every A and B", async () => {
    const model = await load();
    expect(difference(logitsOf(model, runs), adapter.logits)).toBeLessThan(1e-5);
    const wanted = {
      ...{ ...all, temperature: TEMPERATURE, weights: reference.weights, entropyWeight: ENTROPY_WEIGHT },
    };
    const { logp } = train(model, runs, wanted);
    expect(difference(logp, adapter.logp)).toBeLessThan(1e-5);
    const { modules, spec, rank } = model.lora!;
    expect(2 * modules.length).toBe(adapter.gradients.size);
    for (const { name: module, inputs, outputs, aGrad, bGrad } of modules) {
      const at = (kind: string) => adapter.gradients.get(`base_model.model.${module}.lora_${kind}.weight`)!;
      const a = model.device.read(aGrad) as Float32Array;
      expect(difference(a.slice(0, spec.r * inputs), at("A").data), `${module} A`).toBeLessThan(3e-5);
      expect(a.slice(spec.r * inputs).every((g) => g === 0)).toBe(true); // rank padding is not trained
      const b = model.device.read(bGrad) as Float32Array;
      const own = Float32Array.from(
        { length: outputs * spec.r },
        (_, i) => (b[Math.floor(i / spec.r) * rank + (i % spec.r)]! * spec.alpha) / spec.r,
      );
      expect(difference(own, at("B").data), `${module} B`).toBeLessThan(3e-5);
    }
    model.device.close();
  });

  test("ten steps of AdamW through the engine: losses and gradient norms", async () => {
    const engine = new LocalEngine(await load());
    const batch = runs.map(({ tokens: ids }) => ({ tokens: ids, weights: ids.map(() => 1) }));
    const { lr: learning_rate, ...rates } = ADAMW;
    const [losses, norms]: number[][] = [[], []];
    for (let step = 0; step < 10; step++) {
      losses!.push((await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } })).loss);
      norms!.push((await engine.optimStep({ ...rates, learning_rate })).grad_norm);
    }
    losses!.push((await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } })).loss);
    for (const [i, loss] of losses!.entries())
      expect(Math.abs(loss - adapter.adamw.losses[i]!), `loss ${i}`).toBeLessThan(2e-5);
    for (const [i, norm] of norms!.entries())
      expect(Math.abs(norm - adapter.adamw.grad_norms[i]!), `norm ${i}`).toBeLessThan(5e-5);
    await engine.close();
  });

  test("without the adapter the model has the loaded bits; with it again, the same bits as before", async () => {
    const model = await load();
    const before = logitsOf(model, runs);
    const { values } = model.lora!.trained;
    const adapters = model.device.read(values);
    model.device.fill(values, 0);
    mergeLora(model);
    expect(difference(logitsOf(model, runs), reference.logits.data)).toBeLessThan(1e-5);
    const plain = [...tensorsOf(model)];
    for (const { name: tensor, data } of plain) expect(data).toEqual(reference.parameters.get(tensor)!.data);
    model.device.write(values, adapters);
    mergeLora(model);
    expect(logitsOf(model, runs)).toEqual(before);
    model.device.close();
  });

  test("merged weights are the sum of the model's and the adapter's files", async () => {
    const model = await load();
    const pieces = new Map([...loraTensorsOf(model)].map(({ name: tensor, data }) => [tensor, data]));
    const { spec, modules } = model.lora!;
    for (const { name: module, inputs, outputs } of modules) {
      const merged = [...tensorsOf(model)].find(({ name: tensor }) => tensor === `${module}.weight`)!.data;
      const [A, B] = ["A", "B"].map((kind) => pieces.get(`base_model.model.${module}.lora_${kind}.weight`)!);
      const base = reference.parameters.get(`${module}.weight`)!.data;
      const want = base.map((w, at) => {
        let sum = 0;
        for (let i = 0; i < spec.r; i++)
          sum += B![Math.floor(at / inputs) * spec.r + i]! * A![i * inputs + (at % inputs)]!;
        return w + (spec.alpha / spec.r) * sum;
      });
      expect(merged.length).toBe(outputs * inputs);
      expect(difference(merged, want), module).toBeLessThan(1e-6);
    }
    model.device.close();
  });

  test("PEFT's files: saved and loaded again, the same model", async () => {
    const model = await load();
    const dir = mkdtempSync(join(tmpdir(), "sqlenv-lora-"));
    await saveAdapter(model, dir, "some/model");
    expect(readAdapterConfig(dir)).toEqual({ spec: model.lora!.spec, base: "some/model" });
    const again = await load();
    again.device.fill(again.lora!.trained.values, 0);
    await loadAdapter(again, dir);
    expect(difference(logitsOf(again, runs), logitsOf(model, runs))).toBeLessThan(1e-6);
    const saved = readFileSync(join(dir, "adapter_model.safetensors"));
    expect(saved.includes("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight")).toBe(true);
    rmSync(dir, { recursive: true });
    for (const { device } of [model, again]) device.close();
  });
});

describe("an engine with adapters", () => {
  const batch = [0, 1, 2].map((i) => {
    const ids = tokens(30 + i, "lora", i);
    return { tokens: ids, weights: ids.map((_, at) => (at > 10 ? 1 : 0)) };
  });
  const step = async (engine: LocalEngine) => {
    await engine.forwardBackward(batch, { loss: { type: "cross_entropy" } });
    return engine.optimStep({ learning_rate: 1e-2 });
  };
  const start = (threads: number) =>
    new LocalEngine(addLora(tinyModel({ device: createCpu({ threads }) }), { r: 8, alpha: 16 }, { seed: 5 }), {
      reference: true,
    });

  test("sampled and trained log-probs are the same numbers, also after a step, and for any number of threads", async () => {
    const seen: unknown[] = [];
    for (const threads of [1, 2]) {
      const engine = start(threads);
      await step(engine);
      await step(engine);
      const prompt = tokens(12, "prompt");
      const sample = await engine.sample({ prompt, max_new_tokens: 20, stop_ids: [], key: ["lora"] });
      const context = [...prompt, ...sample.tokens];
      const [logp] = await engine.logprobs([{ tokens: context, weights: [] }]);
      expect([...logp!.slice(prompt.length)]).toEqual(sample.logprobs);
      seen.push([...sample.tokens, ...sample.logprobs]);
      await engine.close();
    }
    expect(seen[0]).toEqual(seen[1]);
  });

  test("only the adapters change, and the reference is the loaded model, saved as adapters only", async () => {
    const engine = start(1);
    const { device, lora } = engine.model;
    const untouched = tinyModel();
    const plain = await new LocalEngine(untouched).logprobs(batch);
    expect(await engine.logprobs(batch)).toEqual(plain); // B is 0
    await step(engine);
    const moved = await engine.logprobs(batch);
    expect(moved).not.toEqual(plain);
    expect(await engine.logprobs(batch, { weights: "reference" })).toEqual(plain);
    expect(await engine.logprobs(batch)).toEqual(moved);
    expect(engine.optimizer.m.length).toBe(loraLength(engine.model.config, lora!.spec));
    const { embedding, norm } = engine.model;
    expect(device.read(embedding.value)).toEqual(untouched.device.read(untouched.embedding.value));
    expect(device.read(norm.value)).toEqual(untouched.device.read(untouched.norm.value));
    await engine.close();
  });

  test("all memory is freed", async () => {
    const engine = start(1);
    await step(engine);
    await engine.sample({ prompt: [1, 2, 3], max_new_tokens: 4, stop_ids: [], key: ["x"] });
    const { device } = engine.model;
    await engine.close();
    expect((device as ReturnType<typeof createCpu>).memory.used).toBe(0);
  });
});

test("adapters are counted as they are allocated", () => {
  const model = tinyModel();
  for (const targets of [LORA_MODULES, ["q_proj", "v_proj"] as const, ["down_proj"] as const]) {
    const spec = { r: 4, alpha: 8, targets };
    const { lora } = addLora(model, spec);
    expect(lora!.trained.values.length).toBe(loraLength(model.config, spec));
    const copies = [...lora!.adapters.values()].reduce((sum, { base }) => sum + base.length, 0);
    expect(copies).toBe(adaptedLength(model.config, spec));
  }
});

test.each([
  [{ r: 0, alpha: 1 }, /lora_r must be a whole number from 1: 0/],
  [{ r: 8, alpha: -1 }, /lora_alpha must be above 0/],
  [{ r: 8, alpha: 8, targets: ["lm_head"] as never }, /no such module: lm_head; choose among q_proj/],
])("%j is refused", (spec, message) => {
  expect(() => addLora(tinyModel(), spec)).toThrow(UsageError);
  expect(() => addLora(tinyModel(), spec)).toThrow(message);
});
