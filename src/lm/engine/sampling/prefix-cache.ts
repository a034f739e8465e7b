// The prefix cache: a tree of KV blocks, each with the keys and values of some tokens. A request continues the longest
// cached prefix of its context, no matter which request computed it. Blocks in use are pinned; others are evicted when
// room is needed, least recently used first.
import type { BlockAddress, Buffer, Device } from "../../devices/index.ts";

/** Tokens that continue a prefix of another block, and the address of their keys and values. */
export interface KvBlock extends BlockAddress {
  block: number;
  capacity: number;
  /**
   * Whether it belongs to one sample, which fills it turn by turn; other blocks are prefixes that many samples share.
   */
  readonly isPrivate: boolean;
  readonly parent: KvBlock | null;
  /**
   * Number of the parent's tokens that this block follows; the parent's later tokens belong to another continuation.
   */
  readonly parentTokens: number;
  /** All tokens; the computed ones come first. */
  readonly tokens: number[];
  /** Number of tokens whose keys and values are computed. */
  computed: number;
  readonly children: Set<KvBlock>;
  /** Number of samples that use it or a descendant. */
  holders: number;
  /** Time of the last match, or of creation. */
  used: number;
}

export interface Match {
  readonly block: KvBlock | null;
  /** Number of matching tokens in `block`. */
  readonly blockTokens: number;
  /** Number of matching tokens in the context, over all blocks down to this one. */
  readonly tokens: number;
}

export interface CacheShape {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Maximum tokens to cache. @default 131072 */
  readonly maxTokens?: number;
  /** Longest context of the model, in tokens. @default no limit */
  readonly window?: number;
}

const FIRST_TOKENS = 4_096; // initial capacity; it doubles when full
/** Default of `maxTokens`. */
export const MAX_CACHED_TOKENS = 131_072;

/** Keys and values of many contexts, shared where prefixes are equal. */
export class PrefixCache {
  /** One buffer per layer; replaced when the cache grows. */
  kvCaches: Buffer[] = [];
  readonly #device: Device;
  readonly #shape: CacheShape;
  readonly #roots = new Set<KvBlock>();
  readonly #unit: number; // elements per token and layer
  #gaps: { start: number; end: number }[] = []; // free ranges, in tokens
  #capacity = 0;
  #pinned = 0; // tokens in blocks that are in use
  #clock = 0;

  constructor(device: Device, shape: CacheShape) {
    this.#device = device;
    this.#shape = shape;
    this.#unit = 2 * shape.kvHeads * shape.headDim;
  }

  get #maxTokens(): number {
    return this.#shape.maxTokens ?? MAX_CACHED_TOKENS;
  }

  /** Number of tokens that fit without growing. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Finds the longest cached prefix of a context, at most `limit` tokens. */
  match(context: readonly number[], limit: number): Match {
    let best: Match = { block: null, blockTokens: 0, tokens: 0 };
    let level: Iterable<KvBlock> = this.#roots;
    for (;;) {
      const found = this.#bestOf(level, context, best, limit);
      if (!found || found.tokens <= best.tokens) return best;
      best = found;
      found.block!.used = ++this.#clock;
      level = found.block!.children;
    }
  }

  /**
   * Reserves room for `tokens` after a match, and pins it. With `wish`, the sample gets a private block of that size,
   * as long as pinned blocks take at most a quarter of the cache. Its next turn continues in the same block, which is
   * moved to one twice as large when full. An episode thus stays in one block, which attention reads faster than a
   * chain.
   */
  add(match: Match, tokens: number, wish?: number): KvBlock {
    const isPrivate = wish !== undefined;
    const block = (isPrivate && this.#extend(match, tokens)) || this.#allocate(match, tokens, wish);
    for (let at: KvBlock | null = block; at; at = at.parent) if (at.holders++ === 0) this.#pinned += at.capacity;
    return block;
  }

  /** Unpins a block and its ancestors; they stay cached until room is needed. */
  release(block: KvBlock): void {
    for (let at: KvBlock | null = block; at; at = at.parent) if (--at.holders === 0) this.#pinned -= at.capacity;
  }

  /** Drops everything, because the weights have changed. No block may be pinned. */
  clear(): void {
    this.#roots.clear();
    this.#pinned = 0;
    this.#gaps = this.#capacity === 0 ? [] : [{ start: 0, end: this.#capacity }];
  }

  /** Frees the memory. */
  close(): void {
    this.clear();
    for (const kvCache of this.kvCaches) this.#device.free(kvCache);
    this.kvCaches = [];
    this.#gaps = [];
    this.#capacity = 0;
  }

  #allocate(
    { block: parent, blockTokens: parentTokens, tokens: before }: Match,
    tokens: number,
    wish?: number,
  ): KvBlock {
    const capacity = padded(this.#privateSize(tokens, wish ?? 0, before) ?? tokens);
    const address = this.#reserve(capacity, parent) * this.#unit;
    const block: KvBlock = {
      block: address,
      capacity,
      isPrivate: wish !== undefined,
      parent,
      parentTokens,
      tokens: [],
      computed: 0,
      children: new Set(),
      holders: 0,
      used: ++this.#clock,
    };
    (parent?.children ?? this.#roots).add(block);
    return block;
  }

  /**
   * Extends the matched block if it is private, unused, ends at the match, and has room or can be moved to a larger
   * one.
   */
  #extend({ block, blockTokens, tokens: before }: Match, tokens: number): KvBlock | undefined {
    if (!block?.isPrivate || block.holders > 0 || block.children.size > 0) return undefined;
    if (blockTokens !== block.tokens.length || block.computed !== blockTokens) return undefined;
    const needed = blockTokens + tokens;
    if (needed <= block.capacity) return block;
    const size = this.#privateSize(needed, 2 * block.capacity, before - blockTokens);
    if (size === undefined) return undefined;
    const from = { block: block.block, capacity: block.capacity };
    block.block = this.#reserve(padded(size), block) * this.#unit;
    block.capacity = padded(size);
    for (const kvCache of this.kvCaches) this.#device.moveBlock!(kvCache, from, block, blockTokens, this.#shape);
    this.#freeBlock(from);
    return block;
  }

  /**
   * Size of a private block: `wish` clamped to [needed, window − before]; undefined if pinned blocks would take too
   * much.
   */
  #privateSize(needed: number, wish: number, before: number): number | undefined {
    const size = Math.max(needed, Math.min(wish, (this.#shape.window ?? Infinity) - before));
    return this.#pinned + size <= this.#maxTokens / 4 ? size : undefined;
  }

  #bestOf(blocks: Iterable<KvBlock>, context: readonly number[], above: Match, limit: number): Match | undefined {
    let best: Match | undefined;
    for (const block of blocks) {
      if (block.parentTokens > above.blockTokens) continue;
      // A block that follows only part of its parent can be entered only there.
      if (block.parent && block.parentTokens !== above.blockTokens) {
        const matched = above.tokens - above.blockTokens + block.parentTokens;
        const tokens = common(block, context, matched, limit);
        if (matched + tokens > (best?.tokens ?? above.tokens))
          best = { block, blockTokens: tokens, tokens: matched + tokens };
        continue;
      }
      const tokens = common(block, context, above.tokens, limit);
      if (above.tokens + tokens > (best?.tokens ?? above.tokens)) {
        best = { block, blockTokens: tokens, tokens: above.tokens + tokens };
      }
    }
    return best;
  }

  /** Reserves a free range and returns its first token. */
  #reserve(size: number, keep: KvBlock | null): number {
    for (;;) {
      const gap = this.#gaps.find(({ start, end }) => end - start >= size);
      if (gap) {
        const { start } = gap;
        gap.start += size;
        this.#gaps = this.#gaps.filter(({ start, end }) => start < end);
        return start;
      }
      if (this.#capacity < this.#maxTokens)
        this.#grow(Math.min(this.#maxTokens, Math.max(2 * this.#capacity, FIRST_TOKENS, this.#capacity + size)));
      // Everything is pinned: growing is slow, but waiting would deadlock.
      else if (!this.#evict(keep)) this.#grow(this.#capacity + size);
    }
  }

  #grow(capacity: number): void {
    const device = this.#device;
    for (let i = 0; i < this.#shape.layers; i++) {
      const bigger = device.alloc(device.activations, capacity * this.#unit);
      const old = this.kvCaches[i];
      if (old) {
        device.copy(device.part(old, 0, this.#capacity * this.#unit), bigger);
        device.free(old);
      }
      this.kvCaches[i] = bigger; // assigned at once: if the next allocation fails, all layers still hold their values
    }
    this.#free(this.#capacity, capacity);
    this.#capacity = capacity;
  }

  /** Evicts the least recently used block without children and holders; false if there is none. */
  #evict(keep: KvBlock | null): boolean {
    let oldest: KvBlock | undefined;
    const visit = (block: KvBlock) => {
      if (block.children.size === 0 && block.holders === 0 && block !== keep && block.used < (oldest?.used ?? Infinity))
        oldest = block;
      for (const child of block.children) visit(child);
    };
    for (const root of this.#roots) visit(root);
    if (!oldest) return false;
    (oldest.parent?.children ?? this.#roots).delete(oldest);
    this.#freeBlock(oldest);
    return true;
  }

  #freeBlock({ block, capacity }: BlockAddress): void {
    this.#free(block / this.#unit, block / this.#unit + capacity);
  }

  #free(start: number, end: number): void {
    const gaps = [...this.#gaps, { start, end }].sort((a, b) => a.start - b.start);
    this.#gaps = gaps.reduce<{ start: number; end: number }[]>((joined, gap) => {
      const last = joined.at(-1);
      if (last?.end === gap.start) last.end = gap.end;
      else joined.push({ ...gap });
      return joined;
    }, []);
  }
}

/** Rounds up to a multiple of eight tokens, the width of the kernels' panels. */
function padded(tokens: number): number {
  return (tokens + 7) & ~7;
}

/** Number of tokens in a block that equal the context starting at `from`. */
function common({ tokens }: KvBlock, context: readonly number[], from: number, limit: number): number {
  const end = Math.min(tokens.length, limit - from);
  let i = 0;
  while (i < end && tokens[i] === context[from + i]) i++;
  return Math.max(0, i);
}
