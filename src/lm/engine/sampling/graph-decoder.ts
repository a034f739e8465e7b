// Decoding with a captured graph: one captured step is replayed; ids, positions and block tables advance on the device,
// and tokens are read one step late. Finished rows keep running, ignored, until the batch is rebuilt.
import type { Buffer, CapturedGraph, Decoding, TokenLayout } from "../../devices/index.ts";
import { headShape, infer } from "../../model/decoder.ts";
import type { NewTokens } from "../../model/layout.ts";
import type { Model } from "../../model/parameters.ts";

/** One row of the batch: its context and sampling settings. */
export interface DecodeRow {
  /** The next token to compute. */
  readonly token: number;
  readonly context: NewTokens;
  readonly temperature: number;
  readonly seeds: readonly [number, number];
}

/** The tokens and log-probs of one step, one per row. */
export interface DecodeStep {
  readonly tokens: Int32Array;
  readonly logp: Float32Array;
}

/** Batches are rounded up to one of these sizes; surplus rows repeat the first. */
export const DECODE_SIZES = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256] as const;
export const MAX_DECODE_ROWS = DECODE_SIZES.at(-1)!;
/** Steps per graph: several if possible, since the GPU idles between two launches. */
const STEPS = [4, 1] as const;
/** Number of steps after which the sharing table is rebuilt, because contexts have grown. */
const SHARING_STEPS = 32;
const RANGES = 48; // reserved ranges per row on average: one per ancestor, and its own

/** The graphs for batches of one size, and their buffers. */
interface Batch {
  readonly size: number;
  /** All tables that the host writes, concatenated; `ints` is the host's copy. */
  readonly tables: Buffer;
  readonly ints: Int32Array;
  readonly parts: ReadonlyMap<TableName, { readonly from: number; readonly length: number }>;
  readonly layout: TokenLayout;
  readonly logits: Buffer;
  /** Tokens and log-probs of each step. */
  readonly out: Buffer;
  /** Graphs by number of steps, captured when first needed. */
  readonly graphs: Map<number, CapturedGraph>;
}

/** Launched steps whose results have not been read. */
interface Queued {
  readonly steps: number;
  readonly read: () => Int32Array;
}

type TableName =
  | "ids"
  | "positions"
  | "blocks"
  | "capacities"
  | "indices"
  | "spans"
  | "ranges"
  | "temperatures"
  | "seeds"
  | "sharing";

export class Decoder {
  readonly #model: Model;
  readonly #decoding: Decoding;
  readonly #batches = new Map<number, Batch>();
  #kvCaches: readonly Buffer[] = [];
  #current: Batch | undefined;
  #queued: Queued[] = [];
  /** Number of steps queued since the sharing table was built. */
  #sinceShared = 0;
  /** Output of the oldest launch; `#taken` counts the steps already taken from it. */
  #output: Int32Array | undefined;
  #taken = 0;

  constructor(model: Model, decoding: Decoding) {
    this.#model = model;
    this.#decoding = decoding;
  }

  /** Number of queued steps whose tokens have not been taken. */
  get ahead(): number {
    return this.#queued.reduce((sum, { steps }) => sum + steps, 0) - this.#taken;
  }

  /** Number of rows that the batch was rounded up to. */
  get size(): number {
    return this.#current?.size ?? 0;
  }

  /** Whether these rows fit the tables of a graph. */
  fits(rows: readonly DecodeRow[]): boolean {
    const size = DECODE_SIZES.find((most) => most >= rows.length);
    if (size === undefined) return false;
    const spare = size - rows.length;
    const ranges = (row: DecodeRow) => row.context.ancestors.length + 1;
    const used = rows.reduce((sum, row) => sum + ranges(row), 0) + spare * ranges(rows[0]!);
    return used <= RANGES * size;
  }

  /** Starts a batch; all steps queued earlier must have been taken. */
  start(rows: readonly DecodeRow[], kvCaches: readonly Buffer[]): void {
    if (kvCaches.length !== this.#kvCaches.length || kvCaches.some((kvCache, i) => kvCache !== this.#kvCaches[i])) {
      this.#freeBatches(); // graphs hold the addresses of the old caches
      this.#kvCaches = [...kvCaches];
    }
    const size = DECODE_SIZES.find((most) => most >= rows.length)!;
    let batch = this.#batches.get(size);
    if (!batch) {
      batch = this.#allocate(size);
      this.#batches.set(size, batch);
    }
    fillTables(batch, rows);
    this.#fillSharing(batch);
    this.#sinceShared = 0;
    this.#model.device.write(batch.tables, batch.ints);
    this.#current = batch;
  }

  /** Queues up to `wanted` steps in two launches, so that one runs while the host handles the other's tokens. */
  queue(wanted: number): void {
    while (this.#queued.length < 2 && this.ahead < wanted) this.#launch(wanted - this.ahead);
  }

  /** Launches a graph with as many steps as fit in `wanted`. */
  #launch(wanted: number): void {
    const batch = this.#current!;
    const steps = STEPS.find((count) => count <= wanted)!;
    if (this.#decoding.sharing && this.#sinceShared >= SHARING_STEPS) this.#updateSharing(batch);
    this.#sinceShared += steps;
    let graph = batch.graphs.get(steps);
    if (!graph) {
      graph = this.#capture(batch, steps);
      batch.graphs.set(steps, graph);
    }
    graph.launch();
    const { device } = this.#model;
    this.#queued.push({
      steps,
      read: this.#decoding.readLater(device.part(batch.out, 0, 2 * batch.size * steps)),
    });
  }

  /** Waits for the oldest queued step and returns it. */
  take(): DecodeStep {
    const { steps, read } = this.#queued[0]!;
    this.#output ??= read();
    const output = this.#output;
    const size = output.length / steps / 2;
    const at = 2 * size * this.#taken++;
    if (this.#taken === steps) {
      this.#queued.shift();
      this.#output = undefined;
      this.#taken = 0;
    }
    return {
      tokens: output.subarray(at, at + size),
      logp: new Float32Array(output.buffer, output.byteOffset + 4 * (at + size), size),
    };
  }

  /** Discards queued steps. */
  drop(): void {
    this.#queued = [];
    this.#output = undefined;
    this.#taken = 0;
    this.#current = undefined;
  }

  close(): void {
    this.drop();
    this.#freeBatches();
  }

  #fillSharing({ size, ints, parts }: Batch): void {
    const part = (name: TableName) => {
      const { from, length } = parts.get(name)!;
      return ints.subarray(from, from + length);
    };
    const shape = headShape(this.#model.config);
    this.#decoding.sharing?.fill(part("sharing"), size, part("spans"), part("ranges"), shape);
  }

  /** Rebuilds the sharing table for the state after the queued steps; the device advances the other tables itself. */
  #updateSharing(batch: Batch): void {
    growTables(batch, this.#sinceShared);
    this.#fillSharing(batch);
    this.#sinceShared = 0;
    const { from, length } = batch.parts.get("sharing")!;
    const { device } = this.#model;
    device.write(device.part(batch.tables, from, length), batch.ints.subarray(from, from + length));
  }

  #freeBatches(): void {
    const { device } = this.#model;
    for (const { graphs, tables, out, logits } of this.#batches.values()) {
      for (const graph of graphs.values()) graph.free();
      for (const buffer of [tables, out, logits]) device.free(buffer);
    }
    this.#batches.clear();
    this.#current = undefined;
  }

  #allocate(size: number): Batch {
    const { device, config, head } = this.#model;
    const lengths: readonly (readonly [TableName, number])[] = [
      ["ids", size],
      ["positions", size],
      ["blocks", size],
      ["capacities", size],
      ["indices", size],
      ["spans", 4 * (size + 1)],
      ["ranges", 3 * RANGES * size],
      ["temperatures", size],
      ["seeds", 2 * size],
      ["sharing", this.#decoding.sharing?.length(size, headShape(config)) ?? 0],
    ];
    const parts = new Map<TableName, { from: number; length: number }>();
    let total = 0;
    for (const [name, length] of lengths) {
      parts.set(name, { from: total, length });
      total += (length + 3) & ~3;
    }
    const tables = device.alloc("i32", total);
    const out = device.alloc("i32", 2 * size * STEPS[0]);
    const logits = device.alloc("f32", size * device.outStride(head));
    const part = (name: TableName): Buffer => device.part(tables, parts.get(name)!.from, parts.get(name)!.length);
    const layout: TokenLayout = {
      tokens: size,
      positions: part("positions"),
      blockAddresses: part("blocks"),
      capacities: part("capacities"),
      indices: part("indices"),
      spans: part("spans"),
      spanCount: size,
      ranges: part("ranges"),
      // Only the backward pass reads these.
      rangeRows: part("ranges"),
      kvBlocks: part("ranges"),
      kvBlockCount: 0,
      trees: part("ranges"),
      treeCount: 0,
      maxContext: this.#model.rotary.length / config.head_dim,
      ...(this.#decoding.sharing ? { sharing: part("sharing") } : {}),
    };
    return { size, tables, ints: new Int32Array(total), parts, layout, logits, out, graphs: new Map() };
  }

  #capture({ size, tables, parts, layout, logits, out }: Batch, steps: number): CapturedGraph {
    const { device, config, head } = this.#model;
    const floats = (buffer: Buffer): Buffer => ({ ...buffer, dtype: "f32" }); // reinterprets the same bits
    const part = (name: TableName): Buffer => device.part(tables, parts.get(name)!.from, parts.get(name)!.length);
    const stride = device.outStride(head);
    return this.#decoding.capture(() => {
      const uniforms = device.alloc("f32", size);
      for (let step = 0; step < steps; step++) {
        this.#decoding.uniforms(part("seeds"), layout.positions, uniforms, size);
        const hidden = infer(this.#model, part("ids"), layout, this.#kvCaches);
        device.linear(head, hidden, logits, size);
        const draw = { temperatures: floats(part("temperatures")), uniforms };
        const tokens = device.part(out, 2 * size * step, size);
        const logp = floats(device.part(out, 2 * size * step + size, size));
        device.sample({ logits, vocabulary: config.vocab_size, stride, rows: size, draw, out: { tokens, logp } });
        this.#decoding.advance(tokens, part("ids"), layout);
      }
    });
  }
}

/** Writes the rows into the host's copy of the tables; surplus rows repeat the first. */
function fillTables({ size, ints, parts }: Batch, rows: readonly DecodeRow[]): void {
  const at = (name: TableName): number => parts.get(name)!.from;
  const floats = new Float32Array(ints.buffer);
  let range = 0;
  for (let t = 0; t < size; t++) {
    const { token, context, temperature, seeds } = rows[t] ?? rows[0]!;
    const { own, start, ancestors } = context;
    const before = ancestors.reduce((sum, ancestor) => sum + ancestor.tokens, 0);
    ints[at("ids") + t] = token;
    ints[at("positions") + t] = before + start;
    ints[at("blocks") + t] = own.block;
    ints[at("capacities") + t] = own.capacity;
    ints[at("indices") + t] = start;
    ints.set([t, 1, before + start, range], at("spans") + 4 * t);
    for (const { block, capacity, tokens } of ancestors)
      ints.set([block, capacity, tokens], at("ranges") + 3 * range++);
    ints.set([own.block, own.capacity, start + 1], at("ranges") + 3 * range++);
    floats[at("temperatures") + t] = temperature;
    ints.set(seeds, at("seeds") + 2 * t);
  }
  ints.set([size, 0, 0, range], at("spans") + 4 * size); // the final entry, which ends the table
}

/**
 * Advances the host's copy by some steps, as `Decoding.advance` does on the device; only the tables from which sharing
 * is built.
 */
function growTables({ size, ints, parts }: Batch, steps: number): void {
  const at = (name: TableName): number => parts.get(name)!.from;
  for (let t = 0; t < size; t++) {
    const room = ints[at("capacities") + t]! - 1 - ints[at("indices") + t]!;
    const grown = Math.max(0, Math.min(steps, room));
    ints[at("indices") + t]! += grown;
    ints[at("spans") + 4 * t + 2]! += grown;
    ints[at("ranges") + 3 * (ints[at("spans") + 4 * t + 7]! - 1) + 2]! += grown;
  }
}
