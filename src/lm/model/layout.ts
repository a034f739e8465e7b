// Builds the tables that a device's attention reads, from spans of tokens in a tree.
import type { BlockAddress, Buffer, Device, KvShape, TokenLayout } from "../devices/index.ts";

/** Consecutive tokens of a context that follow the last token of their parent; the parent comes earlier in the list. */
export interface Span {
  readonly tokens: readonly number[];
  readonly parent: number | null;
}

/** New tokens in one KV block, after the block's cached tokens and its ancestors. */
export interface NewTokens {
  readonly own: BlockAddress;
  /** Number of tokens already cached in the block. */
  readonly start: number;
  readonly count: number;
  /** Ancestor blocks from the root down, each with the number of its tokens that are visible. */
  readonly ancestors: readonly (BlockAddress & { readonly tokens: number; readonly row: number })[];
}

/** Builds the tables for new tokens, with rows in the given order. `trees` lists the first span of each tree. */
export function layoutOf(device: Device, news: readonly NewTokens[], trees: readonly number[]): TokenLayout {
  const tokens = news.reduce((sum, { count }) => sum + count, 0);
  const [positions, blocks, capacities, indices] = [0, 0, 0, 0].map(() => new Int32Array(tokens));
  const spans: number[] = [];
  const ranges: number[] = [];
  const rangeRows: number[] = [];
  const kvBlocks: number[] = [];
  let row = 0;
  let maxContext = 0;
  for (const { own, start, count, ancestors } of news) {
    const before = ancestors.reduce((sum, ancestor) => sum + ancestor.tokens, 0);
    spans.push(row, count, before + start, rangeRows.length);
    for (const ancestor of ancestors) {
      ranges.push(ancestor.block, ancestor.capacity, ancestor.tokens);
      rangeRows.push(ancestor.row);
    }
    ranges.push(own.block, own.capacity, start + count);
    rangeRows.push(row - start);
    kvBlocks.push(own.block, own.capacity, start + count);
    for (let i = 0; i < count; i++, row++) {
      positions![row] = before + start + i;
      blocks![row] = own.block;
      capacities![row] = own.capacity;
      indices![row] = start + i;
    }
    maxContext = Math.max(maxContext, before + start + count);
  }
  spans.push(row, 0, 0, rangeRows.length); // the final entry, which ends the table
  const put = (data: Int32Array | readonly number[]): Buffer => {
    const buffer = device.alloc("i32", Math.max(1, data.length));
    device.write(buffer, data instanceof Int32Array ? data : Int32Array.from(data));
    return buffer;
  };
  return {
    tokens,
    positions: put(positions!),
    blockAddresses: put(blocks!),
    capacities: put(capacities!),
    indices: put(indices!),
    spans: put(spans),
    spanCount: news.length,
    ranges: put(ranges),
    rangeRows: put(rangeRows),
    kvBlocks: put(kvBlocks),
    kvBlockCount: news.length,
    trees: put([...trees, news.length]),
    treeCount: trees.length,
    maxContext,
  };
}

/** Builds the layout of a forest of new spans, and the size of its KV cache in elements per layer. */
export function forestLayout(
  device: Device,
  spans: readonly Span[],
  { kvHeads, headDim }: KvShape,
): { layout: TokenLayout; kvLength: number } {
  const unit = 2 * kvHeads * headDim;
  const addresses: (BlockAddress & { tokens: number; row: number })[] = [];
  let [block, row] = [0, 0];
  for (const { tokens } of spans) {
    const capacity = (tokens.length + 7) & ~7;
    addresses.push({ block, capacity, tokens: tokens.length, row });
    block += capacity * unit;
    row += tokens.length;
  }
  const pathTo = (i: number | null): number[] => (i === null ? [] : [...pathTo(spans[i]!.parent), i]);
  const news = spans.map(({ tokens, parent }, i) => ({
    own: addresses[i]!,
    start: 0,
    count: tokens.length,
    ancestors: pathTo(parent).map((ancestor) => addresses[ancestor]!),
  }));
  const roots = spans.flatMap(({ parent }, i) => (parent === null ? [i] : []));
  return { layout: layoutOf(device, news, roots), kvLength: block };
}
