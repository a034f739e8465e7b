// Opens a model folder in the Hugging Face layout, whether its files come from a server, a file picker or a disk.
import { z } from "zod";
import { ModelLoadError, messageOf } from "../../../errors.ts";
import { type ModelConfig, parameterShapes, parseConfig } from "../config.ts";
import { checkVocabulary, Tokenizer } from "../text/tokenizer.ts";
import { checkWeights, safetensorsOf, type WeightSource } from "./safetensors.ts";

export const CONFIG_FILE = "config.json";
export const GENERATION_FILE = "generation_config.json";
export const WEIGHTS_FILE = "model.safetensors";
export const WEIGHTS_INDEX = "model.safetensors.index.json";

/** Sampling settings recommended by the model's authors; undefined if they give none. */
export interface GenerationConfig {
  readonly eos_token_ids: readonly number[];
  readonly temperature: number | undefined;
  readonly top_p: number | undefined;
  readonly top_k: number | undefined;
}

export interface ModelFolder {
  readonly config: ModelConfig;
  readonly tokenizer: Tokenizer;
  /** Undefined if the model has none; ChatML is then used. */
  readonly chatTemplate: string | undefined;
  /** Names, shapes and dtypes are already checked; values are read on demand. The caller must close it. */
  readonly weights: WeightSource;
  readonly generationConfig: GenerationConfig;
}

/** Reads a file in the folder; resolves with null if it does not exist. */
export type ReadModelFile = (name: string) => Promise<Uint8Array<ArrayBuffer> | null>;

/**
 * Opens a folder through a function that reads its files, weights last, and checks that they belong together. `name`
 * appears in errors.
 */
export async function openModelFolder(read: ReadModelFile, name: string): Promise<ModelFolder> {
  const text = async (file: string) => {
    const bytes = await read(file);
    return bytes && new TextDecoder().decode(bytes);
  };
  const json = async (file: string) => {
    const found = await text(file);
    return found === null ? null : parseObject(found, `${name}/${file}`);
  };
  const needed = async (file: string) => {
    const found = await json(file);
    if (found) return found;
    throw new ModelLoadError({ what: `the model has no ${file}`, value: name, remedy: LAYOUT });
  };
  const config = parseConfig(await needed(CONFIG_FILE), `${name}/${CONFIG_FILE}`);
  const tokenizerConfig = (await json("tokenizer_config.json")) ?? {};
  const tokenizer = new Tokenizer({ tokenizer: await needed("tokenizer.json"), config: tokenizerConfig });
  checkVocabulary(tokenizer, config.vocab_size);
  const jinja = await text("chat_template.jinja");
  const template = jinja ?? (await json("chat_template.json"))?.chat_template ?? tokenizerConfig.chat_template;
  const generation = (await json(GENERATION_FILE)) ?? {};
  const bytes = await read(WEIGHTS_FILE);
  if (!bytes) {
    const remedy = `weights in several files (${WEIGHTS_INDEX}) load in Node only`;
    throw new ModelLoadError({ what: `the model has no ${WEIGHTS_FILE}`, value: name, remedy });
  }
  const weights = safetensorsOf(bytes, `${name}/${WEIGHTS_FILE}`);
  checkWeights(weights, parameterShapes(config), name);
  return {
    config,
    tokenizer,
    weights,
    chatTemplate: chatTemplateOf(template, name),
    generationConfig: generationConfigOf(generation, `${name}/${GENERATION_FILE}`, config),
  };
}

const LAYOUT = "check that the folder holds a model in the Hugging Face layout";

/** Parses a file's text as a JSON object. */
export function parseObject(text: string, file: string): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    const what = `the model's file cannot be read (${messageOf(error)})`;
    throw new ModelLoadError({ what, value: file, remedy: LAYOUT, cause: error });
  }
  if (json !== null && typeof json === "object" && !Array.isArray(json)) return json as Record<string, unknown>;
  throw new ModelLoadError({ what: "the model's file is not a JSON object", value: file, remedy: "fetch it again" });
}

/** The chat template, or the default one of several named templates; undefined if there is none. */
export function chatTemplateOf(template: unknown, name: string): string | undefined {
  if (template === undefined || template === null) return undefined;
  const named = Array.isArray(template)
    ? (template as { name?: unknown; template?: unknown }[]).find((entry) => entry?.name === "default")?.template
    : template;
  if (typeof named === "string") return named;
  throw new ModelLoadError({
    what: `${name}: chat_template is neither a text nor a list with a default`,
    value: JSON.stringify(template),
    remedy: "remove it to get ChatML",
  });
}

const tokenId = z.int().min(0);
const generationFile = z.looseObject({
  eos_token_id: z.union([tokenId, z.array(tokenId)]).nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  top_k: z.number().nullish(),
});

/** Parses generation_config.json; end-of-text tokens that it does not name come from config.json. */
export function generationConfigOf(json: object, file: string, config: ModelConfig): GenerationConfig {
  const read = generationFile.safeParse(json);
  if (!read.success) {
    const { path, message } = read.error.issues[0]!;
    const what = `${file}: ${path.join(".")} is not usable (${message})`;
    throw new ModelLoadError({ what, remedy: "correct or remove the file" });
  }
  const { eos_token_id: eos, temperature, top_p, top_k } = read.data;
  return {
    eos_token_ids: eos === undefined || eos === null ? config.eos_token_ids : Array.isArray(eos) ? eos : [eos],
    temperature: temperature ?? undefined,
    top_p: top_p ?? undefined,
    top_k: top_k ?? undefined,
  };
}
