// Computes losses and gradients of a batch: pack, forward, loss on the host, backward, in parts that fit in memory.
import type { Buffer } from "../../devices/index.ts";
import { backward, forward, infer, type Saved, skipsRows } from "../../model/decoder.ts";
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

/**
 * Maximum rows computed together, unless a single sequence has more. A 4M-parameter model then needs about 0.5 GB of
 * activations.
 */
export const MAX_ROWS = 4_096;

/** Tokens whose log-probs are computed, by datum and position. The arrays may be longer than `count`. */
interface Targets {
  readonly count: number;
  readonly datums: Int32Array;
  readonly positions: Int32Array;
}

export interface LearnOptions {
  /** Maximum rows computed together, unless a single sequence has more. @default MAX_ROWS */
  readonly maxRows?: number;
  /** Recompute activations in backward instead of saving them. @default false */
  readonly recompute?: boolean;
  /** Losses by name, besides cross_entropy. @default none */
  readonly losses?: LossTable;
}

/** Adds the gradient of a batch's loss to the model's gradient. */
export function learn(
  model: Model,
  batch: readonly Datum[],
  { loss: spec, temperature = 1, totals: given = totalsOf(batch) }: ForwardBackwardOptions,
  { maxRows = MAX_ROWS, recompute = false, losses = {} }: LearnOptions = {},
): ForwardBackwardOutput {
  const loss = lossNamed(spec.type, { ...BUILT_IN_LOSSES, ...losses });
  const parts = partsOf(batch, maxRows);
  const totals = totalsByEntropy(model, { batch, parts, totals: given, loss, spec, temperature });
  const logprobs = batch.map(({ tokens }) => new Float32Array(tokens.length));
  const outputs: LossOutput[] = [];
  let computed = 0;
  for (const sequences of parts) {
    const members = sequences.flat();
    const targets = trainedTargets(batch, members);
    computed += withLogprobs(
      model,
      { batch, members, targets, temperature, recompute },
      ({ logp, entropy, backward }) => {
        writeLogprobs(targets, logp, logprobs);
        // Targets are ordered by sequence, so each sequence is a contiguous range.
        let from = 0;
        const groups = sequences.map((sequence) => {
          const start = from;
          for (const datum of sequence) from += countOf(batch[datum]!);
          const optional = (key: "old_logp" | "ref_logp") =>
            sequence.every((datum) => batch[datum]![key] || countOf(batch[datum]!) === 0)
              ? picked(batch, targets, key, [start, from])
              : null;
          return {
            logp: logp.subarray(start, from),
            entropy: entropy.subarray(start, from),
            weights: picked(batch, targets, "weights", [start, from]),
            advantage: advantageOf(batch, sequence, targets, [start, from]),
            old_logp: optional("old_logp"),
            ref_logp: optional("ref_logp"),
          };
        });
        const output = loss.compute(groups, spec, totals);
        outputs.push(output);
        const [dLogp, dEntropy] = [joined(output.dLogp), joined(output.dEntropy)];
        // Skip backward if all gradients are 0, for example if all rewards of a group are equal.
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

interface EntropyPass {
  readonly batch: readonly Datum[];
  readonly parts: readonly number[][][];
  readonly totals: BatchTotals;
  readonly loss: LossFunction;
  readonly spec: LossSpec;
  readonly temperature: number;
}

/**
 * Totals for a loss that needs the entropies of the whole batch: a batch in parts is first run once without gradients.
 */
function totalsByEntropy(model: Model, { batch, parts, totals, loss, spec, temperature }: EntropyPass): BatchTotals {
  const withEntropies = parts.length > 1 ? loss.entropyTotals?.(spec, totals) : null;
  if (!withEntropies) return totals;
  const seen = parts.map((sequences) => {
    const members = sequences.flat();
    const targets = trainedTargets(batch, members);
    const weights = picked(batch, targets, "weights", [0, targets.count]);
    let entropies = new Float32Array(0);
    withLogprobs(model, { batch, members, targets, temperature, inference: true }, ({ entropy }) => {
      entropies = Float32Array.from(entropy);
    });
    return { entropy: entropies, weights };
  });
  return withEntropies(seen);
}

/** log π of every token of each datum; entry 0 is 0. */
export function computeLogprobs(
  model: Model,
  batch: readonly Datum[],
  temperature: number,
  { maxRows = MAX_ROWS }: Pick<LearnOptions, "maxRows"> = {},
): Float32Array[] {
  const logprobs = batch.map(({ tokens }) => new Float32Array(tokens.length));
  for (const sequences of partsOf(batch, maxRows)) {
    const members = sequences.flat();
    const targets = targetsWhere(batch, members, () => true);
    withLogprobs(model, { batch, members, targets, temperature, inference: true }, ({ logp }) =>
      writeLogprobs(targets, logp, logprobs),
    );
  }
  return logprobs;
}

interface Computed {
  readonly logp: Float32Array;
  readonly entropy: Float32Array;
  backward(dLogp: Float32Array, dEntropy: Float32Array): void;
}

interface PassOptions {
  readonly batch: readonly Datum[];
  /** Indices of the data to run. */
  readonly members: readonly number[];
  readonly targets: Targets;
  readonly temperature: number;
  readonly recompute?: boolean;
  /** No backward pass follows, so activations are not saved. */
  readonly inference?: boolean;
}

/**
 * Runs the model over some data and passes log-probs and entropies of the targets to `use`; returns the number of rows
 * computed.
 */
function withLogprobs(
  model: Model,
  { batch, members, targets, temperature, recompute = false, inference = false }: PassOptions,
  use: (computed: Computed) => void,
): number {
  const { device, config, head } = model;
  const D = config.hidden_size;
  const N = targets.count;
  const packed = packContexts(members.map((datum) => batch[datum]!.tokens));
  const contextOf = new Int32Array(batch.length);
  members.forEach((datum, i) => {
    contextOf[datum] = i;
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
    const { layout, kvLength } = forestLayout(device, packed.spans, shape);
    const ids = put(idsOf(packed));
    // A token is predicted from the hidden state before it; the last one of a shared prompt predicts the first token of
    // each completion.
    const predicting = pickInts(targets, (datum, position) => packed.rowOf(contextOf[datum]!, position - 1));
    const wanted = skipsRows(device) ? distinct(predicting) : null;
    const read = wanted && { indices: put(wanted.indices), count: wanted.indices.length };
    const pass = (): { hidden: Buffer; saved: Saved | null } => {
      if (!inference) return forward(model, ids, layout, kvLength, { recompute, wanted: read });
      // Shared by all layers, since no layer's cache is read again.
      const kvCache = device.alloc(device.activations, kvLength);
      return {
        hidden: infer(
          model,
          ids,
          layout,
          model.layers.map(() => kvCache),
          read,
        ),
        saved: null,
      };
    };
    const { hidden, saved } = pass();
    const rows = put(wanted ? predicting.map((row) => wanted.indexOf.get(row)!) : predicting);
    const targetIds = put(pickInts(targets, (datum, position) => batch[datum]!.tokens[position]!));
    if (inference) {
      use(inferredLogprobs(model, { hidden, rows, targetIds, temperature, count: N, slice: packed.rows }));
      return;
    }
    const x = activations(N * D);
    device.gather(hidden, rows, x, N, D);
    const out = { logp: floats(N), entropy: floats(N), lse: floats(N) };
    device.logProbs({ head, x, targets: targetIds, temperature, rows: N, out });
    use({
      logp: device.read(out.logp) as Float32Array,
      entropy: device.read(out.entropy) as Float32Array,
      backward(dLogp, dEntropy) {
        const dx = activations(N * D);
        device.logProbsBackward({
          head,
          x,
          targets: targetIds,
          temperature,
          rows: N,
          saved: out,
          dLogp: put(dLogp),
          dEntropy: put(dEntropy),
          dx,
        });
        const dHidden = activations((wanted ? wanted.indices.length : layout.tokens) * D);
        device.fill(dHidden, 0);
        device.scatterAdd(dx, rows, dHidden, N, D);
        backward(model, saved!, dHidden);
      },
    });
  });
  return packed.rows;
}

interface InferredTargets {
  readonly hidden: Buffer;
  /** Index of the row of `hidden` that predicts each target; `targetIds` holds the targets' tokens. */
  readonly rows: Buffer;
  readonly targetIds: Buffer;
  readonly temperature: number;
  readonly count: number;
  /** Maximum targets computed together. */
  readonly slice: number;
}

/**
 * Log-probs and entropies without gradients. There may be far more targets than rows, since a prompt shared by many
 * contexts is computed once but has targets in each of them; so they are computed in slices.
 */
function inferredLogprobs(
  { device, config, head }: Model,
  { hidden, rows, targetIds, temperature, count, slice }: InferredTargets,
): Computed {
  const all = { logp: new Float32Array(count), entropy: new Float32Array(count) };
  for (let from = 0; from < count; from += slice) {
    const n = Math.min(slice, count - from);
    device.scope(() => {
      const floats = () => device.alloc("f32", n);
      const x = device.alloc(device.activations, n * config.hidden_size);
      const out = { logp: floats(), entropy: floats(), lse: floats() };
      device.gather(hidden, device.part(rows, from, n), x, n, config.hidden_size);
      device.logProbs({ head, x, targets: device.part(targetIds, from, n), temperature, rows: n, out });
      all.logp.set(device.read(out.logp) as Float32Array, from);
      all.entropy.set(device.read(out.entropy) as Float32Array, from);
    });
  }
  return {
    ...all,
    backward() {
      throw new Error("inference saves nothing for backward");
    },
  };
}

/** The distinct rows, sorted, and a map from each to its index. */
function distinct(rows: Int32Array): { readonly indices: Int32Array; readonly indexOf: ReadonlyMap<number, number> } {
  const indices = Int32Array.from(new Set(rows)).sort();
  return { indices, indexOf: new Map(Array.from(indices, (row, i) => [row, i])) };
}

/** Indices of the data in each sequence, in order of first appearance. */
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

/** Totals of a batch that is not part of a larger one. */
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

/** Number of trained tokens in a datum. */
function countOf({ weights }: Datum): number {
  let count = 0;
  for (let i = 1; i < weights.length; i++) if (weights[i] !== 0) count++;
  return count;
}

// The functions below use plain loops: they visit every token of a batch while a GPU waits.

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let from = 0;
  for (const part of parts) {
    all.set(part, from);
    from += part.length;
  }
  return all;
}

/** Selects the tokens of some data whose weight is not 0. */
function trainedTargets(batch: readonly Datum[], members: readonly number[]): Targets {
  return targetsWhere(batch, members, ({ weights }, position) => weights[position] !== 0);
}

/** Selects tokens of some data by a predicate; a datum's first token has no prediction. */
function targetsWhere(
  batch: readonly Datum[],
  members: readonly number[],
  isWanted: (datum: Datum, position: number) => boolean,
): Targets {
  const max = members.reduce((sum, datum) => sum + batch[datum]!.tokens.length, 0);
  const [datums, positions] = [new Int32Array(max), new Int32Array(max)];
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

/** The advantage of a sequence: one number if all its data have the same, else one per target. */
function advantageOf(
  batch: readonly Datum[],
  sequence: readonly number[],
  { datums, positions }: Targets,
  [start, end]: readonly [start: number, end: number],
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

/** Collects a field of each target in a range. */
function picked(
  batch: readonly Datum[],
  { datums, positions }: Targets,
  key: "weights" | "old_logp" | "ref_logp",
  [start, end]: readonly [start: number, end: number],
): Float64Array {
  const numbers = new Float64Array(end - start);
  for (let i = start; i < end; i++) numbers[i - start] = batch[datums[i]!]![key]![positions[i]!]!;
  return numbers;
}

/** Writes the targets' log-probs to their positions in each datum. */
function writeLogprobs(
  { count, datums, positions }: Targets,
  logp: Float32Array,
  logprobs: readonly Float32Array[],
): void {
  for (let i = 0; i < count; i++) logprobs[datums[i]!]![positions[i]!] = logp[i]!;
}

function pickInts(
  { count, datums, positions }: Targets,
  read: (datum: number, position: number) => number,
): Int32Array {
  const numbers = new Int32Array(count);
  for (let i = 0; i < count; i++) numbers[i] = read(datums[i]!, positions[i]!);
  return numbers;
}

/** Concatenates the tokens of all spans. */
function idsOf({ spans, rows }: Packed): Int32Array {
  const ids = new Int32Array(rows);
  let row = 0;
  for (const { tokens } of spans) for (let i = 0; i < tokens.length; i++) ids[row++] = tokens[i]!;
  return ids;
}

/** Groups sequences, in order, into parts that fit `maxRows` when packed. */
function partsOf(batch: readonly Datum[], maxRows: number): number[][][] {
  const parts: number[][][] = [];
  let part: number[][] = [];
  for (const sequence of sequencesOf(batch)) {
    const tried = [...part, sequence];
    const contexts = tried.flat().map((datum) => batch[datum]!.tokens);
    const mayFit = contexts.reduce((sum, { length }) => sum + length, 0) <= maxRows; // sharing only reduces the rows
    if (part.length > 0 && !mayFit && packContexts(contexts).rows > maxRows) {
      parts.push(part);
      part = [sequence];
    } else part = tried;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}
