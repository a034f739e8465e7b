// The decoder, forward and backward; each step is a kernel of the device. Names and shapes are those of
// lm/devices/device.ts; F is the width of the MLP. x is the residual stream: every sub-layer reads its norm and adds to
// it.
import type { Buffer, Device, HeadShape, Scale, TokenLayout, Weight } from "../devices/index.ts";
import { adapterBackward } from "./lora.ts";
import type { Layer, Model } from "./parameters.ts";

/** What a layer's forward pass saves for backward. */
interface SavedLayer {
  /** The residual stream before attention (x1) and before the MLP (x2); x2 has only the wanted rows. */
  readonly x1: Buffer;
  readonly x2: Buffer;
  /** Outputs of the norms, and 1/rms of their rows. */
  readonly h1: Buffer;
  readonly h2: Buffer;
  readonly rstd1: Buffer;
  readonly rstd2: Buffer;
  readonly qkv: Buffer;
  readonly q: Buffer;
  readonly headRstd: Buffer;
  readonly kvCache: Buffer;
  readonly attended: Buffer;
  /** The wanted rows of `attended`. */
  readonly attendedWanted: Buffer;
  readonly lse: Buffer;
  readonly gateUp: Buffer;
  readonly activated: Buffer;
}

/** A layer's activations, and the output of its MLP, which is added to the stream. */
interface LayerOutput {
  readonly saved: SavedLayer;
  readonly out: Buffer;
}

/** What `backward` needs; valid until the scope in which it was made ends. */
export interface Saved {
  readonly layout: TokenLayout;
  readonly ids: Buffer;
  /** Each layer's activations or, if they are recomputed, only the stream before it. */
  readonly layers: readonly (SavedLayer | { readonly x1: Buffer })[];
  readonly kvLength: number;
  readonly wanted: Rows | null;
  readonly xFinal: Buffer;
  readonly rstdFinal: Buffer;
}

/** A selection of rows by index, each at most once. */
export interface Rows {
  readonly indices: Buffer;
  readonly count: number;
}

export interface ForwardOptions {
  /**
   * Rows whose hidden states are wanted, in this order; after its attention, the last layer computes only these.
   * @default all
   */
  readonly wanted?: Rows | null;
  /**
   * Save only the stream between layers and recompute the rest in backward: takes a quarter more time and a fraction of
   * the memory. @default false
   */
  readonly recompute?: boolean;
}

/** Computes hidden states of all (or the wanted) tokens after the final norm, [T, D], and saves what backward needs. */
export function forward(
  model: Model,
  ids: Buffer,
  layout: TokenLayout,
  kvLength: number,
  { recompute = false, wanted = null }: ForwardOptions = {},
): { hidden: Buffer; saved: Saved } {
  const { device, config } = model;
  const T = layout.tokens;
  const D = config.hidden_size;
  let x = device.alloc("f32", T * D);
  device.embed(model.embedding, ids, x, T);
  let residual: Buffer | null = null;
  const layers: Saved["layers"][number][] = [];
  for (const [i, layer] of model.layers.entries()) {
    const rows = i === model.layers.length - 1 ? wanted : null;
    if (recompute) {
      layers.push({ x1: x });
      x = streamAfter(model, layer, x, layout, kvLength, rows);
      continue;
    }
    const kvCache = device.alloc(device.activations, kvLength);
    const output: LayerOutput = forwardLayer(model, layer, x, residual, layout, kvCache, rows);
    const { saved, out } = output;
    layers.push(saved);
    x = saved.x2;
    residual = out;
  }
  const R = wanted?.count ?? T;
  const xFinal = device.alloc("f32", R * D);
  const hidden = device.alloc(device.activations, R * D);
  const rstdFinal = device.alloc("f32", R);
  device.rmsNorm({
    x,
    residual,
    scale: model.norm,
    out: hidden,
    rstd: rstdFinal,
    rows: R,
    eps: config.rms_norm_eps,
    into: xFinal,
  });
  return { hidden, saved: { layout, ids, layers, kvLength, wanted, xFinal, rstdFinal } };
}

/** Computes the stream after a layer without saving its activations. */
function streamAfter(
  model: Model,
  layer: Layer,
  x: Buffer,
  layout: TokenLayout,
  kvLength: number,
  wanted: Rows | null,
): Buffer {
  const { device, config } = model;
  const after = device.alloc("f32", (wanted?.count ?? layout.tokens) * config.hidden_size);
  device.scope(() => {
    const kvCache = device.alloc(device.activations, kvLength);
    const { saved, out } = forwardLayer(model, layer, x, null, layout, kvCache, wanted);
    device.copy(saved.x2, after);
    device.addTo(out, after);
  });
  return after;
}

function forwardLayer(
  { device, config, rotary }: Model,
  layer: Layer,
  x: Buffer,
  residual: Buffer | null,
  layout: TokenLayout,
  kvCache: Buffer,
  wanted: Rows | null,
): LayerOutput {
  const T = layout.tokens;
  const R = wanted?.count ?? T;
  const { hidden_size: D, intermediate_size: F, rms_norm_eps: eps } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const make = (width: number, rows = T) => device.alloc(device.activations, rows * width);
  const floats = (width: number, rows = T) => device.alloc("f32", rows * width);

  const x1 = residual ? floats(D) : x;
  const [h1, rstd1] = [make(D), floats(1)];
  device.rmsNorm({ x, residual, scale: layer.attentionNorm, out: h1, rstd: rstd1, rows: T, eps, into: x1 });
  const [qkv, q, headRstd] = [make((H + 2 * G) * d), make(H * d), floats(H + G)];
  device.linear(layer.qkv, h1, qkv, T);
  device.rotate({
    qkv,
    norms: layer.headNorms,
    q,
    rstd: headRstd,
    kvCache,
    layout,
    rotary,
    shape,
    bias: layer.qkvBias,
  });
  const [attended, lse] = [make(H * d), floats(H)];
  device.attention({ q, kvCache, out: attended, lse, layout, shape });

  const attendedWanted = wanted ? gathered(device, attended, wanted, H * d) : attended;
  const attentionOut = make(D, R);
  device.linear(layer.output, attendedWanted, attentionOut, R);
  const x1Wanted = wanted ? gathered(device, x1, wanted, D) : x1;
  const x2 = floats(D, R);
  const [h2, rstd2] = [make(D, R), floats(1, R)];
  device.rmsNorm({
    x: x1Wanted,
    residual: attentionOut,
    scale: layer.mlpNorm,
    out: h2,
    rstd: rstd2,
    rows: R,
    eps,
    into: x2,
  });
  const [gateUp, activated] = [make(2 * F, R), make(F, R)];
  device.linear(layer.gateUp, h2, gateUp, R);
  device.swiGlu(gateUp, activated, R, F);
  const out = make(D, R);
  device.linear(layer.down, activated, out, R);
  const stream = { x1, x2, h1, h2, rstd1, rstd2 };
  return { saved: { ...stream, qkv, q, headRstd, kvCache, attended, attendedWanted, lse, gateUp, activated }, out };
}

/** Adds the gradient of every parameter, given the hidden states' gradient, which is overwritten. */
export function backward(model: Model, saved: Saved, dHidden: Buffer): void {
  const { device, config } = model;
  const { layout, wanted } = saved;
  device.scope(() => {
    let dx = device.alloc("f32", dHidden.length);
    device.fill(dx, 0);
    device.rmsNormBackward({
      x: saved.xFinal,
      scale: model.norm,
      rstd: saved.rstdFinal,
      dOut: dHidden,
      dx,
      rows: wanted?.count ?? layout.tokens,
    });
    for (const [i, layer] of [...model.layers.entries()].reverse()) {
      const rows = i === model.layers.length - 1 ? wanted : null;
      const before = rows ? device.alloc("f32", layout.tokens * config.hidden_size) : dx;
      device.scope(() =>
        backwardLayer(model, layer, savedLayer(model, layer, saved, i, rows), layout, dx, before, rows),
      );
      dx = before;
    }
    device.embedBackward(model.embedding, saved.ids, dx, layout.tokens);
  });
}

/** Returns a layer's saved activations, recomputing them if they were not saved. */
function savedLayer(
  model: Model,
  layer: Layer,
  { layers, layout, kvLength }: Saved,
  i: number,
  wanted: Rows | null,
): SavedLayer {
  const saved = layers[i]!;
  if ("qkv" in saved) return saved;
  const kvCache = model.device.alloc(model.device.activations, kvLength);
  return forwardLayer(model, layer, saved.x1, null, layout, kvCache, wanted).saved;
}

/**
 * Turns dx, the gradient of the stream after the layer, into the gradient before it: in place, or in `before` if dx has
 * only the wanted rows.
 */
function backwardLayer(
  model: Model,
  layer: Layer,
  saved: SavedLayer,
  layout: TokenLayout,
  dx: Buffer,
  before: Buffer,
  wanted: Rows | null,
): void {
  const { device, config, rotary } = model;
  const T = layout.tokens;
  const R = wanted?.count ?? T;
  const { hidden_size: D, intermediate_size: F } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const make = (width: number, rows = T) => device.alloc(device.activations, rows * width);

  const dActivated = make(F, R);
  matmulBackward(model, layer.down, saved.activated, dx, dActivated, R);
  const dGateUp = make(2 * F, R);
  device.swiGluBackward(saved.gateUp, dActivated, dGateUp, R, F);
  const dh2 = make(D, R);
  matmulBackward(model, layer.gateUp, saved.h2, dGateUp, dh2, R);
  device.rmsNormBackward({ x: saved.x2, scale: layer.mlpNorm, rstd: saved.rstd2, dOut: dh2, dx, rows: R });

  const dAttendedWanted = make(H * d, R);
  matmulBackward(model, layer.output, saved.attendedWanted, dx, dAttendedWanted, R);
  const dAttended = wanted ? make(H * d) : dAttendedWanted;
  if (wanted) {
    scattered(device, dAttendedWanted, wanted, dAttended, H * d);
    scattered(device, dx, wanted, before, D);
  }
  const dqkv = make((H + 2 * G) * d);
  device.fill(dqkv, 0);
  device.attentionBackward({
    q: saved.q,
    kvCache: saved.kvCache,
    out: saved.attended,
    dOut: dAttended,
    lse: saved.lse,
    dqkv,
    layout,
    shape,
  });
  device.rotateBackward({
    dqkv,
    qkv: saved.qkv,
    norms: layer.headNorms,
    rstd: saved.headRstd,
    layout,
    rotary,
    shape,
    bias: layer.qkvBias,
  });
  const dh1 = wanted ? make(D) : dh2;
  matmulBackward(model, layer.qkv, saved.h1, dqkv, dh1, T);
  device.rmsNormBackward({
    x: saved.x1,
    scale: layer.attentionNorm,
    rstd: saved.rstd1,
    dOut: dh1,
    dx: before,
    rows: T,
  });
}

/** Computes the gradients of a matmul's input and of its weight, or of the weight's adapter. */
function matmulBackward(model: Model, weight: Weight, x: Buffer, dy: Buffer, dx: Buffer, rows: number): void {
  model.device.linearBackward({ weight, x, dy, dx, rows });
  const adapter = model.lora?.adapters.get(weight);
  if (adapter) adapterBackward(model.device, adapter, x, dy, rows);
}

/**
 * Computes hidden states of all (or the wanted) tokens for inference. Writes keys and values to `kvCaches`, one per
 * layer; saves nothing else.
 */
export function infer(
  model: Model,
  ids: Buffer,
  layout: TokenLayout,
  kvCaches: readonly Buffer[],
  wanted: Rows | null = null,
): Buffer {
  const { device, config } = model;
  const T = layout.tokens;
  const { hidden_size: D, intermediate_size: F, rms_norm_eps: eps } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const hidden = device.alloc(device.activations, (wanted?.count ?? T) * D);
  device.scope(() => {
    const make = (width: number) => device.alloc(device.activations, T * width);
    const floats = (width: number) => device.alloc("f32", T * width);
    let [x, attended, rows] = [floats(D), make(H * d), T];
    const [h, added, rstd] = [make(D), make(D), floats(1)];
    const [qkv, q, headRstd] = [make((H + 2 * G) * d), make(H * d), floats(H + G)];
    const [gateUp, activated] = [make(2 * F), make(F)];
    device.embed(model.embedding, ids, x, T);
    let residual: Buffer | null = null; // not yet added to the stream
    const project = (weight: Weight, from: Buffer) => {
      const isAdded = device.linearAdd?.(weight, from, x, rows) ?? false;
      if (!isAdded) device.linear(weight, from, added, rows);
      residual = isAdded ? null : added;
    };
    const isNormed = (scale: Scale, weight: Weight, out: Buffer, isGated: boolean) =>
      !residual && device.linearNormed?.({ weight, x, scale, eps, out, rows, isGated });
    for (const [i, layer] of model.layers.entries()) {
      if (!isNormed(layer.attentionNorm, layer.qkv, qkv, false)) {
        device.rmsNorm({ x, residual, scale: layer.attentionNorm, out: h, rstd, rows: T, eps });
        device.linear(layer.qkv, h, qkv, T);
      }
      const { headNorms: norms, qkvBias: bias } = layer;
      const kvCache = kvCaches[i]!;
      const rotated = { qkv, norms, kvCache, layout, rotary: model.rotary, shape, bias };
      if (!device.rotateAttend?.({ ...rotated, out: attended })) {
        device.rotate({ ...rotated, q, rstd: headRstd });
        device.attention({ q, kvCache, out: attended, lse: null, layout, shape });
      }
      if (wanted && i === model.layers.length - 1) {
        [x, attended] = [gathered(device, x, wanted, D), gathered(device, attended, wanted, H * d)];
        rows = wanted.count;
      }
      project(layer.output, attended);
      if (!isNormed(layer.mlpNorm, layer.gateUp, activated, true)) {
        device.rmsNorm({ x, residual, scale: layer.mlpNorm, out: h, rstd, rows, eps });
        if (!device.linearSwiGlu?.(layer.gateUp, h, activated, rows)) {
          device.linear(layer.gateUp, h, gateUp, rows);
          device.swiGlu(gateUp, activated, rows, F);
        }
      }
      project(layer.down, activated);
    }
    device.rmsNorm({ x, residual, scale: model.norm, out: hidden, rstd, rows, eps });
  });
  return hidden;
}

/** The shape of attention. */
export function headShape(config: Model["config"]): HeadShape {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: headDim, rms_norm_eps: eps } = config;
  return { heads, kvHeads, headDim, eps };
}

/**
 * Whether it pays to compute only the wanted rows after the last attention: yes if a row is expensive, no on a GPU with
 * bf16.
 */
export function skipsRows({ activations }: Device): boolean {
  return activations === "f32";
}

/** Gathers the wanted rows of x. */
function gathered(device: Device, x: Buffer, { indices, count }: Rows, width: number): Buffer {
  const out = device.alloc(x.dtype, count * width);
  device.gather(x, indices, out, count, width);
  return out;
}

/** Scatters the wanted rows to their original positions, with zeros elsewhere. */
function scattered(device: Device, x: Buffer, { indices, count }: Rows, out: Buffer, width: number): void {
  device.fill(out, 0);
  device.scatterAdd(x, indices, out, count, width);
}
