// Loads and saves a tokenizer's files in a model folder, with its chat template.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ModelLoadError, messageOf } from "../../../errors.ts";
import { chatTemplateOf, parseObject } from "../formats/folder.ts";
import { Tokenizer, type TokenizerFiles } from "./tokenizer.ts";

export interface LoadedTokenizer {
  readonly tokenizer: Tokenizer;
  /** Undefined if the folder has none. */
  readonly chatTemplate: string | undefined;
}

/** Loads tokenizer.json, tokenizer_config.json and the chat template, wherever it is stored. */
export function loadTokenizer(dir: string): LoadedTokenizer {
  const tokenizer = readJson(join(dir, "tokenizer.json"));
  const configFile = join(dir, "tokenizer_config.json");
  const config = existsSync(configFile) ? readJson(configFile) : {};
  return { tokenizer: new Tokenizer({ tokenizer, config }), chatTemplate: templateOf(dir, config) };
}

/**
 * A template in its own file overrides the one in the configuration, as in `transformers`; of several named templates,
 * the default is used.
 */
function templateOf(dir: string, config: Readonly<Record<string, unknown>>): string | undefined {
  const jinja = join(dir, "chat_template.jinja");
  if (existsSync(jinja)) return readFileSync(jinja, "utf8");
  const json = join(dir, "chat_template.json");
  const template = existsSync(json) ? readJson(json).chat_template : config.chat_template;
  return chatTemplateOf(template, dir);
}

/** Writes tokenizer.json, and tokenizer_config.json with the chat template. */
export function saveTokenizer(dir: string, files: TokenizerFiles, chatTemplate: string | undefined): void {
  const { chat_template: _, ...config } = files.config;
  const withTemplate = chatTemplate === undefined ? config : { ...config, chat_template: chatTemplate };
  writeJson(join(dir, "tokenizer.json"), files.tokenizer);
  writeJson(join(dir, "tokenizer_config.json"), withTemplate);
}

/** Parses a file of a model folder as a JSON object. */
export function readJson(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new ModelLoadError({
      what: `the model's file cannot be read (${messageOf(error)})`,
      value: file,
      remedy: "check that the folder holds a model in the Hugging Face layout",
      cause: error,
    });
  }
  return parseObject(text, file);
}

/** Writes a JSON file; the caller that creates the folder syncs it. */
export function writeJson(file: string, json: object): void {
  writeFileSync(file, `${JSON.stringify(json, null, 2)}\n`);
}
