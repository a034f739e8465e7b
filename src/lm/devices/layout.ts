// The tables that tell a device's attention which tokens see which, and where their keys and values are.
import type { Buffer } from "./device.ts";

/**
 * The address of a KV block in a KV cache: room for the keys and values of consecutive tokens. Per kv head it holds
 * `capacity` keys, then `capacity` values, of headDim elements each (in an order that the device chooses); kv head g
 * starts 2 · g · capacity · headDim elements after `block`.
 */
export interface BlockAddress {
  /** Elements from the cache's start to the block's kv head 0. */
  readonly block: number;
  /** Number of tokens it can hold, a multiple of 8. */
  readonly capacity: number;
}

/**
 * Which tokens attend to which. Tokens are grouped into spans: consecutive tokens of one sequence, which share one KV block.
 * Spans form trees. A token sees all of its span's ancestors and its own span up to itself; a batch of plain sequences is a
 * forest of single spans, and a prompt shared by a group is the parent of its completions. Every span is computed once.
 *
 * Example: a prompt of three tokens with two completions, all of them new, with u = 2 · kvHeads · headDim elements per token:
 *
 *     P: p0 p1 p2          rows 0–2, KV block at 0
 *     ├── A: a0 a1         rows 3–4, KV block at 8u
 *     └── B: b0            row  5,   KV block at 16u
 *
 *     row              0   1   2   3   4   5
 *     positions        0   1   2   3   4   3
 *     blockAddresses   0   0   0   8u  8u  16u
 *     capacities       8   8   8   8   8   8
 *     indices          0   1   2   0   1   0
 *
 *     span             P          A                   B                    end
 *     spans            [0 3 0 0]  [3 2 3 1]           [5 1 3 3]            [6 0 0 5]
 *     ranges           [0 8 3]    [0 8 3] [8u 8 2]    [0 8 3] [16u 8 1]
 *     rangeRows        0          0       3           0       5
 *     kvBlocks         [0 8 3]    [8u 8 2]            [16u 8 1]
 *     trees            0                                                   3
 *
 * All tables are i32. Rows count the new tokens, which are computed now; tokens cached earlier appear only in `ranges`.
 * Only backward needs `rangeRows`, `kvBlocks` and `trees`. `Decoding.advance` moves `positions`, `indices`, `spans` and
 * `ranges` to the next token.
 */
export interface TokenLayout {
  /** Number of new tokens, T. */
  readonly tokens: number;
  /** [T] position of each token in its sequence, from 0. Read by `rotate`: the angle of its rotary embedding. */
  readonly positions: Buffer;
  /** [T] `BlockAddress.block` of each token's span, in elements. Read by `rotate`, which writes keys and values there. */
  readonly blockAddresses: Buffer;
  /** [T] capacity of that block, in tokens. Read by `rotate`, and by `Decoding.advance` to stop at a full block. */
  readonly capacities: Buffer;
  /** [T] index of each token in its block. Read by `rotate`. */
  readonly indices: Buffer;
  /**
   * [spanCount + 1, 4] per span: first row, rows, position of the first row, first range. A final entry ends the table,
   * so that a span's ranges end where the next span's begin. Read by `attention` and `attentionBackward`.
   */
  readonly spans: Buffer;
  readonly spanCount: number;
  /**
   * [ranges, 3] the context of each span, from the root down to the span itself: block address in elements, capacity,
   * and how many of its tokens are seen. Read by `attention` and `attentionBackward`.
   */
  readonly ranges: Buffer;
  /** [ranges] row of the first token in each range's block. Read by `attentionBackward`, which adds to gradients of k and v. */
  readonly rangeRows: Buffer;
  /** [kvBlockCount, 3] the blocks of the spans: address in elements, capacity, tokens. Read by the CPU's `attentionBackward`. */
  readonly kvBlocks: Buffer;
  readonly kvBlockCount: number;
  /**
   * [treeCount + 1] first span of each tree, then the number of spans. Read by the CPU's `attentionBackward`: one task
   * per tree.
   */
  readonly trees: Buffer;
  readonly treeCount: number;
  /** Longest context of any token, including itself. Determines the size of the CPU's rows of scores. */
  readonly maxContext: number;
  /** The device's table of prefixes that rows share, built by `Decoding.sharing`. Read by `rotateAttend`. */
  readonly sharing?: Buffer;
}
