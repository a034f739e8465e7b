// Converts a GGUF header's tokenizer metadata to the tokenizer.json and tokenizer_config.json of the same tokenizer.

import { MAX_TEMPLATE_CHARACTERS } from "../text/jinja.ts";
import type { TokenizerFiles } from "../text/tokenizer.ts";
import type { GgufFacts } from "./gguf-metadata.ts";
import { PRE_TOKENIZER_NAMES, preTokenizerNamed } from "./gguf-pretokenizer.ts";

/** Kinds of tokens by llama.cpp's numbers. */
export const TOKEN_TYPE = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5 } as const;

/** Control tokens that end a turn or a text, whatever the metadata says; llama.cpp also stops at them. */
const ENDS = new Set(["<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"]);

export interface GgufTokenizer {
  readonly files: TokenizerFiles;
  readonly chatTemplate: string | undefined;
  readonly bos: number | null;
  readonly pad: number | null;
  /** End tokens named in the metadata, starting with the model's end of text. */
  readonly eos: readonly number[];
  /** Every token at which sampling should stop. */
  readonly ends: readonly number[];
}

/** Reads the tokenizer, which must have one token per row of the embedding. */
export function ggufTokenizer(facts: GgufFacts, rows: number): GgufTokenizer {
  const words = stepsOf(facts);
  const key = "tokenizer.ggml.tokens";
  const tokens = facts.needed(key, facts.texts(key));
  if (tokens.length !== rows) {
    throw facts.bad(`${key} has ${tokens.length} entries, but the embedding has another number of rows`, rows);
  }
  const types = facts.wholes("tokenizer.ggml.token_type") ?? tokens.map(() => TOKEN_TYPE.normal);
  if (types.length !== tokens.length) {
    throw facts.bad(`tokenizer.ggml.token_type should have ${tokens.length} entries`, types.length);
  }
  const used = usedLength(tokens, types);
  const ids = new Map<string, number>();
  for (let id = 0; id < used; id++) {
    if (ids.has(tokens[id]!)) throw facts.bad(`${key} has a token twice`, JSON.stringify(tokens[id]));
    ids.set(tokens[id]!, id);
  }
  const added = addedTokens(tokens.slice(0, used), types);
  const named = (name: string): number | null => {
    const id = facts.whole(`tokenizer.ggml.${name}_token_id`) ?? null;
    if (id === null || (id >= 0 && id < used)) return id;
    throw facts.bad(`tokenizer.ggml.${name}_token_id is not one of the ${used} tokens`, id);
  };
  const [bos, eos, pad] = [named("bos"), named("eos"), named("padding")];
  const stops = [eos, named("eot"), named("eom")].filter((id) => id !== null);
  const others = added.filter(({ content, special }) => special && ENDS.has(content)).map(({ id }) => id);
  const chatTemplate = templateOf(facts);
  const addsBos = (facts.flag("tokenizer.ggml.add_bos_token") ?? false) && bos !== null;
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: words.normalizer,
    pre_tokenizer: words.pre_tokenizer,
    post_processor: addsBos ? bosFirst(tokens[bos!]!, bos!) : null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: words.ignore_merges,
      vocab: Object.fromEntries(ids),
      merges: mergesOf(facts, ids),
    },
  };
  const token = (id: number | null) => (id === null ? null : tokens[id]!);
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    bos_token: token(bos),
    eos_token: token(eos),
    pad_token: token(pad),
    add_bos_token: addsBos,
    clean_up_tokenization_spaces: false,
  };
  return {
    files: { tokenizer, config },
    chatTemplate,
    bos,
    pad,
    eos: [...new Set(stops)],
    ends: [...new Set([...stops, ...others])],
  };
}

/** The steps before merging; rejects tokenizers that are not byte-level, by name. */
function stepsOf(facts: GgufFacts) {
  const model = facts.needed("tokenizer.ggml.model", facts.text("tokenizer.ggml.model"));
  if (model !== "gpt2") {
    const kind = model === "llama" ? "llama (SentencePiece)" : model;
    throw facts.bad("its tokenizer is not supported", kind, "use a model with a byte-level BPE tokenizer (gpt2)");
  }
  const pre = facts.needed("tokenizer.ggml.pre", facts.text("tokenizer.ggml.pre"));
  const words = preTokenizerNamed(pre);
  if (words) return words;
  throw facts.bad(
    "its tokenizer.ggml.pre is not supported",
    pre,
    `use a model with one of ${PRE_TOKENIZER_NAMES.join(", ")}`,
  );
}

/** Number of tokens, without trailing ones that only pad the embedding. */
function usedLength(tokens: readonly string[], types: readonly number[]): number {
  let used = tokens.length;
  while (used > 0 && isFiller(tokens[used - 1]!, types[used - 1]!, used - 1)) used--;
  return used;
}

function isFiller(token: string, type: number, id: number): boolean {
  return type === TOKEN_TYPE.unused || (type === TOKEN_TYPE.userDefined && token === `[PAD${id}]`);
}

function addedTokens(tokens: readonly string[], types: readonly number[]) {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
  return tokens.flatMap((content, id) => {
    const type = types[id]!;
    const special = type === TOKEN_TYPE.control || type === TOKEN_TYPE.unknown;
    return special || type === TOKEN_TYPE.userDefined ? [{ id, content, ...flags, special }] : [];
  });
}

/**
 * Reads the merges. Each must join two tokens into a token: anything else would change texts, or fail later and less
 * clearly.
 */
function mergesOf(facts: GgufFacts, ids: ReadonlyMap<string, number>): readonly string[] {
  const key = "tokenizer.ggml.merges";
  const merges = facts.needed(key, facts.texts(key));
  if (new Set(merges).size !== merges.length) throw facts.bad(`${key} has a pair twice`);
  for (const merge of merges) {
    const at = merge.indexOf(" ", 1);
    const [left, right] = [merge.slice(0, at), merge.slice(at + 1)];
    if (at < 0 || right === "" || right.includes(" ")) throw facts.bad(`${key}: not a pair`, JSON.stringify(merge));
    const unknown = [left, right, left + right].find((token) => !ids.has(token));
    if (unknown !== undefined) {
      throw facts.bad(`${key}: the pair ${JSON.stringify(merge)} names no token`, JSON.stringify(unknown));
    }
  }
  return merges;
}

function templateOf(facts: GgufFacts): string | undefined {
  const template = facts.text("tokenizer.chat_template");
  if (template === undefined || template.length <= MAX_TEMPLATE_CHARACTERS) return template;
  const what = `its tokenizer.chat_template has more than ${MAX_TEMPLATE_CHARACTERS} characters`;
  throw facts.bad(what, template.length);
}

/** Post-processor that adds the beginning-of-text token when encoding with special tokens. */
function bosFirst(content: string, id: number): object {
  const first = { SpecialToken: { id: content, type_id: 0 } };
  const [one, other] = [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }];
  return {
    type: "TemplateProcessing",
    single: [first, one],
    pair: [first, one, { SpecialToken: { id: content, type_id: 1 } }, other],
    special_tokens: { [content]: { id: content, ids: [id], tokens: [content] } },
  };
}
