// `sqlenv export`: writes a model for other programs: a folder for transformers, a GGUF file for llama.cpp.
import { statSync } from "node:fs";
import { basename, resolve } from "node:path";
import { Command, Option } from "commander";
import { UsageError } from "../../../errors.ts";
import { baseFolderOf } from "../../../lm/engine/index.node.ts";
import { parameterShapes } from "../../../lm/model/config.ts";
import { loadModelFolder, saveModelFolder } from "../../../lm/model/formats/folder.node.ts";
import { writeGguf } from "../../../lm/model/formats/gguf.node.ts";
import type { GgufType } from "../../../lm/model/formats/gguf.ts";
import { resolveModel } from "../../../lm/model/formats/hub.node.ts";
import { mergedWeights } from "../../../lm/model/formats/merge.node.ts";
import { isAdapterFolder, readAdapterConfig } from "../../../lm/model/formats/peft.node.ts";
import { flagsFor, readModelMetadata, writeModelMetadata } from "../../../rl/run/model-metadata.node.ts";
import { JSON_OUTPUT, MODEL_SOURCES } from "../options/common.ts";
import { formatBytes, output, printable } from "../terminal/output.ts";
import { checkFolder, checkWritable } from "../terminal/writable.ts";

interface Options {
  readonly model: string;
  readonly merge?: string;
  readonly gguf?: string;
  readonly type: GgufType;
  readonly dtype?: "f32" | "bf16";
  readonly json?: boolean;
}

export function exportCommand(): Command {
  return new Command("export")
    .description("write a model as a Hugging Face folder or a GGUF file, adapters merged")
    .requiredOption("--model <name>", `${MODEL_SOURCES}; a folder may hold a LoRA adapter`)
    .option("--merge <folder>", "write a Hugging Face folder, an adapter merged into the weights")
    .option("--gguf <file>", "write a GGUF file, for llama.cpp, Ollama and others")
    .addOption(
      new Option("--type <name>", "--gguf: type of the matrices").choices(["f32", "f16", "q8_0"]).default("f16"),
    )
    .addOption(
      new Option("--dtype <name>", "--merge: type of the weights (default: the model's)").choices(["f32", "bf16"]),
    )
    .option("--json", JSON_OUTPUT)
    .action(run);
}

async function run({ model, merge, gguf, type, dtype, json }: Options): Promise<void> {
  const out = output({ json });
  if (merge === undefined && gguf === undefined)
    throw new UsageError({ what: "nothing to write", remedy: "give --merge FOLDER, --gguf FILE or both" });
  if (gguf !== undefined) checkWritable("--gguf", gguf);
  if (merge !== undefined) checkFolder("--merge", merge);
  const named = await resolveModel(model);
  const adapter = isAdapterFolder(named) ? named : undefined;
  const files = await loadModelFolder(adapter === undefined ? named : await baseFolderOf(adapter));
  const { config, tokenizer, chatTemplate, generationConfig } = files;
  const weights = adapter ? await mergedWeights(files.weights, adapter, readAdapterConfig(adapter)) : files.weights;
  const written: Record<string, number> = {};
  try {
    const names = [...parameterShapes(config).keys()];
    if (merge !== undefined) {
      const isHalf = names.every((name) => weights.info(name).dtype === "BF16");
      const chosen = dtype === undefined ? (isHalf ? "BF16" : "F32") : dtype === "bf16" ? "BF16" : "F32";
      async function* tensors() {
        for (const name of names) yield { name, data: await weights.read(name) };
      }
      const whole = { config, tokenizerFiles: tokenizer.files, chatTemplate, generationConfig };
      await saveModelFolder(merge, { ...whole, tensors: tensors(), dtype: chosen });
      const use = readModelMetadata(named);
      if (use) writeModelMetadata(merge, use.prompt, use.rules, use.step_budget);
      written[merge] = statSync(`${merge}/model.safetensors`).size;
    }
    if (gguf !== undefined) {
      const { metadata } = weights;
      // A merged model is not its base, so it does not take the base's name.
      const name = (adapter === undefined ? metadata["general.name"] : undefined) ?? basename(resolve(model));
      written[gguf] = await writeGguf(gguf, { config, tokenizer, chatTemplate, name, type, metadata }, weights);
    }
  } finally {
    await weights.close();
  }
  const use = gguf === undefined ? undefined : readModelMetadata(named);
  if (use) out.line(`evaluate the GGUF file as the model was trained: ${flagsFor(use)}`);
  for (const [file, bytes] of Object.entries(written)) out.line(`${printable(file)}: ${formatBytes(bytes)}`);
  out.result({ model, written });
}
