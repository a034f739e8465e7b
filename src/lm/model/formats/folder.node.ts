// Loads and saves a model folder in the Hugging Face layout: weights are read on demand, and a saved folder appears
// only when complete.
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { ModelLoadError, messageOf } from "../../../errors.ts";
import { writeFolderWhole } from "../../../io/atomic-write.node.ts";
import { configToJson, type ModelConfig, parameterShapes, parseConfig } from "../config.ts";
import { loadTokenizer, readJson, saveTokenizer, writeJson } from "../text/tokenizer.node.ts";
import { checkVocabulary, type TokenizerFiles } from "../text/tokenizer.ts";
import {
  CONFIG_FILE,
  GENERATION_FILE,
  type GenerationConfig,
  generationConfigOf,
  type ModelFolder,
  WEIGHTS_FILE,
} from "./folder.ts";
import { loadGguf } from "./gguf.node.ts";
import { type NamedTensor, openSafetensors, writeSafetensors } from "./safetensors.node.ts";
import { checkWeights } from "./safetensors.ts";

/** Opens a model folder or a GGUF file, and checks that its parts belong together. */
export async function loadModelFolder(dir: string): Promise<ModelFolder> {
  const stats = statSync(dir, { throwIfNoEntry: false });
  if (stats?.isFile()) return loadGguf(dir);
  if (!stats?.isDirectory()) {
    throw new ModelLoadError({ what: "no such model folder", value: dir, remedy: "check the path" });
  }
  const configPath = join(dir, CONFIG_FILE);
  const config = parseConfig(readJson(configPath), configPath);
  const { tokenizer, chatTemplate } = loadTokenizer(dir);
  checkVocabulary(tokenizer, config.vocab_size);
  const generationPath = join(dir, GENERATION_FILE);
  const generation = existsSync(generationPath) ? readJson(generationPath) : {};
  const generationConfig = generationConfigOf(generation, generationPath, config);
  const weights = await openSafetensors(dir);
  try {
    checkWeights(weights, parameterShapes(config), dir);
  } catch (error) {
    await weights.close();
    throw error;
  }
  return { config, tokenizer, chatTemplate, weights, generationConfig };
}

export interface SaveModelOptions {
  readonly config: ModelConfig;
  readonly tokenizerFiles: TokenizerFiles;
  readonly chatTemplate?: string | undefined;
  /** All tensors in `parameterShapes(config)`, in any order. */
  readonly tensors: Iterable<NamedTensor> | AsyncIterable<NamedTensor>;
  /** @default "F32" */
  readonly dtype?: "F32" | "BF16";
  readonly generationConfig?: Readonly<Partial<GenerationConfig>>;
  /** Text of README.md, the model card. */
  readonly card?: string | undefined;
}

/** Saves a model in the Hugging Face layout. An existing model folder is replaced once the new one is complete. */
export async function saveModelFolder(dir: string, options: SaveModelOptions): Promise<void> {
  const target = resolve(dir);
  if (existsSync(target) && !isReplaceable(target)) {
    throw new ModelLoadError(
      { what: "the folder holds something else than a model", value: dir, remedy: "choose a new folder" },
      "model_save",
    );
  }
  // The name is unique, since two processes may save the same model at once.
  const aside = join(dirname(target), `.${basename(target)}-${crypto.randomUUID().slice(0, 6)}`);
  try {
    mkdirSync(dirname(target), { recursive: true });
    await writeFolderWhole(target, (dir) => writeFiles(dir, options), aside);
  } catch (error) {
    if (error instanceof ModelLoadError) throw error;
    const what = `the model could not be saved (${messageOf(error)})`;
    throw new ModelLoadError(
      { what, value: dir, remedy: "check the folder and its free space", cause: error },
      "model_save",
    );
  }
}

function isReplaceable(dir: string): boolean {
  return statSync(dir).isDirectory() && (readdirSync(dir).length === 0 || existsSync(join(dir, CONFIG_FILE)));
}

async function writeFiles(dir: string, options: SaveModelOptions): Promise<void> {
  const { config, tokenizerFiles, chatTemplate, tensors, dtype = "F32", generationConfig = {}, card } = options;
  writeJson(join(dir, CONFIG_FILE), configToJson(config, dtype === "F32" ? "float32" : "bfloat16"));
  const { eos_token_ids = config.eos_token_ids, temperature, top_p, top_k } = generationConfig;
  writeJson(join(dir, GENERATION_FILE), {
    bos_token_id: config.bos_token_id ?? undefined,
    eos_token_id: eos_token_ids.length > 1 ? eos_token_ids : eos_token_ids[0],
    pad_token_id: config.pad_token_id ?? undefined,
    temperature,
    top_p,
    top_k,
  });
  saveTokenizer(dir, tokenizerFiles, chatTemplate);
  if (card !== undefined) writeFileSync(join(dir, "README.md"), card);
  await writeSafetensors(join(dir, WEIGHTS_FILE), parameterShapes(config), tensors, { dtype });
}
