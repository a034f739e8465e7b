// Runs of tokens in a tree, written as the tables a device's attention reads.
import type { BlockAddress, Buffer, Device, KvShape, TokenLayout } from "../devices/index.ts";

/** Tokens that follow their parent's last token; the parent comes earlier in the list. */
export interface Run {
  readonly tokens: readonly number[];
  readonly parent: number | null;
}

/** New tokens of one run: how many, after how many of its own, behind which earlier runs. */
export interface NewTokens {
  readonly own: BlockAddress;
  /** Tokens of the run that are in the store already. */
  readonly start: number;
  readonly count: number;
  /** From the root down, each with the number of its tokens. */
  readonly ancestors: readonly (BlockAddress & { readonly tokens: number; readonly row: number })[];
}

/** Tables for new tokens, row after row in the order given. `trees` says where a new tree begins. */
export function layoutOf(device: Device, news: readonly NewTokens[], trees: readonly number[]): TokenLayout {
  const tokens = news.reduce((sum, { count }) => sum + count, 0);
  const [positions, blocks, capacities, indices] = [0, 0, 0, 0].map(() => new Int32Array(tokens));
  const segments: number[] = [];
  const ranges: number[] = [];
  const rangeRows: number[] = [];
  const runs: number[] = [];
  let row = 0;
  let maxContext = 0;
  for (const { own, start, count, ancestors } of news) {
    const before = ancestors.reduce((sum, ancestor) => sum + ancestor.tokens, 0);
    segments.push(row, count, before + start, rangeRows.length);
    for (const ancestor of ancestors) {
      ranges.push(ancestor.block, ancestor.capacity, ancestor.tokens);
      rangeRows.push(ancestor.row);
    }
    ranges.push(own.block, own.capacity, start + count);
    rangeRows.push(row - start);
    runs.push(own.block, own.capacity, start + count);
    for (let i = 0; i < count; i++, row++) {
      positions![row] = before + start + i;
      blocks![row] = own.block;
      capacities![row] = own.capacity;
      indices![row] = start + i;
    }
    maxContext = Math.max(maxContext, before + start + count);
  }
  segments.push(row, 0, 0, rangeRows.length); // closes the table
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
    spans: put(segments),
    spanCount: news.length,
    ranges: put(ranges),
    rangeRows: put(rangeRows),
    kvBlocks: put(runs),
    kvBlockCount: news.length,
    trees: put([...trees, news.length]),
    treeCount: trees.length,
    maxContext,
  };
}

/** A whole forest of new runs and the size of the KV store it needs, in floats a layer. */
export function forestLayout(
  device: Device,
  runs: readonly Run[],
  { kvHeads, headDim }: KvShape,
): { layout: TokenLayout; storeLength: number } {
  const unit = 2 * kvHeads * headDim;
  const places: (BlockAddress & { tokens: number; row: number })[] = [];
  let [block, row] = [0, 0];
  for (const { tokens } of runs) {
    const capacity = (tokens.length + 7) & ~7;
    places.push({ block, capacity, tokens: tokens.length, row });
    block += capacity * unit;
    row += tokens.length;
  }
  const pathTo = (i: number | null): number[] => (i === null ? [] : [...pathTo(runs[i]!.parent), i]);
  const news = runs.map(({ tokens, parent }, i) => ({
    own: places[i]!,
    start: 0,
    count: tokens.length,
    ancestors: pathTo(parent).map((ancestor) => places[ancestor]!),
  }));
  const roots = runs.flatMap(({ parent }, i) => (parent === null ? [i] : []));
  return { layout: layoutOf(device, news, roots), storeLength: block };
}
