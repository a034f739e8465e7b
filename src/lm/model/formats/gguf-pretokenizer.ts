// Pre-tokenizers (how text is split into words before merging) by llama.cpp's names for them (`tokenizer.ggml.pre`).
import { ModelLoadError } from "../../../errors.ts";

interface PreTokenization {
  /** As in tokenizer.json. */
  readonly normalizer: object | null;
  readonly pre_tokenizer: object;
  /** Whether a word that is itself a token is never split. */
  readonly ignore_merges: boolean;
}

const bytes = (use_regex: boolean) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex });
const split = (Regex: string) => ({ type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false });
const steps = (...pretokenizers: object[]) => ({ type: "Sequence", pretokenizers });

/** Matches a word with one preceding character; `digits` sets how digits are grouped. */
const words = (digits: string) =>
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|${digits}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`;
const QWEN_WORDS = words(String.raw`\p{N}`);
const LLAMA3_WORDS = words(String.raw`\p{N}{1,3}`);
const DIGIT = String.raw`\p{N}`;

const PRE_TOKENIZERS: Readonly<Record<string, PreTokenization>> = {
  "gpt-2": { normalizer: null, pre_tokenizer: bytes(true), ignore_merges: false },
  // The original has a "Digits" step, which some libraries apply only to ASCII digits.
  smollm: { normalizer: null, pre_tokenizer: steps(split(DIGIT), bytes(true)), ignore_merges: false },
  qwen2: { normalizer: { type: "NFC" }, pre_tokenizer: steps(split(QWEN_WORDS), bytes(false)), ignore_merges: false },
  "llama-bpe": { normalizer: null, pre_tokenizer: steps(split(LLAMA3_WORDS), bytes(false)), ignore_merges: true },
};
/** Aliases in older files. */
const ALIASES: Readonly<Record<string, string>> = { gpt2: "gpt-2", llama3: "llama-bpe", "llama-v3": "llama-bpe" };

/** Looks up a pre-tokenizer by name; undefined if unknown. */
export function preTokenizerNamed(pre: string): PreTokenization | undefined {
  const name = Object.hasOwn(ALIASES, pre) ? ALIASES[pre]! : pre;
  return Object.hasOwn(PRE_TOKENIZERS, name) ? PRE_TOKENIZERS[name] : undefined;
}

/** The supported names. */
export const PRE_TOKENIZER_NAMES: readonly string[] = Object.keys(PRE_TOKENIZERS);

interface PreTokenizer {
  readonly type: string;
  readonly use_regex?: boolean;
  readonly individual_digits?: boolean;
  readonly pattern?: { readonly Regex?: string };
  readonly pretokenizers?: readonly PreTokenizer[];
}

/** llama.cpp's name for the pre-tokenizer in a tokenizer.json; one without a name cannot be written to GGUF. */
export function preTokenizerName(given: unknown): string {
  const pre = given as PreTokenizer | null | undefined;
  const parts = pre?.type === "Sequence" ? (pre.pretokenizers ?? []) : pre ? [pre] : [];
  const kinds = parts.map(
    ({ type, use_regex, individual_digits, pattern }) =>
      ({
        ByteLevel: use_regex === false ? "bytes" : "gpt-2",
        Digits: individual_digits ? DIGIT : "?",
        Split: pattern?.Regex ?? "?",
      })[type] ?? "?",
  );
  const name = NAMES.get(kinds.join("\n"));
  if (name !== undefined) return name;
  throw new ModelLoadError({
    what: "llama.cpp has no name for the way this tokenizer splits words",
    value: parts.find(({ type }) => type === "Split")?.pattern?.Regex ?? JSON.stringify(given),
    remedy: `export a model whose tokenizer splits like one of ${PRE_TOKENIZER_NAMES.join(", ")}`,
  });
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ["gpt-2", "gpt-2"],
  [`${DIGIT}\ngpt-2`, "smollm"],
  [`${QWEN_WORDS}\nbytes`, "qwen2"],
  [`${LLAMA3_WORDS}\nbytes`, "llama-bpe"],
]);
