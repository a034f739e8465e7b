// Learns a byte-level byte-pair encoding from text, as a tokenizer.json in the Hugging Face format.
import { Tokenizer } from "@huggingface/tokenizers";
import { UsageError } from "../../../errors.ts";

// Pieces that merges never cross: a word with the space before it; one digit; one mark (including `_`) with the space
// before it, so that identifiers split at underscores and SQL's marks stay separate; line breaks; other white space.
// Every character is in one of them.
const PIECES = " ?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]|[\\r\\n]+|[^\\S\\r\\n]+(?!\\S)|[^\\S\\r\\n]+";

// The same pieces with separate spaces, so that a name has the same tokens everywhere: at the start of a line, and
// after a space, a bracket or a dot. Small models need this, because they copy unknown names token by token. Only words
// that are never names keep their space.
const COMMON =
  "SELECT FROM WHERE JOIN ON AND OR AS GROUP ORDER BY LIMIT DESC ASC HAVING DISTINCT LIKE IS NOT NULL IN BETWEEN INTEGER TEXT REAL " +
  "the of a an is are was were what which who how many in on to and or with for from that their its than have has do does there be at by all each every";
const APART = ` (?:${COMMON.replaceAll(" ", "|")})(?![\\p{L}\\p{M}\\p{N}_])|[\\p{L}\\p{M}]+|\\p{N}|[^\\s\\p{L}\\p{M}\\p{N}]|[\\r\\n]+|[^\\S\\r\\n]`;

const splitter = (spaces: Spaces) =>
  ({
    type: "Split",
    pattern: { Regex: spaces === "apart" ? APART : PIECES },
    behavior: "Isolated",
    invert: false,
  }) as const;
const BYTE_LEVEL = { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false } as const;

const BYTES = 256;

/** Whether a space is part of the word after it. */
export type Spaces = "attached" | "apart";

export interface BpeOptions {
  /** With "apart", a name has the same tokens everywhere, but texts are longer. @default "attached" */
  readonly spaces?: Spaces;
  /** Total number of ids: special tokens, 256 bytes and merges. There are fewer if the texts offer no more pairs. */
  readonly vocabSize: number;
  /** These get the first ids, in this order. @default [] */
  readonly specialTokens?: readonly string[];
  /** Pairs that occur less often are not merged. @default 2 */
  readonly minFrequency?: number;
  /** Maximum bytes of a token; short tokens compose new words from common parts. @default 16 */
  readonly maxTokenBytes?: number;
}

/** A piece of text as ids, and its number of occurrences. */
interface Word {
  ids: number[];
  readonly count: number;
}

/**
 * Learns merges from texts. The order of the texts does not matter; ties go to the smallest ids.
 *
 * @example
 * const tokenizer = new Tokenizer({ tokenizer: trainBpe(["SELECT name FROM item"], { vocabSize: 300 }), config: {} });
 */
export function trainBpe(texts: Iterable<string>, options: BpeOptions): Record<string, unknown> {
  const { vocabSize, specialTokens = [], minFrequency = 2, maxTokenBytes = 16, spaces = "attached" } = options;
  if (!Number.isInteger(vocabSize) || vocabSize < BYTES + specialTokens.length) {
    throw new UsageError({
      what: "vocabSize is too small",
      value: vocabSize,
      remedy: `give at least ${BYTES + specialTokens.length}: the special tokens and 256 bytes`,
    });
  }
  const tokens = [...specialTokens, ...byteAlphabet()];
  const idOf = new Map(tokens.map((token, id) => [token, id]));
  const words = countWords(texts, idOf, spaces);
  const merges = learn(words, tokens, idOf, { vocabSize, minFrequency, maxTokenBytes });
  return tokenizerJson(specialTokens, tokens, merges, spaces);
}

/**
 * The 256 characters that represent bytes, ordered by code point as in other trainers: the visible Latin-1 characters
 * and 68 others.
 */
function byteAlphabet(): string[] {
  const ranges = [
    [0x21, 0x7e],
    [0xa1, 0xac],
    [0xae, 0xff],
    [0x100, 0x143],
  ] as const;
  return ranges.flatMap(([low, high]) =>
    Array.from({ length: high - low + 1 }, (_, i) => String.fromCharCode(low + i)),
  );
}

/** Uses the library's pre-tokenizer, so that training splits text exactly as encoding will. */
function preTokenizer(config: object): (text: string) => string[] {
  const model = { type: "BPE", vocab: {}, merges: [] };
  const parts = {
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: config,
    model,
    post_processor: null,
    decoder: null,
  };
  return new Tokenizer(parts, {}).pre_tokenizer;
}

function countWords(texts: Iterable<string>, idOf: ReadonlyMap<string, number>, spaces: Spaces): Word[] {
  const split = preTokenizer(splitter(spaces));
  const bytes = preTokenizer(BYTE_LEVEL);
  const counts = new Map<string, number>();
  for (const text of texts) {
    for (const piece of split(text)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  }
  return [...counts].map(([piece, count]) => ({
    ids: Array.from(bytes(piece)[0]!, (character) => idOf.get(character)!),
    count,
  }));
}

/** Repeatedly merges the most frequent pair and adds it to `tokens`; only words that contain the pair are touched. */
function learn(
  words: readonly Word[],
  tokens: string[],
  idOf: Map<string, number>,
  { vocabSize, minFrequency, maxTokenBytes }: Required<Omit<BpeOptions, "specialTokens" | "spaces">>,
): (readonly [string, string])[] {
  const pairs = new PairCounts(vocabSize);
  words.forEach(({ ids, count }, word) => {
    for (let i = 0; i + 1 < ids.length; i++) pairs.add(ids[i]!, ids[i + 1]!, count, word);
  });
  pairs.settle();
  const merges: (readonly [string, string])[] = [];
  const known = new Set<string>();
  while (tokens.length < vocabSize) {
    const best = pairs.pop();
    if (!best || best.count < minFrequency) break;
    const [left, right] = [tokens[best.left]!, tokens[best.right]!];
    if (left.length + right.length > maxTokenBytes) continue;
    const merged = idOf.get(left + right) ?? tokens.push(left + right) - 1;
    idOf.set(left + right, merged);
    const key = `${left} ${right}`;
    // A merged pair can recur, since two merges may produce the same token.
    if (!known.has(key)) merges.push([left, right]);
    known.add(key);
    for (const index of best.words) mergeIn(words[index]!, index, best.left, best.right, merged, pairs);
    pairs.settle();
  }
  return merges;
}

/** Replaces the pair in one word and updates the counts of the neighbouring pairs. */
function mergeIn(word: Word, index: number, left: number, right: number, merged: number, pairs: PairCounts): void {
  const { ids, count } = word;
  const result: number[] = [];
  for (let i = 0; i < ids.length; i++) {
    if (ids[i] !== left || ids[i + 1] !== right) {
      result.push(ids[i]!);
      continue;
    }
    const before = result.at(-1);
    if (before !== undefined) {
      pairs.add(before, left, -count, index);
      pairs.add(before, merged, count, index);
    }
    const after = ids[i + 2];
    if (after !== undefined) {
      // In `aaa` the second pair equals the first, which is no longer counted.
      if (right !== left || after !== right) pairs.add(right, after, -count, index);
      pairs.add(merged, after, count, index);
    }
    result.push(merged);
    i++;
  }
  word.ids = result;
}

interface Pair {
  readonly left: number;
  readonly right: number;
  count: number;
  /** Indices of words that contain the pair, or once did. */
  readonly words: Set<number>;
}

interface Entry {
  readonly pair: Pair;
  /** The pair's count when it was queued; if the count changes, the pair is queued again. */
  readonly count: number;
}

/** How often each pair occurs and where, with a heap that returns the most frequent first. */
class PairCounts {
  readonly #stride: number;
  readonly #pairs = new Map<number, Pair>();
  readonly #changed = new Set<Pair>();
  readonly #heap: Entry[] = [];

  constructor(vocabSize: number) {
    this.#stride = vocabSize;
  }

  add(left: number, right: number, count: number, word: number): void {
    const key = left * this.#stride + right;
    let pair = this.#pairs.get(key);
    if (!pair) {
      pair = { left, right, count: 0, words: new Set() };
      this.#pairs.set(key, pair);
    }
    pair.count += count;
    if (count > 0) pair.words.add(word);
    this.#changed.add(pair);
  }

  /** Queues the pairs whose counts have changed. */
  settle(): void {
    for (const pair of this.#changed) if (pair.count > 0) this.#push({ pair, count: pair.count });
    this.#changed.clear();
  }

  /** Removes and returns the most frequent pair. */
  pop(): Pair | undefined {
    for (;;) {
      const top = this.#heap[0];
      if (!top) return undefined;
      const last = this.#heap.pop()!;
      if (this.#heap.length > 0) this.#sink(last);
      const { pair, count } = top;
      if (pair.count !== count) continue; // stale: it was queued again with its new count
      this.#pairs.delete(pair.left * this.#stride + pair.right);
      return pair;
    }
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!precedes(entry, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #sink(entry: Entry): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && precedes(heap[child + 1]!, heap[child]!)) child++;
      if (!precedes(heap[child]!, entry)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = entry;
  }
}

/** Orders by count, highest first, then by the smallest ids. */
function precedes(a: Entry, b: Entry): boolean {
  if (a.count !== b.count) return a.count > b.count;
  if (a.pair.left !== b.pair.left) return a.pair.left < b.pair.left;
  return a.pair.right < b.pair.right;
}

function tokenizerJson(
  specialTokens: readonly string[],
  tokens: readonly string[],
  merges: readonly (readonly [string, string])[],
  spaces: Spaces,
): Record<string, unknown> {
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: "Sequence", pretokenizers: [splitter(spaces), BYTE_LEVEL] },
    post_processor: null,
    decoder: BYTE_LEVEL,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  };
}
