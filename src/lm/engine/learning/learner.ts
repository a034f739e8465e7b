// Losses and gradients of a batch: pack, forward, loss on the host, backward; in parts that fit into memory.
import type { Buffer } from "../../devices/index.ts";
import { backward, forward, infer, type Kept, skipsRows } from "../../model/decoder.ts";
import { forestLayout } from "../../model/layout.ts";
import type { Model } from "../../model/parameters.ts";
import type { Datum, ForwardBackwardOptions, ForwardBackwardOutput } from "../engine.ts";
import { BUILT_IN_LOSSES } from "./cross-entropy.ts";
import {
  type BatchTotals,
  batchTotals,
  type LossFunction,
  type LossOutput,
  type LossSpec,
  type LossTable,
  lossNamed,
} from "./loss.ts";
import { type Packed, packContexts } from "./pack.ts";

/** Rows computed together at most, unless one sequence alone has more. Activations of a 4M-parameter model: about 0.5 GB. */
export const MAX_ROWS = 4_096;

/** Tokens that are asked about, one after the other: of which datum each is, and at which position. The lists may be longer than `count`. */
interface Items {
  readonly count: number;
  readonly datums: Int32Array;
  readonly positions: Int32Array;
}

export interface LearnOptions {
  /** Rows computed together at most, unless one sequence alone has more. @default MAX_ROWS */
  readonly maxRows?: number;
  /** Compute activations again instead of keeping them. @default false */
  readonly recompute?: boolean;
  /** Losses besides cross_entropy, by name. @default none */
  readonly losses?: LossTable;
}

/** Adds the gradient of a batch's loss to the model's. */
export function learn(
  model: Model,
  batch: readonly Datum[],
  { loss: spec, temperature = 1, totals: given = totalsOf(batch) }: ForwardBackwardOptions,
  { maxRows = MAX_ROWS, recompute = false, losses = {} }: LearnOptions = {},
): ForwardBackwardOutput {
  const loss = lossNamed(spec.type, { ...BUILT_IN_LOSSES, ...losses });
  const parts = partsOf(batch, maxRows);
  const totals = totalsByEntropy(model, batch, parts, given, { loss, spec, temperature });
  const logprobs = batch.map(({ tokens }) => new Float32Array(tokens.length));
  const outputs: LossOutput[] = [];
  let computed = 0;
  for (const sequences of parts) {
    const members = sequences.flat();
    const items = trainedItems(batch, members);
    computed += withLogprobs(
      model,
      batch,
      members,
      items,
      { temperature, recompute },
      ({ logp, entropy, backward }) => {
        keep(items, logp, logprobs);
        // Items stand in the order of their sequences, so each sequence is a stretch of them.
        let from = 0;
        const groups = sequences.map((sequence) => {
          const start = from;
          for (const datum of sequence) from += countOf(batch[datum]!);
          const optional = (key: "old_logp" | "ref_logp") =>
            sequence.every((datum) => batch[datum]![key] || countOf(batch[datum]!) === 0)
              ? picked(batch, items, key, start, from)
              : null;
          return {
            logp: logp.subarray(start, from),
            entropy: entropy.subarray(start, from),
            weights: picked(batch, items, "weights", start, from),
            advantage: advantageOf(batch, sequence, items, start, from),
            old_logp: optional("old_logp"),
            ref_logp: optional("ref_logp"),
          };
        });
        const output = loss.compute(groups, spec, totals);
        outputs.push(output);
        const [dLogp, dEntropy] = [joined(output.dLogp), joined(output.dEntropy)];
        // Without a gradient there is nothing to send back: groups whose episodes all did the same.
        if (dLogp.some((g) => g !== 0) || dEntropy.some((g) => g !== 0)) backward(dLogp, dEntropy);
      },
    );
  }
  return {
    loss: outputs.reduce((sum, { loss }) => sum + loss, 0),
    metrics: loss.mergeMetrics(outputs, spec),
    logprobs,
    computed_tokens: computed,
    tokens: batch.reduce((sum, { tokens }) => sum + tokens.length, 0),
  };
}

/** Totals of a loss that needs the entropies of the whole batch: a batch in parts is passed through once without gradients. */
function totalsByEntropy(
  model: Model,
  batch: readonly Datum[],
  parts: readonly number[][][],
  totals: BatchTotals,
  { loss, spec, temperature }: { loss: LossFunction; spec: LossSpec; temperature: number },
): BatchTotals {
  const withEntropies = parts.length > 1 ? loss.entropyTotals?.(spec, totals) : null;
  if (!withEntropies) return totals;
  const seen = parts.map((sequences) => {
    const members = sequences.flat();
    const items = trainedItems(batch, members);
    const weights = picked(batch, items, "weights", 0, items.count);
    let entropies = new Float32Array(0);
    withLogprobs(model, batch, members, items, { temperature, looks: true }, ({ entropy }) => {
      entropies = Float32Array.from(entropy);
    });
    return { entropy: entropies, weights };
  });
  return withEntropies(seen);
}

/** log π of every token of each datum; entry 0 is 0. */
export function evaluate(
  model: Model,
  batch: readonly Datum[],
  temperature: number,
  { maxRows = MAX_ROWS }: Pick<LearnOptions, "maxRows"> = {},
): Float32Array[] {
  const logprobs = batch.map(({ tokens }) => new Float32Array(tokens.length));
  for (const sequences of partsOf(batch, maxRows)) {
    const members = sequences.flat();
    const items = itemsWhere(batch, members, () => true);
    withLogprobs(model, batch, members, items, { temperature, looks: true }, ({ logp }) => keep(items, logp, logprobs));
  }
  return logprobs;
}

interface Computed {
  readonly logp: Float32Array;
  readonly entropy: Float32Array;
  backward(dLogp: Float32Array, dEntropy: Float32Array): void;
}

interface PassOptions {
  readonly temperature: number;
  readonly recompute?: boolean;
  /** There is no way back: nothing is kept for it. */
  readonly looks?: boolean;
}

/** Runs the model over some data and hands over log-probs and entropies of the items; gives the rows computed. */
function withLogprobs(
  model: Model,
  batch: readonly Datum[],
  members: readonly number[],
  items: Items,
  { temperature, recompute = false, looks = false }: PassOptions,
  use: (computed: Computed) => void,
): number {
  const { device, config, head } = model;
  const D = config.hidden_size;
  const N = items.count;
  const packed = packContexts(members.map((datum) => batch[datum]!.tokens));
  const places = new Int32Array(batch.length);
  members.forEach((datum, i) => {
    places[datum] = i;
  });
  if (N === 0) return 0;
  device.scope(() => {
    const put = (data: Int32Array | Float32Array): Buffer => {
      const buffer = device.alloc(data instanceof Int32Array ? "i32" : "f32", data.length);
      device.write(buffer, data);
      return buffer;
    };
    const floats = (length: number) => device.alloc("f32", length);
    const activations = (length: number) => device.alloc(device.activations, length);
    const shape = { kvHeads: config.num_key_value_heads, headDim: config.head_dim };
    const { layout, storeLength } = forestLayout(device, packed.runs, shape);
    const ids = put(idsOf(packed));
    // The hidden state before a token predicts it; a shared prompt's last one predicts the first token of each completion.
    const predicting = pickInts(items, (datum, position) => packed.rowOf(places[datum]!, position - 1));
    const wanted = skipsRows(device) ? distinct(predicting) : null;
    const read = wanted && { numbers: put(wanted.numbers), count: wanted.numbers.length };
    const pass = (): { hidden: Buffer; kept: Kept | null } => {
      if (!looks) return forward(model, ids, layout, storeLength, { recompute, wanted: read });
      const store = device.alloc(device.activations, storeLength); // the same for every layer: none is asked for again
      return {
        hidden: infer(
          model,
          ids,
          layout,
          model.layers.map(() => store),
          read,
        ),
        kept: null,
      };
    };
    const { hidden, kept } = pass();
    const rows = put(wanted ? predicting.map((row) => wanted.placeOf.get(row)!) : predicting);
    const targets = put(pickInts(items, (datum, position) => batch[datum]!.tokens[position]!));
    if (looks) {
      use(lookedAt(model, hidden, rows, targets, { temperature, count: N, slice: packed.rows }));
      return;
    }
    const x = activations(N * D);
    device.gather(hidden, rows, x, N, D);
    const out = { logp: floats(N), entropy: floats(N), lse: floats(N) };
    device.logProbs(head, x, targets, temperature, N, out);
    use({
      logp: device.read(out.logp) as Float32Array,
      entropy: device.read(out.entropy) as Float32Array,
      backward(dLogp, dEntropy) {
        const dx = activations(N * D);
        device.logProbsBackward(head, x, targets, temperature, N, out, put(dLogp), put(dEntropy), dx);
        const dHidden = activations((wanted ? wanted.numbers.length : layout.tokens) * D);
        device.fill(dHidden, 0);
        device.scatterAdd(dx, rows, dHidden, N, D);
        backward(model, kept!, dHidden);
      },
    });
  });
  return packed.rows;
}

/** Log-probs and entropies without a way back, slice by slice: a prompt that many contexts share has items in each of them. */
function lookedAt(
  { device, config, head }: Model,
  hidden: Buffer,
  rows: Buffer,
  targets: Buffer,
  { temperature, count, slice }: { temperature: number; count: number; slice: number },
): Computed {
  const seen = { logp: new Float32Array(count), entropy: new Float32Array(count) };
  for (let from = 0; from < count; from += slice) {
    const n = Math.min(slice, count - from);
    device.scope(() => {
      const floats = () => device.alloc("f32", n);
      const x = device.alloc(device.activations, n * config.hidden_size);
      const out = { logp: floats(), entropy: floats(), lse: floats() };
      device.gather(hidden, device.part(rows, from, n), x, n, config.hidden_size);
      device.logProbs(head, x, device.part(targets, from, n), temperature, n, out);
      seen.logp.set(device.read(out.logp) as Float32Array, from);
      seen.entropy.set(device.read(out.entropy) as Float32Array, from);
    });
  }
  return {
    ...seen,
    backward() {
      throw new Error("nothing was kept for a way back");
    },
  };
}

/** The rows that are read, each once, and where each of them comes among these. */
function distinct(rows: Int32Array): { readonly numbers: Int32Array; readonly placeOf: ReadonlyMap<number, number> } {
  const numbers = Int32Array.from(new Set(rows)).sort();
  return { numbers, placeOf: new Map(Array.from(numbers, (row, i) => [row, i])) };
}

/** Data of each sequence, in order of first appearance. */
function sequencesOf(batch: readonly Datum[]): number[][] {
  const byNumber = new Map<number | string, number[]>();
  batch.forEach(({ sequence }, i) => {
    const key = sequence ?? `alone ${i}`;
    const members = byNumber.get(key);
    if (members) members.push(i);
    else byNumber.set(key, [i]);
  });
  return [...byNumber.values()];
}

/** What the loss divides by when the batch is all there is. */
function totalsOf(batch: readonly Datum[]): BatchTotals {
  return batchTotals(sequencesOf(batch).map((members) => ({ weights: weightsOf(batch, members) })));
}

function weightsOf(batch: readonly Datum[], members: readonly number[]): number[] {
  const weights: number[] = [];
  for (const datum of members) {
    const own = batch[datum]!.weights;
    for (let i = 1; i < own.length; i++) weights.push(own[i]!);
  }
  return weights;
}

/** Trained tokens of a datum. */
function countOf({ weights }: Datum): number {
  let count = 0;
  for (let i = 1; i < weights.length; i++) if (weights[i] !== 0) count++;
  return count;
}

// Plain loops below: these run over every token of a batch, and a GPU waits for them.

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let from = 0;
  for (const part of parts) {
    all.set(part, from);
    from += part.length;
  }
  return all;
}

/** Tokens of some data that carry weight. */
function trainedItems(batch: readonly Datum[], members: readonly number[]): Items {
  return itemsWhere(batch, members, ({ weights }, position) => weights[position] !== 0);
}

/** Tokens of some data, all but the first ones, that are wanted. */
function itemsWhere(
  batch: readonly Datum[],
  members: readonly number[],
  isWanted: (datum: Datum, position: number) => boolean,
): Items {
  const most = members.reduce((sum, datum) => sum + batch[datum]!.tokens.length, 0);
  const [datums, positions] = [new Int32Array(most), new Int32Array(most)];
  let count = 0;
  for (const member of members) {
    const datum = batch[member]!;
    for (let position = 1; position < datum.tokens.length; position++) {
      if (!isWanted(datum, position)) continue;
      datums[count] = member;
      positions[count++] = position;
    }
  }
  return { count, datums, positions };
}

/** The advantage of a sequence: a number where all its data have the same one, else one for each item. */
function advantageOf(
  batch: readonly Datum[],
  sequence: readonly number[],
  { datums, positions }: Items,
  start: number,
  end: number,
): number | Float64Array {
  const { advantage: first = 0 } = batch[sequence[0]!]!;
  if (typeof first === "number" && sequence.every((datum) => Object.is(batch[datum]!.advantage ?? 0, first)))
    return first;
  const numbers = new Float64Array(end - start);
  for (let i = start; i < end; i++) {
    const { advantage = 0 } = batch[datums[i]!]!;
    numbers[i - start] = typeof advantage === "number" ? advantage : advantage[positions[i]!]!;
  }
  return numbers;
}

/** A number of each item of a stretch. */
function picked(
  batch: readonly Datum[],
  { datums, positions }: Items,
  key: "weights" | "old_logp" | "ref_logp",
  start: number,
  end: number,
): Float64Array {
  const numbers = new Float64Array(end - start);
  for (let i = start; i < end; i++) numbers[i - start] = batch[datums[i]!]![key]![positions[i]!]!;
  return numbers;
}

/** Puts log-probs of items where their tokens stand. */
function keep({ count, datums, positions }: Items, logp: Float32Array, logprobs: readonly Float32Array[]): void {
  for (let i = 0; i < count; i++) logprobs[datums[i]!]![positions[i]!] = logp[i]!;
}

function pickInts({ count, datums, positions }: Items, read: (datum: number, position: number) => number): Int32Array {
  const numbers = new Int32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = read(datums[i]!, positions[i]!);
  return numbers;
}

/** All tokens of the runs, one after the other. */
function idsOf({ runs, rows }: Packed): Int32Array {
  const ids = new Int32Array(rows);
  let row = 0;
  for (const { tokens } of runs) for (let i = 0; i < tokens.length; i++) ids[row++] = tokens[i]!;
  return ids;
}

/** Sequences in order, as many together as fit when packed. */
function partsOf(batch: readonly Datum[], maxRows: number): number[][][] {
  const parts: number[][][] = [];
  let part: number[][] = [];
  for (const sequence of sequencesOf(batch)) {
    const tried = [...part, sequence];
    const contexts = tried.flat().map((datum) => batch[datum]!.tokens);
    const mayFit = contexts.reduce((sum, { length }) => sum + length, 0) <= maxRows; // sharing only makes it less
    if (part.length > 0 && !mayFit && packContexts(contexts).rows > maxRows) {
      parts.push(part);
      part = [sequence];
    } else part = tried;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}
