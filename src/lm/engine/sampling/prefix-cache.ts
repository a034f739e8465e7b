// The prefix cache: a tree of token runs whose keys and values are in the store. A request continues the longest context that
// is known, whoever computed it; runs nobody holds are dropped, least recently used first, when room is needed.
import type { BlockAddress, Buffer, Device } from "../../devices/index.ts";

/** A run of tokens behind part of another run. */
export interface CacheRun extends BlockAddress {
  block: number;
  capacity: number;
  /** Whether one sample made it, turn by turn; others are for many to go on from. */
  readonly isOwn: boolean;
  readonly parent: CacheRun | null;
  /** Tokens of the parent this run follows; those behind are another continuation's. */
  readonly parentTokens: number;
  /** All tokens, the computed ones first. */
  readonly tokens: number[];
  /** Tokens whose keys and values are in the store. */
  computed: number;
  readonly children: Set<CacheRun>;
  holders: number;
  used: number;
}

export interface Match {
  readonly run: CacheRun | null;
  /** Tokens of `run` that match. */
  readonly runTokens: number;
  /** Tokens of the context that match in all. */
  readonly tokens: number;
}

export interface CacheShape {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** The most tokens kept. @default 131072 */
  readonly maxTokens?: number;
  /** The most tokens a context has: there is no room behind. @default no end */
  readonly window?: number;
}

const FIRST_TOKENS = 4_096; // the store's size at first; it doubles
const MAX_TOKENS = 131_072;

/** Keys and values of many contexts, shared where the contexts are. */
export class PrefixCache {
  /** One store a layer; replaced when the cache grows. */
  stores: Buffer[] = [];
  readonly #device: Device;
  readonly #shape: CacheShape;
  readonly #roots = new Set<CacheRun>();
  readonly #unit: number; // floats a token, a layer
  #gaps: { start: number; end: number }[] = []; // in tokens
  #capacity = 0;
  #held = 0; // tokens of runs that somebody holds
  #clock = 0;

  constructor(device: Device, shape: CacheShape) {
    this.#device = device;
    this.#shape = shape;
    this.#unit = 2 * shape.kvHeads * shape.headDim;
  }

  get #maxTokens(): number {
    return this.#shape.maxTokens ?? MAX_TOKENS;
  }

  /** Tokens there is room for now. */
  get capacity(): number {
    return this.#capacity;
  }

  /** The longest known beginning of a context, at most `limit` tokens of it. */
  match(context: readonly number[], limit: number): Match {
    let best: Match = { run: null, runTokens: 0, tokens: 0 };
    let level: Iterable<CacheRun> = this.#roots;
    for (;;) {
      const found = this.#bestOf(level, context, best, limit);
      if (!found || found.tokens <= best.tokens) return best;
      best = found;
      found.run!.used = ++this.#clock;
      level = found.run!.children;
    }
  }

  /**
   * Makes room for so many tokens behind a match, and holds it. A sample that says what it wishes for, on a device that can move
   * runs, gets one of its own, as large as that while what is held leaves three quarters of the cache to others; when it comes
   * again with its next turn it goes on in it, in a place twice as large where need be, so that an episode stays in one piece.
   */
  add(match: Match, tokens: number, wish?: number): CacheRun {
    const isOwn = wish !== undefined;
    const run = (isOwn && this.#continued(match, tokens)) || this.#begun(match, tokens, wish);
    for (let at: CacheRun | null = run; at; at = at.parent) if (at.holders++ === 0) this.#held += at.capacity;
    return run;
  }

  /** Lets go of a run and of those above it; they stay until room is needed. */
  release(run: CacheRun): void {
    for (let at: CacheRun | null = run; at; at = at.parent) if (--at.holders === 0) this.#held -= at.capacity;
  }

  /** Forgets everything: the weights have changed. No run may be held. */
  clear(): void {
    this.#roots.clear();
    this.#held = 0;
    this.#gaps = this.#capacity === 0 ? [] : [{ start: 0, end: this.#capacity }];
  }

  /** Gives the memory back. */
  close(): void {
    this.clear();
    for (const store of this.stores) this.#device.free(store);
    this.stores = [];
    this.#gaps = [];
    this.#capacity = 0;
  }

  #begun({ run: parent, runTokens: parentTokens, tokens: before }: Match, tokens: number, wish?: number): CacheRun {
    const capacity = padded(this.#spare(tokens, wish ?? 0, before) ?? tokens);
    const block = this.#reserve(capacity, parent) * this.#unit;
    const run: CacheRun = {
      ...{ block, capacity, isOwn: wish !== undefined, parent, parentTokens, tokens: [], computed: 0 },
      ...{ children: new Set(), holders: 0, used: ++this.#clock },
    };
    (parent?.children ?? this.#roots).add(run);
    return run;
  }

  /** The matched run, if it ends there, nobody is in it or went on from it, and it has room or can be moved to where there is some. */
  #continued({ run, runTokens, tokens: before }: Match, tokens: number): CacheRun | undefined {
    if (!run?.isOwn || run.holders > 0 || run.children.size > 0) return undefined;
    if (runTokens !== run.tokens.length || run.computed !== runTokens) return undefined;
    const needed = runTokens + tokens;
    if (needed <= run.capacity) return run;
    const room = this.#spare(needed, 2 * run.capacity, before - runTokens);
    if (room === undefined) return undefined;
    const from = { block: run.block, capacity: run.capacity };
    run.block = this.#reserve(padded(room), run) * this.#unit;
    run.capacity = padded(room);
    for (const store of this.stores) this.#device.moveBlock!(store, from, run, runTokens, this.#shape);
    this.#freePlace(from);
    return run;
  }

  /** What is wished for behind `before` tokens, as far as contexts go and at least what is needed, if it is to spare. */
  #spare(needed: number, wish: number, before: number): number | undefined {
    const room = Math.max(needed, Math.min(wish, (this.#shape.window ?? Infinity) - before));
    return this.#held + room <= this.#maxTokens / 4 ? room : undefined;
  }

  #bestOf(runs: Iterable<CacheRun>, context: readonly number[], above: Match, limit: number): Match | undefined {
    let best: Match | undefined;
    for (const run of runs) {
      if (run.parentTokens > above.runTokens) continue;
      // A run that leaves its parent early can be entered only where it leaves.
      if (run.parent && run.parentTokens !== above.runTokens) {
        const matched = above.tokens - above.runTokens + run.parentTokens;
        const tokens = common(run, context, matched, limit);
        if (matched + tokens > (best?.tokens ?? above.tokens))
          best = { run, runTokens: tokens, tokens: matched + tokens };
        continue;
      }
      const tokens = common(run, context, above.tokens, limit);
      if (above.tokens + tokens > (best?.tokens ?? above.tokens)) {
        best = { run, runTokens: tokens, tokens: above.tokens + tokens };
      }
    }
    return best;
  }

  /** First token of a free stretch. */
  #reserve(size: number, keep: CacheRun | null): number {
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
      else if (!this.#evict(keep)) this.#grow(this.#capacity + size); // everything is in use: better slow than stuck
    }
  }

  #grow(capacity: number): void {
    const device = this.#device;
    for (let i = 0; i < this.#shape.layers; i++) {
      const bigger = device.alloc(device.activations, capacity * this.#unit);
      const old = this.stores[i];
      if (old) {
        device.copy(device.part(old, 0, this.#capacity * this.#unit), bigger);
        device.free(old);
      }
      this.stores[i] = bigger; // at once: should the next not fit, all stores still hold what they held
    }
    this.#free(this.#capacity, capacity);
    this.#capacity = capacity;
  }

  /** Drops the least recently used run without children and holders; false when there is none. */
  #evict(keep: CacheRun | null): boolean {
    let oldest: CacheRun | undefined;
    const visit = (run: CacheRun) => {
      if (run.children.size === 0 && run.holders === 0 && run !== keep && run.used < (oldest?.used ?? Infinity))
        oldest = run;
      for (const child of run.children) visit(child);
    };
    for (const root of this.#roots) visit(root);
    if (!oldest) return false;
    (oldest.parent?.children ?? this.#roots).delete(oldest);
    this.#freePlace(oldest);
    return true;
  }

  #freePlace({ block, capacity }: BlockAddress): void {
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

/** Places are whole panels of eight tokens. */
function padded(tokens: number): number {
  return (tokens + 7) & ~7;
}

/** How many tokens of a run equal the context from `from` on. */
function common({ tokens }: CacheRun, context: readonly number[], from: number, limit: number): number {
  const end = Math.min(tokens.length, limit - from);
  let i = 0;
  while (i < end && tokens[i] === context[from + i]) i++;
  return Math.max(0, i);
}
