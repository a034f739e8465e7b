// Converts text to token ids and back according to tokenizer.json. Special tokens are recognized only if the caller
// asks for it.
import { Tokenizer as Hf } from "@huggingface/tokenizers";
import { z } from "zod";
import { ModelLoadError, messageOf } from "../../../errors.ts";
import { patternFault } from "./pattern.ts";

/** Maximum characters of an added token; the longest published ones have about 50. */
export const MAX_ADDED_TOKEN_CHARACTERS = 1_000;
/** Maximum number of added tokens; published vocabularies have up to about 6,000. */
export const MAX_ADDED_TOKENS = 50_000;
/** Maximum factor by which the normalizer's replacements may lengthen a text. */
const MAX_GROWTH = 1_000;

const addedToken = z.looseObject({
  id: z.int().min(0),
  content: z.string().min(1).max(MAX_ADDED_TOKEN_CHARACTERS),
  special: z.boolean().default(false),
  lstrip: z.boolean().default(false),
  rstrip: z.boolean().default(false),
  single_word: z.boolean().default(false),
});

/** A token outside the learned vocabulary, such as `<|im_start|>`. */
export type AddedToken = Readonly<z.infer<typeof addedToken>>;

type Merge = string | readonly [string, string];

// Entries are not checked: with hundreds of thousands, that would take longer than everything else.
const vocab = z.custom<Readonly<Record<string, number>>>(
  (value) => value !== null && typeof value === "object" && !Array.isArray(value),
  "expected a map of tokens to ids",
);
const merges = z.custom<readonly Merge[]>(
  (value) =>
    Array.isArray(value) &&
    value.every(
      (merge) =>
        typeof merge === "string" ||
        (Array.isArray(merge) && merge.length === 2 && typeof merge[0] === "string" && typeof merge[1] === "string"),
    ),
  "expected a list of pairs",
);

const tokenizerJson = z.looseObject({
  added_tokens: z.array(addedToken).max(MAX_ADDED_TOKENS).default([]),
  model: z.looseObject({
    type: z.literal("BPE"),
    vocab,
    merges,
    ignore_merges: z.boolean().nullish(),
  }),
});

/** The parsed content of tokenizer.json. */
export type TokenizerJson = z.infer<typeof tokenizerJson>;

const namedToken = z.union([z.string(), z.looseObject({ content: z.string() }).transform(({ content }) => content)]);

const tokenizerConfig = z.looseObject({
  bos_token: namedToken.nullish(),
  eos_token: namedToken.nullish(),
  pad_token: namedToken.nullish(),
});

/** A tokenizer's two parsed files, kept unchanged for saving. */
export interface TokenizerFiles {
  /** tokenizer.json */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  /** tokenizer_config.json */
  readonly config: Readonly<Record<string, unknown>>;
}

/** The part of the library that we use; its types do not resolve under Node's module rules. */
interface HfTokenizer {
  /** `vocab` is indexed by id and includes added tokens. */
  model: { readonly vocab: readonly string[]; cache?: WordCache };
  encode(text: string, options: { readonly add_special_tokens: boolean }): { readonly ids: number[] };
  decode(ids: readonly number[], options: { readonly clean_up_tokenization_spaces: boolean }): string;
  token_to_id(token: string): number | undefined;
  id_to_token(id: number): string | undefined;
}

interface WordCache {
  get(word: string): readonly string[] | undefined;
  put(word: string, tokens: readonly string[]): void;
  clear(): void;
}

/** Maximum number of words whose encoding is cached. */
const WORDS_KEPT = 50_000;

/**
 * A cache that is cleared when full. The library's own cache reorders a word at each use, which takes a third of the
 * encoding time.
 */
function wordCache(): WordCache {
  const words = new Map<string, readonly string[]>();
  return {
    get: (word) => words.get(word),
    put(word, tokens) {
      if (words.size >= WORDS_KEPT) words.clear();
      words.set(word, tokens);
    },
    clear: () => words.clear(),
  };
}

export interface DecodeOptions {
  /** Omit special tokens. @default false */
  readonly skipSpecial?: boolean;
}

/**
 * A byte-pair tokenizer in the Hugging Face format.
 *
 * @example
 * const parse = (file: string) => JSON.parse(readFileSync(file, "utf8"));
 * const tokenizer = new Tokenizer({ tokenizer: parse("tokenizer.json"), config: parse("tokenizer_config.json") });
 * tokenizer.decode(tokenizer.encode("SELECT 1")); // "SELECT 1"
 */
export class Tokenizer {
  readonly files: TokenizerFiles;
  readonly addedTokens: readonly AddedToken[];
  /** One more than the largest id. */
  readonly vocabSize: number;
  readonly bosToken: string | undefined;
  readonly eosToken: string | undefined;
  readonly bosId: number | undefined;
  readonly eosId: number | undefined;
  readonly padId: number | undefined;
  readonly #full: HfTokenizer;
  readonly #plain: HfTokenizer;
  readonly #specialIds: ReadonlySet<number>;
  #texts: readonly string[] | undefined;

  constructor(files: TokenizerFiles) {
    const json = read(tokenizerJson, files.tokenizer, "tokenizer.json");
    const config = read(tokenizerConfig, files.config, "tokenizer_config.json");
    const special = json.added_tokens.filter((token) => token.special);
    checkOutOfReach(special, json.model.merges);
    checkSteps(files.tokenizer);
    this.files = files;
    this.addedTokens = json.added_tokens;
    try {
      const read = { ...files, tokenizer: withEveryDigit(files.tokenizer) };
      this.#full = new Hf(read.tokenizer, { ...files.config, clean_up_tokenization_spaces: false });
      this.#full.model.cache = wordCache();
      this.#plain = plainTokenizer(json, read, this.#full);
    } catch (error) {
      throw new ModelLoadError({
        what: `tokenizer.json: ${messageOf(error)}`,
        remedy: "use a model with a byte-pair tokenizer that @huggingface/tokenizers reads",
        cause: error,
      });
    }
    this.vocabSize = this.#full.model.vocab.length;
    this.#specialIds = new Set(special.map(({ id }) => id));
    this.bosToken = config.bos_token ?? undefined;
    this.eosToken = config.eos_token ?? undefined;
    this.bosId = this.#named(config.bos_token);
    this.eosId = this.#named(config.eos_token);
    this.padId = this.#named(config.pad_token);
  }

  #named(token: string | null | undefined): number | undefined {
    return token === null || token === undefined ? undefined : this.idOf(token);
  }

  /** Encodes trusted text, in which `<|im_start|>` is the special token. Adds nothing before or after it. */
  encode(text: string): number[] {
    return text === "" ? [] : this.#full.encode(text, { add_special_tokens: false }).ids;
  }

  /** Encodes untrusted text: never produces a special token, whatever it contains. */
  encodePlain(text: string): number[] {
    return text === "" ? [] : this.#plain.encode(text, { add_special_tokens: false }).ids;
  }

  /** Decodes ids without any clean-up; unknown ids give nothing, invalid UTF-8 gives U+FFFD. */
  decode(ids: readonly number[], { skipSpecial = false }: DecodeOptions = {}): string {
    const known = ids.filter((id) => this.tokenOf(id) !== undefined && !(skipSpecial && this.#specialIds.has(id)));
    return known.length === 0 ? "" : this.#full.decode(known, { clean_up_tokenization_spaces: false });
  }

  /** The text of every single id, one character per byte in byte-level vocabularies; empty for special tokens. */
  get texts(): readonly string[] {
    this.#texts ??= textsOf(this.#full.model.vocab, this.addedTokens, this.files.tokenizer.decoder);
    return this.#texts;
  }

  /** The bytes of a single id; for an added token, those of its name. */
  bytesOf(id: number): Uint8Array {
    const added = this.addedTokens.find((token) => token.id === id);
    const text = added?.content ?? this.texts[id] ?? "";
    const isBytes = isByteLevel(this.files.tokenizer.decoder) || /^<0x[0-9A-F]{2}>$/.test(this.tokenOf(id) ?? "");
    return isBytes && !added
      ? Uint8Array.from(text, (character) => character.charCodeAt(0))
      : new TextEncoder().encode(text);
  }

  idOf(token: string): number | undefined {
    return this.#full.token_to_id(token);
  }

  tokenOf(id: number): string | undefined {
    return this.#full.id_to_token(id);
  }

  isSpecial(id: number): boolean {
    return this.#specialIds.has(id);
  }
}

/**
 * The texts of single tokens: decoded bytes in a byte-level vocabulary, else the token with its space mark replaced.
 */
function textsOf(vocab: readonly string[], added: readonly AddedToken[], decoder: unknown): string[] {
  const bytes = new Map<string, string>();
  for (let byte = 0, beyond = 256; byte < 256; byte++) {
    const isVisible = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte !== 0xad);
    bytes.set(String.fromCharCode(isVisible ? byte : beyond++), String.fromCharCode(byte));
  }
  const spelled = (token: string) => Array.from(token, (character) => bytes.get(character) ?? "").join("");
  const marked = (token: string) => {
    const code = /^<0x([0-9A-F]{2})>$/.exec(token)?.[1]; // a byte-fallback token
    return code === undefined ? token.replaceAll("\u2581", " ") : String.fromCharCode(Number.parseInt(code, 16));
  };
  const spells = isByteLevel(decoder);
  const texts = vocab.map((token) => (spells ? spelled(token) : marked(token)));
  for (const { id, content, special } of added) texts[id] = special ? "" : content;
  return texts;
}

/** Whether tokens are written as bytes, each as one character. */
function isByteLevel(decoder: unknown): boolean {
  return JSON.stringify(decoder ?? null).includes('"ByteLevel"');
}

/**
 * Replaces "Digits" steps with a pattern: the library splits only ASCII digits, `tokenizers` all numeric characters.
 */
function withEveryDigit(json: TokenizerFiles["tokenizer"]): TokenizerFiles["tokenizer"] {
  const replaced = (step: unknown): unknown => {
    const { type, individual_digits, pretokenizers } = (step ?? {}) as Readonly<Record<string, unknown>>;
    if (Array.isArray(pretokenizers)) return { ...(step as object), pretokenizers: pretokenizers.map(replaced) };
    if (type !== "Digits") return step;
    return { type: "Split", pattern: { Regex: individual_digits ? "\\p{N}" : "\\p{N}+" }, behavior: "Isolated" };
  };
  return { ...json, pre_tokenizer: replaced(json.pre_tokenizer) };
}

/**
 * Makes a tokenizer without added tokens; it shares the vocabulary, which takes most of the memory, if that is safe.
 */
function plainTokenizer(json: TokenizerJson, files: TokenizerFiles, full: HfTokenizer): HfTokenizer {
  const parts = { ...files.tokenizer, added_tokens: [] };
  const config = { ...files.config, additional_special_tokens: [], clean_up_tokenization_spaces: false };
  if (json.model.ignore_merges) {
    // Such a model looks up whole words in the vocabulary, which may include special tokens.
    const vocab = { ...json.model.vocab };
    for (const { content, special } of json.added_tokens) if (special) delete vocab[content];
    const own: HfTokenizer = new Hf({ ...parts, model: { ...json.model, vocab } }, config);
    own.model.cache = wordCache();
    return own;
  }
  const plain: HfTokenizer = new Hf({ ...parts, model: { ...json.model, vocab: {}, merges: [] } }, config);
  plain.model = full.model;
  return plain;
}

/** Proves that no text can be merged into a special token, so that plain encoding never produces one. */
function checkOutOfReach(special: readonly AddedToken[], merges: readonly Merge[]): void {
  const contents = new Set(special.map(({ content }) => content));
  for (const merge of merges) {
    const merged = typeof merge === "string" ? merge.replace(" ", "") : merge[0] + merge[1];
    if (!contents.has(merged)) continue;
    throw new ModelLoadError({
      what: "tokenizer.json: a special token can be made by merges, so that plain text could speak as it",
      value: merged,
      remedy: "use a model whose special tokens stand outside its merges",
    });
  }
}

/** Rejects patterns that could hang and replacements that could grow texts without bound. */
function checkSteps({ normalizer, pre_tokenizer, decoder }: TokenizerFiles["tokenizer"]): void {
  const refuse = (what: string, value: string | number) =>
    new ModelLoadError({ what: `tokenizer.json: ${what}`, value, remedy: "use a model whose tokenizer you trust" });
  let growth = 1;
  const walk = (part: unknown, depth = 0): void => {
    if (part === null || typeof part !== "object") return;
    if (depth > MAX_STEP_DEPTH) throw refuse("its steps stand too deep in each other", `${MAX_STEP_DEPTH} levels`);
    const { Regex: pattern, content, prepend } = part as Readonly<Record<string, unknown>>;
    const fault = typeof pattern === "string" ? patternFault(pattern) : undefined;
    if (fault !== undefined) throw refuse(`a pattern cannot be used: ${fault}`, String(pattern));
    for (const text of [content, prepend]) if (typeof text === "string") growth *= Math.max(1, text.length);
    if (growth > MAX_GROWTH) throw refuse("its replacements make texts too long", `${growth} times`);
    for (const inner of Object.values(part)) walk(inner, depth + 1);
  };
  for (const part of [normalizer, pre_tokenizer, decoder]) {
    growth = 1;
    walk(part);
  }
}

/** Maximum nesting of steps; published files have four levels. */
const MAX_STEP_DEPTH = 20;

/** Checks that every token has a row in the model's embedding; models often have a few more rows. */
export function checkVocabulary(tokenizer: Tokenizer, vocabSize: number): void {
  if (tokenizer.vocabSize <= vocabSize) return;
  throw new ModelLoadError({
    what: `tokenizer.json has ids up to ${tokenizer.vocabSize - 1}, but config.json gives vocab_size`,
    value: vocabSize,
    remedy: "check that tokenizer and model belong together",
  });
}

function read<T extends z.ZodType>(schema: T, value: unknown, file: string): z.infer<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const { path, message } = result.error.issues[0]!;
  throw new ModelLoadError({
    what: `${file}: ${path.join(".") || "the file"} is not usable (${message})`,
    value: String(path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown>)?.[key], value)),
    remedy: "use a model with a byte-pair tokenizer.json",
    cause: result.error,
  });
}
