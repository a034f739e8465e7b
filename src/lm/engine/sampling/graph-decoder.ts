// Decoding on a device that can go from step to step by itself: one recording of a step is run again and again, its tables move
// on the device, and only the sampled tokens come back, a step behind. Rows that are done go on unheard until the batch is set
// up anew.
import type { Buffer, CapturedGraph, Decoding, TokenLayout } from "../../devices/index.ts";
import { headShape, infer } from "../../model/decoder.ts";
import type { NewTokens } from "../../model/layout.ts";
import type { Model } from "../../model/parameters.ts";

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
/** Steps a recording has: several where so many are wanted, since the card rests between two recordings. */
const STEPS = [4, 1] as const;
/** Steps after which what rows read together is shared out anew: contexts have grown. */
const SHARING_STEPS = 32;
const RANGES = 48; // a row on average: its ancestors and itself

/** Recorded steps for batches of one size. */
interface Recorded {
  readonly size: number;
  /** Everything the host writes, one after the other. */
  readonly tables: Buffer;
  readonly ints: Int32Array;
  readonly parts: ReadonlyMap<TableName, { readonly from: number; readonly length: number }>;
  readonly layout: TokenLayout;
  readonly logits: Buffer;
  /** Tokens and log-probs, step after step. */
  readonly out: Buffer;
  /** By the number of steps, made when first needed. */
  readonly recordings: Map<number, CapturedGraph>;
}

/** Steps under way. */
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
  #queued: Queued[] = [];
  /** Steps queued since the sharing table was filled. */
  #sinceShared = 0;
  /** What was read of the oldest, and how many of its steps have been taken. */
  #words: Int32Array | undefined;
  #taken = 0;

  constructor(model: Model, decoding: Decoding) {
    this.#model = model;
    this.#decoding = decoding;
  }

  /** Steps queued whose tokens have not been taken. */
  get ahead(): number {
    return this.#queued.reduce((sum, { steps }) => sum + steps, 0) - this.#taken;
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
      recorded = this.#prepare(size);
      this.#recorded.set(size, recorded);
    }
    fillTables(recorded, rows);
    this.#fillSharing(recorded);
    this.#sinceShared = 0;
    this.#model.device.write(recorded.tables, recorded.ints);
    this.#current = recorded;
  }

  /** Queues steps, at most so many in all: one recording runs while the host hands out the tokens of another. */
  queue(wanted: number): void {
    while (this.#queued.length < 2 && this.ahead < wanted) this.#queue(wanted - this.ahead);
  }

  /** Queues a step, or several where at least so many are wanted. */
  #queue(wanted: number): void {
    const recorded = this.#current!;
    const steps = STEPS.find((count) => count <= wanted)!;
    if (this.#decoding.sharing && this.#sinceShared >= SHARING_STEPS) this.#shareAnew(recorded);
    this.#sinceShared += steps;
    let recording = recorded.recordings.get(steps);
    if (!recording) {
      recording = this.#record(recorded, steps);
      recorded.recordings.set(steps, recording);
    }
    recording.launch();
    const { device } = this.#model;
    this.#queued.push({
      steps,
      read: this.#decoding.readLater(device.part(recorded.out, 0, 2 * recorded.size * steps)),
    });
  }

  /** Waits for the oldest step queued. */
  take(): DecodeStep {
    const { steps, read } = this.#queued[0]!;
    this.#words ??= read();
    const words = this.#words;
    const size = words.length / steps / 2;
    const at = 2 * size * this.#taken++;
    if (this.#taken === steps) {
      this.#queued.shift();
      this.#words = undefined;
      this.#taken = 0;
    }
    return {
      tokens: words.subarray(at, at + size),
      logp: new Float32Array(words.buffer, words.byteOffset + 4 * (at + size), size),
    };
  }

  /** Forgets steps that nobody will take. */
  drop(): void {
    this.#queued = [];
    this.#words = undefined;
    this.#taken = 0;
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

  /** The sharing table for where the steps queued so far will leave the batch; the other tables get there by themselves. */
  #shareAnew(recorded: Recorded): void {
    growTables(recorded, this.#sinceShared);
    this.#fillSharing(recorded);
    this.#sinceShared = 0;
    const { from, length } = recorded.parts.get("sharing")!;
    const { device } = this.#model;
    device.write(device.part(recorded.tables, from, length), recorded.ints.subarray(from, from + length));
  }

  #forget(): void {
    const { device } = this.#model;
    for (const { recordings, tables, out, logits } of this.#recorded.values()) {
      for (const recording of recordings.values()) recording.free();
      for (const buffer of [tables, out, logits]) device.free(buffer);
    }
    this.#recorded.clear();
    this.#current = undefined;
  }

  #prepare(size: number): Recorded {
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
      ...{ tokens: size, positions: part("positions"), blockAddresses: part("blocks"), capacities: part("capacities") },
      ...{ indices: part("indices"), spans: part("segments"), spanCount: size, ranges: part("ranges") },
      ...{
        rangeRows: part("ranges"),
        kvBlocks: part("ranges"),
        kvBlockCount: 0,
        trees: part("ranges"),
        treeCount: 0,
        maxContext: this.#model.rotary.length / config.head_dim,
        ...(this.#decoding.sharing ? { sharing: part("sharing") } : {}),
      },
    };
    return { size, tables, ints: new Int32Array(total), parts, layout, logits, out, recordings: new Map() };
  }

  #record({ size, tables, parts, layout, logits, out }: Recorded, steps: number): CapturedGraph {
    const { device, config, head } = this.#model;
    const floats = (buffer: Buffer): Buffer => ({ ...buffer, dtype: "f32" }); // the same bits
    const part = (name: TableName): Buffer => device.part(tables, parts.get(name)!.from, parts.get(name)!.length);
    const stride = device.outStride(head);
    return this.#decoding.capture(() => {
      const uniforms = device.alloc("f32", size);
      for (let step = 0; step < steps; step++) {
        this.#decoding.uniforms(part("seeds"), layout.positions, uniforms, size);
        const hidden = infer(this.#model, part("ids"), layout, this.#stores);
        device.linear(head, hidden, logits, size);
        const draw = { temperatures: floats(part("temperatures")), uniforms };
        const tokens = device.part(out, 2 * size * step, size);
        const logp = floats(device.part(out, 2 * size * step + size, size));
        device.sample(logits, config.vocab_size, stride, size, draw, { tokens, logp });
        this.#decoding.advance(tokens, part("ids"), layout);
      }
    });
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

/** What so many steps make of the host's copy: `Decoding.advance`, for all that sharing is made of. */
function growTables({ size, ints, parts }: Recorded, steps: number): void {
  const at = (name: TableName): number => parts.get(name)!.from;
  for (let t = 0; t < size; t++) {
    const room = ints[at("capacities") + t]! - 1 - ints[at("indices") + t]!;
    const grown = Math.max(0, Math.min(steps, room));
    ints[at("indices") + t]! += grown;
    ints[at("segments") + 4 * t + 2]! += grown;
    ints[at("ranges") + 3 * (ints[at("segments") + 4 * t + 7]! - 1) + 2]! += grown;
  }
}
