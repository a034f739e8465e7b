// Byte-pair encoding learned from text: a small byte-level vocabulary, given as a tokenizer.json of the Hugging Face format.
import { Tokenizer } from "@huggingface/tokenizers";
import { UsageError } from "../../../errors.ts";

// Pieces that merges never cross: a word with the space before it; one digit; one mark (`_` too) with the space before it, so that
// identifiers split at underscores and SQL's marks stay apart; line ends; other space. Every character falls into one of them.
const PIECES = " ?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]|[\\r\\n]+|[^\\S\\r\\n]+(?!\\S)|[^\\S\\r\\n]+";

// The same with separate spaces, so that a name has the same tokens everywhere: at the start of a line, after a space, a bracket
// or a dot. Small models copy names they have never seen token by token, and need that. Only words that are
// never names keep their space.
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

/** Whether a space belongs to the word after it. */
export type Spaces = "attached" | "apart";

export interface BpeOptions {
  /** "apart": a name has the same tokens everywhere, and texts are longer. @default "attached" */
  readonly spaces?: Spaces;
  /** Ids in all: special tokens, 256 bytes and merges. The result has fewer when the texts offer no more pairs. */
  readonly vocabSize: number;
  /** They get the first ids, in this order. @default [] */
  readonly specialTokens?: readonly string[];
  /** A pair seen less often is not merged. @default 2 */
  readonly minFrequency?: number;
  /** Longest token, in bytes; short ones keep new words made of common parts. @default 16 */
  readonly maxTokenBytes?: number;
}

/** A piece of text as ids, and its count. */
interface Word {
  ids: number[];
  readonly count: number;
}

/**
 * Learns merges from texts; the same texts in any order give the same tokenizer, ties going to the smallest ids.
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

/** The 256 characters that stand for bytes, in order of their code, as other trainers number them: the visible Latin-1 ones, and 68 beyond. */
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

/** One of the library's pre-tokenizers, so that training splits exactly as encoding will. */
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

/** Repeatedly merges the most frequent pair, adding to `tokens`; only words that contain the pair are touched. */
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
    if (!known.has(key)) merges.push([left, right]); // a merged pair can return, since two merges may make the same token
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
      // In `aaa` the second pair is the same as the first, which is no longer counted.
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
  /** Words that contain the pair, or did. */
  readonly words: Set<number>;
}

interface Entry {
  readonly pair: Pair;
  /** The pair's count when it was queued; counts that changed since are queued again. */
  readonly count: number;
}

/** How often each pair occurs and where, with a heap that gives the most frequent first. */
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

/** More frequent first; equals by the smallest ids. */
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
