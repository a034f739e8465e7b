// Decoding on a device that can go from step to step by itself: one recording of a step is run again and again, its tables move
// on the device, and only the sampled tokens come back, a step behind. Rows that are done go on unheard until the batch is set
// up anew.
import type { Buffer, Decoding, Recording, TokenLayout } from "../devices/index.ts";
import { headShape, infer } from "../model/forward.ts";
import type { NewTokens } from "../model/layout.ts";
import type { Model } from "../model/params.ts";

/** One row of the batch: where it stands, and how its tokens are drawn. */
export interface DecodeRow {
  /** Its next token to compute. */
  readonly token: number;
  readonly place: NewTokens;
  readonly temperature: number;
  readonly seeds: readonly [number, number];
}

/** Tokens and log-probs of one step, row by row. */
export interface DecodeStep {
  readonly tokens: Int32Array;
  readonly logp: Float32Array;
}

/** Batches are rounded up to one of these; what is too many rows repeats the first. */
const SIZES = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256] as const;
export const MAX_DECODE_ROWS = SIZES.at(-1)!;
const RANGES = 48; // a row on average: its ancestors and itself; two more with every turn

/** A recorded step for batches of one size. */
interface Recorded {
  readonly size: number;
  /** Everything the host writes, one after the other. */
  readonly tables: Buffer;
  readonly ints: Int32Array;
  readonly parts: ReadonlyMap<TableName, { readonly from: number; readonly length: number }>;
  readonly out: Buffer;
  readonly recording: Recording;
}

type TableName =
  | "ids"
  | "positions"
  | "blocks"
  | "capacities"
  | "indices"
  | "segments"
  | "ranges"
  | "temperatures"
  | "seeds"
  | "sharing";

export class Decoder {
  readonly #model: Model;
  readonly #decoding: Decoding;
  readonly #recorded = new Map<number, Recorded>();
  #stores: readonly Buffer[] = [];
  #current: Recorded | undefined;
  #waiting: (() => Int32Array)[] = [];

  constructor(model: Model, decoding: Decoding) {
    this.#model = model;
    this.#decoding = decoding;
  }

  /** Steps queued whose tokens have not been taken. */
  get ahead(): number {
    return this.#waiting.length;
  }

  /** Rows the batch was rounded up to. */
  get size(): number {
    return this.#current?.size ?? 0;
  }

  /** Whether these rows fit a recording. */
  fits(rows: readonly DecodeRow[]): boolean {
    const size = SIZES.find((least) => least >= rows.length);
    if (size === undefined) return false;
    const spare = size - rows.length;
    const ranges = (row: DecodeRow) => row.place.ancestors.length + 1;
    const used = rows.reduce((sum, row) => sum + ranges(row), 0) + spare * ranges(rows[0]!);
    return used <= RANGES * size;
  }

  /** Sets up a batch; all steps queued before must have been taken. */
  start(rows: readonly DecodeRow[], stores: readonly Buffer[]): void {
    if (stores.length !== this.#stores.length || stores.some((store, i) => store !== this.#stores[i])) {
      this.#forget();
      this.#stores = [...stores];
    }
    const size = SIZES.find((least) => least >= rows.length)!;
    let recorded = this.#recorded.get(size);
    if (!recorded) {
      recorded = this.#record(size);
      this.#recorded.set(size, recorded);
    }
    fillTables(recorded, rows);
    this.#fillSharing(recorded);
    this.#model.device.write(recorded.tables, recorded.ints);
    this.#current = recorded;
  }

  /** Queues a step. */
  queue(): void {
    const { recording, out } = this.#current!;
    recording.run();
    this.#waiting.push(this.#decoding.readLater(out));
  }

  /** Waits for the oldest step queued. */
  take(): DecodeStep {
    const words = this.#waiting.shift()!();
    const half = words.length / 2;
    return { tokens: words.subarray(0, half), logp: new Float32Array(words.buffer, words.byteOffset + 4 * half, half) };
  }

  /** Forgets steps that nobody will take. */
  drop(): void {
    this.#waiting = [];
    this.#current = undefined;
  }

  close(): void {
    this.drop();
    this.#forget();
  }

  #fillSharing({ size, ints, parts }: Recorded): void {
    const part = (name: TableName) => {
      const { from, length } = parts.get(name)!;
      return ints.subarray(from, from + length);
    };
    const shape = headShape(this.#model.config);
    this.#decoding.sharing?.fill(part("sharing"), size, part("segments"), part("ranges"), shape);
  }

  #forget(): void {
    const { device } = this.#model;
    for (const { recording, tables, out } of this.#recorded.values()) {
      recording.free();
      for (const buffer of [tables, out]) device.free(buffer);
    }
    this.#recorded.clear();
    this.#current = undefined;
  }

  #record(size: number): Recorded {
    const { device, config, head } = this.#model;
    const lengths: readonly (readonly [TableName, number])[] = [
      ["ids", size],
      ["positions", size],
      ["blocks", size],
      ["capacities", size],
      ["indices", size],
      ["segments", 4 * (size + 1)],
      ["ranges", 3 * RANGES * size],
      ["temperatures", size],
      ["seeds", 2 * size],
      ["sharing", this.#decoding.sharing?.length(size) ?? 0],
    ];
    const parts = new Map<TableName, { from: number; length: number }>();
    let total = 0;
    for (const [name, length] of lengths) {
      parts.set(name, { from: total, length });
      total += (length + 3) & ~3;
    }
    const tables = device.alloc("i32", total);
    const out = device.alloc("i32", 2 * size);
    const part = (name: TableName): Buffer => device.part(tables, parts.get(name)!.from, parts.get(name)!.length);
    const floats = (buffer: Buffer): Buffer => ({ ...buffer, dtype: "f32" }); // the same bits
    const layout: TokenLayout = {
      ...{ tokens: size, positions: part("positions"), blocks: part("blocks"), capacities: part("capacities") },
      ...{ indices: part("indices"), segments: part("segments"), segmentCount: size, ranges: part("ranges") },
      ...{
        rangeRows: part("ranges"),
        runs: part("ranges"),
        runCount: 0,
        trees: part("ranges"),
        treeCount: 0,
        maxContext: this.#model.rotary.length / config.head_dim,
        ...(this.#decoding.sharing ? { sharing: part("sharing") } : {}),
      },
    };
    const [tokens, logp] = [device.part(out, 0, size), floats(device.part(out, size, size))];
    const work = () => {
      const uniforms = device.alloc("f32", size);
      this.#decoding.uniforms(part("seeds"), layout.positions, uniforms, size);
      const hidden = infer(this.#model, part("ids"), layout, this.#stores);
      const stride = device.outStride(head);
      const logits = device.alloc("f32", size * stride);
      device.linear(head, hidden, logits, size);
      const draw = { temperatures: floats(part("temperatures")), uniforms };
      device.sample(logits, config.vocab_size, stride, size, draw, { tokens, logp });
      this.#decoding.advance(tokens, part("ids"), layout);
    };
    return { size, tables, ints: new Int32Array(total), parts, out, recording: this.#decoding.record(work) };
  }
}

/** Writes the rows into the host's copy of the tables, the first one again where there are too few. */
function fillTables({ size, ints, parts }: Recorded, rows: readonly DecodeRow[]): void {
  const at = (name: TableName): number => parts.get(name)!.from;
  const floats = new Float32Array(ints.buffer);
  let range = 0;
  for (let t = 0; t < size; t++) {
    const { token, place, temperature, seeds } = rows[t] ?? rows[0]!;
    const { own, start, ancestors } = place;
    const before = ancestors.reduce((sum, ancestor) => sum + ancestor.tokens, 0);
    ints[at("ids") + t] = token;
    ints[at("positions") + t] = before + start;
    ints[at("blocks") + t] = own.block;
    ints[at("capacities") + t] = own.capacity;
    ints[at("indices") + t] = start;
    ints.set([t, 1, before + start, range], at("segments") + 4 * t);
    for (const { block, capacity, tokens } of ancestors)
      ints.set([block, capacity, tokens], at("ranges") + 3 * range++);
    ints.set([own.block, own.capacity, start + 1], at("ranges") + 3 * range++);
    floats[at("temperatures") + t] = temperature;
    ints.set(seeds, at("seeds") + 2 * t);
  }
  ints.set([size, 0, 0, range], at("segments") + 4 * size); // closes the table
}
