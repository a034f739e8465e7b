import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../../../test/helpers/data-files.ts";
import { ModelLoadError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { parameterShapes, parseConfig } from "../config.ts";
import { trainBpe } from "../text/bpe-trainer.ts";
import { CHATML_TEMPLATE } from "../text/chat-template.ts";
import { loadModelFolder, type SaveModelOptions, saveModelFolder } from "./folder.node.ts";
import { elementCount } from "./safetensors.ts";

const config = parseConfig({
  architectures: ["Qwen3ForCausalLM"],
  vocab_size: 300,
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 8,
  tie_word_embeddings: true,
  eos_token_id: 2,
  bos_token_id: 1,
});
const tokenizerFiles = {
  tokenizer: trainBpe(["a model of a model"], {
    vocabSize: 280,
    specialTokens: ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
  }),
  config: { eos_token: "<|im_end|>", pad_token: "<|endoftext|>" },
};

function* tensors() {
  const draw = random("weights");
  for (const [name, shape] of parameterShapes(config)) {
    yield { name, data: Float32Array.from({ length: elementCount(shape) }, () => draw.normal(0, 1)) };
  }
}

const options = (): SaveModelOptions => ({ config, tokenizerFiles, chatTemplate: CHATML_TEMPLATE, tensors: tensors() });

test("a saved model loads unchanged, from the standard files", async () => {
  const dir = join(temporaryFolder(), "deep", "model");
  await saveModelFolder(dir, {
    ...options(),
    card: "# A model\n",
    generationConfig: { temperature: 0.7, eos_token_ids: [2, 0] },
  });
  expect(readdirSync(dir).sort()).toEqual([
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
  ]);
  const json = (file: string) => JSON.parse(readFileSync(join(dir, file), "utf8"));
  expect(json("config.json")).toMatchObject({ model_type: "qwen3", dtype: "float32", eos_token_id: 2 });
  expect(json("generation_config.json")).toEqual({ bos_token_id: 1, eos_token_id: [2, 0], temperature: 0.7 });
  expect(json("tokenizer_config.json")).toEqual({ ...tokenizerFiles.config, chat_template: CHATML_TEMPLATE });
  const loaded = await loadModelFolder(dir);
  expect(loaded.config).toEqual(config);
  expect(loaded.chatTemplate).toBe(CHATML_TEMPLATE);
  expect(loaded.generationConfig).toMatchObject({ temperature: 0.7, eos_token_ids: [2, 0] });
  expect(loaded.tokenizer.encodePlain("a model").length).toBeLessThan(7);
  for (const { name, data } of tensors()) expect(await loaded.weights.read(name)).toEqual(data);
  await loaded.weights.close();
});

test("a model is replaced completely or not at all; other folders are never replaced", async () => {
  const parent = temporaryFolder();
  const dir = join(parent, "model");
  await saveModelFolder(dir, { ...options(), card: "old" });
  function* broken() {
    yield* [...tensors()].slice(0, 3);
    throw new Error("power cut");
  }
  const failing = saveModelFolder(dir, { ...options(), tensors: broken() });
  await expect(failing).rejects.toThrow(/power cut/);
  await expect(failing).rejects.toMatchObject({ code: "model_save" });
  expect(readFileSync(join(dir, "README.md"), "utf8")).toBe("old");
  await saveModelFolder(dir, { ...options(), dtype: "BF16" });
  expect(existsSync(join(dir, "README.md"))).toBe(false);
  const loaded = await loadModelFolder(dir);
  expect(loaded.weights.info("model.norm.weight")).toEqual({ dtype: "BF16", shape: [16] });
  await loaded.weights.close();
  expect(readdirSync(parent)).toEqual(["model"]);

  writeFiles(parent, { "photos/cat.txt": "cat" });
  await expect(saveModelFolder(join(parent, "photos"), options())).rejects.toThrow(/something else than a model/);
  expect(readFileSync(join(parent, "photos", "cat.txt"), "utf8")).toBe("cat");
  await expect(saveModelFolder(join(parent, "photos", "cat.txt"), options())).rejects.toThrow(ModelLoadError);
});

test("files that do not belong together are named", async () => {
  const dir = join(temporaryFolder(), "model");
  await expect(loadModelFolder(dir)).rejects.toThrow(/no such model folder/);
  await saveModelFolder(dir, options());
  const file = join(dir, "config.json");
  const original = readFileSync(file, "utf8");
  const change = (values: object) => writeFileSync(file, JSON.stringify({ ...JSON.parse(original), ...values }));
  change({ vocab_size: 260 });
  await expect(loadModelFolder(dir)).rejects.toThrow(/config\.json gives vocab_size: 260/);
  change({ intermediate_size: 25 });
  await expect(loadModelFolder(dir)).rejects.toThrow(
    /layers\.0\.mlp\.gate_proj\.weight should have shape \[25,16\].*\[24,16\]/,
  );
  change({ num_hidden_layers: 3 });
  await expect(loadModelFolder(dir)).rejects.toThrow(/missing: model\.layers\.2\./);
  change({ num_hidden_layers: 1 });
  await expect(loadModelFolder(dir)).rejects.toThrow(/does not have: model\.layers\.1\./);
  change({ architectures: ["LlamaForCausalLM"] });
  await expect(loadModelFolder(dir)).rejects.toThrow(/does not have: .*[qk]_norm/);
  change({ tie_word_embeddings: false });
  await expect(loadModelFolder(dir)).rejects.toThrow(/missing: lm_head\.weight/);
  writeFileSync(file, "[]");
  await expect(loadModelFolder(dir)).rejects.toThrow(/not a JSON object/);
  writeFileSync(file, original);
  writeFileSync(join(dir, "generation_config.json"), '{"temperature": "hot"}');
  await expect(loadModelFolder(dir)).rejects.toThrow(/generation_config\.json: temperature is not usable/);
});
