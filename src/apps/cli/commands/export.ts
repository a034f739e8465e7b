// `sqlenv export`: a trained model in the forms others read: a whole folder for transformers, a GGUF file for llama.cpp.
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
import { formatBytes, output, printable } from "../terminal/output.ts";

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
    .description("a model, or an adapter with its model, as a whole folder or as a GGUF file")
    .requiredOption("--model <name>", "a model or adapter folder, a GGUF file, ollama:NAME, or a name on the Hub")
    .option("--merge <folder>", "write a whole model in the Hugging Face layout, an adapter added to its weights")
    .option("--gguf <file>", "write a file that llama.cpp and what is built on it open")
    .addOption(new Option("--type <name>", "of a GGUF file's matrices").choices(["f32", "f16", "q8_0"]).default("f16"))
    .addOption(new Option("--dtype <name>", "of the folder (default: as the model's own)").choices(["f32", "bf16"]))
    .option("--json", "print one JSON object")
    .action(run);
}

async function run({ model, merge, gguf, type, dtype, json }: Options): Promise<void> {
  const out = output({ json });
  if (merge === undefined && gguf === undefined)
    throw new UsageError({ what: "nothing to write", remedy: "give --merge FOLDER or --gguf FILE, or both" });
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
      if (use) writeModelMetadata(merge, use.prompt, use.rules);
      written[merge] = statSync(`${merge}/model.safetensors`).size;
    }
    if (gguf !== undefined) {
      const { metadata } = weights;
      // A model with an adapter is another model than its base.
      const name = (adapter === undefined ? metadata["general.name"] : undefined) ?? basename(resolve(model));
      written[gguf] = await writeGguf(gguf, { config, tokenizer, chatTemplate, name, type, metadata }, weights);
    }
  } finally {
    await weights.close();
  }
  const use = gguf === undefined ? undefined : readModelMetadata(named);
  if (use) out.line(`ask the GGUF file as it was trained: ${flagsFor(use)}`);
  for (const [file, bytes] of Object.entries(written)) out.line(`${printable(file)}: ${formatBytes(bytes)}`);
  out.result({ model, written });
}
