// Training from a GGUF file: dry run, training, resume, export of the adapter and the whole model, playground.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { CHATML_TEMPLATE } from "sqlenv/lm/model";
import { loadModelFolder } from "sqlenv/lm/model/node";
import { afterAll, expect, test } from "vitest";
import { sqlenvInside } from "../helpers/cli-process.ts";
import { ggufOf, ggufParts } from "../helpers/gguf-bytes.ts";
import { TrainingPlace } from "../helpers/training-place.ts";

const place = await TrainingPlace.make();
afterAll(() => place.remove());
const model = place.path("tiny.gguf");
const parts = ggufParts({
  pre: "qwen2",
  config: { architecture: "Qwen2ForCausalLM", max_position_embeddings: 1024, num_hidden_layers: 1 },
});
parts.facts.set("tokenizer.chat_template", { text: CHATML_TEMPLATE }).set("general.name", { text: "tiny base" });
writeFileSync(model, ggufOf(parts));
const LONG = { "--max-context-tokens": 1024 };
const ADAPTERS = { "--model-name": model, "--use-peft": "true", "--lora-r": 4, "--max-steps": 1 };

const ok = async (args: readonly string[]) => {
  const { code, stdout, stderr } = await sqlenvInside([...args]);
  expect(code, stderr).toBe(0);
  return stdout;
};

test("a dry run reads the file's sizes", async () => {
  const { code, stdout, stderr } = await place.trainInside("never", ADAPTERS, "--dry-run", "--json");
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ folder: model, fits: true, step_time: expect.any(Number) });
});

test("an adapter trained on a GGUF file is played, resumed and exported with it", async () => {
  const { code, stderr } = await place.trainInside("adapted", {
    ...ADAPTERS,
    "--sft-steps": 1,
    "--sft-max-context-tokens": 1024,
    ...LONG,
  });
  expect(code, stderr).toBe(0);
  const adapter = place.path("adapted", "adapter");
  expect(JSON.parse(place.text("adapted", "adapter/adapter_config.json")).base_model_name_or_path).toBe(model);
  expect(Object.keys(JSON.parse(place.text("adapted", "inputs.json")).model)).toEqual(["tiny.gguf"]);
  await ok(["train", "--resume", place.path("adapted")]);
  await ok([
    "eval",
    "--player",
    "model",
    "--model",
    adapter,
    "--episodes",
    "1",
    "--max-new-tokens",
    "4",
    "--step-budget",
    "1",
  ]);
  const out = place.path("tuned.gguf");
  await ok(["export", "--model", adapter, "--gguf", out, "--type", "f32"]);
  const [tuned, whole, before] = await Promise.all([out, place.path("adapted", "model"), model].map(loadModelFolder));
  expect(tuned!.config).toEqual(before!.config);
  expect([before!, tuned!].map(({ weights }) => weights.metadata["general.name"])).toEqual(["tiny base", "adapter"]);
  expect(tuned!.tokenizer.files).toEqual(before!.tokenizer.files);
  for (const name of before!.weights.names) {
    const [got, want] = [await tuned!.weights.read(name), await whole!.weights.read(name)];
    expect(Math.max(...got.map((value, i) => Math.abs(value - want[i]!))), name).toBeLessThan(1e-5);
  }
  const down = "model.layers.0.mlp.down_proj.weight";
  expect(await tuned!.weights.read(down)).not.toEqual(await before!.weights.read(down));
  for (const { weights } of [tuned!, whole!, before!]) await weights.close();
});

test("a run is not resumed when the file has changed", async () => {
  const kept = readFileSync(model);
  appendFileSync(model, Buffer.alloc(32));
  const { code, stderr } = await sqlenvInside(["train", "--resume", place.path("adapted")]);
  writeFileSync(model, kept);
  expect(code).toBe(2);
  expect(stderr).toMatch(/what has changed is: the model \(tiny\.gguf\)/);
});

test("all weights are trained, saved as a folder and exported as a GGUF file", async () => {
  const { code, stderr } = await place.trainInside("whole", { "--model-name": model, "--max-steps": 1 });
  expect(code, stderr).toBe(0);
  const out = place.path("whole.gguf");
  await ok(["export", "--model", place.path("whole", "model"), "--gguf", out, "--type", "f32"]);
  const [folder, file] = await Promise.all([place.path("whole", "model"), out].map(loadModelFolder));
  for (const name of folder!.weights.names) {
    expect(await file!.weights.read(name), name).toEqual(await folder!.weights.read(name));
  }
  expect(file!.tokenizer.files.tokenizer).toEqual(folder!.tokenizer.files.tokenizer);
  for (const { weights } of [folder!, file!]) await weights.close();
});

test("the playground includes the model as a folder", async (context) => {
  const out = place.path("page");
  const { code, stderr } = await sqlenvInside(["playground", "--out", out, "--model", model]);
  if (/not built/.test(stderr)) return context.skip("the playground is not built");
  expect(code, stderr).toBe(0);
  expect(existsSync(place.path("page", "model", "model.safetensors"))).toBe(true);
  const { config, weights } = await loadModelFolder(place.path("page", "model"));
  expect(config.architecture).toBe("Qwen2ForCausalLM");
  await weights.close();
});
