// Opens a GGUF file as a model, with the same parts as a folder in the Hugging Face layout.
import { ModelLoadError } from "../../../errors.ts";
import { parameterShapes } from "../config.ts";
import { Tokenizer } from "../text/tokenizer.ts";
import type { ModelFolder } from "./folder.ts";
import { architectureOf, ggufConfig, ROPE_FACTORS } from "./gguf-config.ts";
import type { GgufHeader } from "./gguf-header.ts";
import { GgufFacts } from "./gguf-metadata.ts";
import { fromLlamaRotary, ggufName } from "./gguf-model.ts";
import { ggufTokenizer } from "./gguf-tokenizer.ts";
import type { GgmlType } from "./gguf-types.ts";
import { type Dtype, firstNonFinite, type WeightSource } from "./safetensors.ts";

/** An open file: its header, and its values on demand. */
export interface GgufFile extends GgufHeader {
  /** Reads a tensor's numbers, or some of its rows. */
  read(name: string, rows?: { readonly first: number; readonly count: number }): Float32Array<ArrayBuffer>;
  close(): void;
}

const EMBEDDING = "token_embd.weight";
const OUTPUT = "output.weight";

/**
 * Opens a model after checking metadata and tensors against each other; `name` appears in errors. Closing the weights
 * closes the file.
 */
export function openGgufModel(file: GgufFile, name: string): ModelFolder {
  const facts = new GgufFacts(file.facts, name);
  architectureOf(facts);
  const embedding = file.tensors.get(EMBEDDING);
  if (embedding?.shape.length !== 2) throw facts.bad("it has no embedding of rows and columns", EMBEDDING);
  const rows = embedding.shape[0]!;
  const { files, chatTemplate, bos, pad, eos, ends } = ggufTokenizer(facts, rows);
  const output = tiedOutput(file);
  const ropeFactors = ropeFactorsIn(file, facts);
  const config = ggufConfig(facts, { rows, bos, pad, eos, ropeFactors, tied: output !== null });
  const shapes = parameterShapes(config);
  const sources = new Map([...shapes.keys()].map((key) => [key, ggufName(key)]));
  if (output !== null) sources.set("model.embed_tokens.weight", output);
  checkTensors(file, facts, shapes, sources);
  const find = (tensor: string): string => {
    const source = sources.get(tensor);
    if (source === undefined) throw facts.bad("no such tensor", tensor);
    return source;
  };
  const weights: WeightSource = {
    names: [...sources.keys()],
    metadata: generalFacts(file.facts),
    info: (tensor) => ({ dtype: dtypeOf(file.tensors.get(find(tensor))!.type), shape: shapes.get(tensor)! }),
    read: async (tensor) => {
      const source = find(tensor);
      const data = file.read(source);
      const wrong = firstNonFinite(data);
      if (wrong >= 0) throw facts.bad(`tensor ${source} holds a number that is not finite, at ${wrong}`, data[wrong]!);
      return fromLlamaRotary(config, tensor, data);
    },
    close: async () => file.close(),
  };
  return {
    config,
    chatTemplate,
    weights,
    tokenizer: tokenizerOf(files, facts),
    generationConfig: { eos_token_ids: ends, temperature: undefined, top_p: undefined, top_k: undefined },
  };
}

/** Maximum values of a tensor of rotary divisors, checked before allocation; a head has far fewer pairs. */
const MAX_ROPE_FACTORS = 65_536;

function ropeFactorsIn(file: GgufFile, facts: GgufFacts): Float32Array | undefined {
  const found = file.tensors.get(ROPE_FACTORS);
  if (!found) return undefined;
  if (found.shape.length === 1 && found.shape[0]! <= MAX_ROPE_FACTORS) return file.read(ROPE_FACTORS);
  throw facts.bad(`tensor ${ROPE_FACTORS} should be a short list of numbers`, `[${found.shape}]`);
}

/** Creates the tokenizer; its errors name this file instead of tokenizer.json, which a GGUF model does not have. */
function tokenizerOf(files: ConstructorParameters<typeof Tokenizer>[0], facts: GgufFacts): Tokenizer {
  try {
    return new Tokenizer(files);
  } catch (error) {
    if (!(error instanceof ModelLoadError)) throw error;
    const { what, value, remedy } = error;
    throw new ModelLoadError({ what: `${facts.file}: ${what}`, value, remedy, cause: error });
  }
}

/** Checks that the file has exactly the architecture's tensors; an extra one would be silently ignored. */
function checkTensors(
  { tensors }: GgufFile,
  facts: GgufFacts,
  shapes: ReadonlyMap<string, readonly number[]>,
  sources: ReadonlyMap<string, string>,
): void {
  for (const [key, shape] of shapes) {
    const source = sources.get(key)!;
    const found = tensors.get(source);
    if (!found) throw facts.bad("a tensor is missing", source);
    if (found.shape.length !== shape.length || found.shape.some((size, i) => size !== shape[i])) {
      throw facts.bad(`tensor ${source} should have the shape [${shape}] by its facts`, `[${found.shape}]`);
    }
  }
  const known = new Set([...sources.values(), EMBEDDING, OUTPUT, ROPE_FACTORS]);
  const extra = [...tensors.keys()].find((tensor) => !known.has(tensor));
  if (extra !== undefined) throw facts.bad("it has a tensor that this architecture does not have", extra);
}

/** Tolerated relative error by type: about twice that of quantizing normally distributed weights. */
const ROUNDING: Readonly<Record<GgmlType, number>> = {
  f32: 0,
  f16: 1e-3,
  bf16: 8e-3,
  q8_0: 0.01,
  q6_k: 0.04,
  q5_k: 0.08,
  q5_1: 0.08,
  q5_0: 0.08,
  q4_k: 0.16,
  q4_1: 0.16,
  q4_0: 0.2,
};
/** Number of rows compared between the two matrices, spread over the vocabulary. */
const COMPARED_ROWS = 64;

/**
 * The tensor that is both embedding and output; null if they differ. Files do not say whether a model is tied: many
 * contain the same matrix twice, quantized differently. If the two are equal up to rounding, they count as tied, and
 * the more precise one is used for both.
 */
export function tiedOutput(file: GgufFile): string | null {
  const [embedding, output] = [file.tensors.get(EMBEDDING), file.tensors.get(OUTPUT)];
  if (!output) return EMBEDDING;
  const [rows = 0, columns] = embedding!.shape;
  if (output.shape.length !== 2 || output.shape[0] !== rows || output.shape[1] !== columns) return null;
  let [difference, size] = [0, 0];
  for (let i = 0; i < Math.min(rows, COMPARED_ROWS); i++) {
    const row = { first: Math.floor((i * rows) / Math.min(rows, COMPARED_ROWS)), count: 1 };
    const [one, other] = [file.read(EMBEDDING, row), file.read(OUTPUT, row)];
    for (let j = 0; j < one.length; j++) {
      difference += (one[j]! - other[j]!) ** 2;
      size += one[j]! ** 2;
    }
  }
  const allowed = ROUNDING[embedding!.type] + ROUNDING[output.type];
  if (!(Math.sqrt(difference) <= allowed * Math.sqrt(size))) return null;
  return ROUNDING[output.type] < ROUNDING[embedding!.type] ? OUTPUT : EMBEDDING;
}

/** A dtype that stores a tensor without loss. */
function dtypeOf(type: GgmlType): Dtype {
  return type === "bf16" ? "BF16" : type === "f16" ? "F16" : "F32";
}

/** What the file says about itself: name, author, license. */
function generalFacts(facts: ReadonlyMap<string, unknown>): Record<string, string> {
  const texts = [...facts].filter((fact): fact is [string, string] => typeof fact[1] === "string");
  return Object.fromEntries(texts.filter(([key]) => key.startsWith("general.")));
}
