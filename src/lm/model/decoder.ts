// The decoder, forward and backward, each step a kernel of the device. Names and shapes as in lm/devices/device.ts; F is the width
// of the MLP. x is the residual stream: every sub-layer reads its norm and adds to it.
import type { Buffer, Device, HeadShape, Scale, TokenLayout, Weight } from "../devices/index.ts";
import { adapterBackward } from "./lora.ts";
import type { Layer, Model } from "./parameters.ts";

/** What a layer's backward pass needs of its forward pass. */
interface KeptLayer {
  /** The stream before attention, and before the MLP: from there on only the wanted rows, where not all are. */
  readonly x1: Buffer;
  readonly x2: Buffer;
  /** Norms' outputs and their 1/rms. */
  readonly h1: Buffer;
  readonly h2: Buffer;
  readonly rstd1: Buffer;
  readonly rstd2: Buffer;
  readonly qkv: Buffer;
  readonly q: Buffer;
  readonly headRstd: Buffer;
  readonly store: Buffer;
  readonly attended: Buffer;
  /** Its wanted rows. */
  readonly attendedWanted: Buffer;
  readonly lse: Buffer;
  readonly gateUp: Buffer;
  readonly activated: Buffer;
}

/** A layer's inside, and what it adds to the stream. */
interface Inside {
  readonly kept: KeptLayer;
  readonly out: Buffer;
}

/** What `backward` needs; lives until the scope it was made in ends. */
export interface Kept {
  readonly layout: TokenLayout;
  readonly ids: Buffer;
  /** Each layer's inside, or only the stream before it where the inside is to be computed again. */
  readonly layers: readonly (KeptLayer | { readonly x1: Buffer })[];
  readonly storeLength: number;
  readonly wanted: Rows | null;
  readonly xFinal: Buffer;
  readonly rstdFinal: Buffer;
}

/** Some of the rows, each once. */
export interface Rows {
  readonly numbers: Buffer;
  readonly count: number;
}

export interface ForwardOptions {
  /** Rows whose hidden states are wanted, in this order: behind its attention, the last layer computes no others. @default all */
  readonly wanted?: Rows | null;
  /** Keep only the stream between layers and compute the rest again on the way back: a fourth more time, a fraction of the memory. @default false */
  readonly recompute?: boolean;
}

/** Hidden states of all (or the wanted) tokens after the final norm, [T, D], keeping what the backward pass needs. */
export function forward(
  model: Model,
  ids: Buffer,
  layout: TokenLayout,
  storeLength: number,
  { recompute = false, wanted = null }: ForwardOptions = {},
): { hidden: Buffer; kept: Kept } {
  const { device, config } = model;
  const T = layout.tokens;
  const D = config.hidden_size;
  let x = device.alloc("f32", T * D);
  device.embed(model.embedding, ids, x, T);
  let residual: Buffer | null = null;
  const layers: Kept["layers"][number][] = [];
  for (const [i, layer] of model.layers.entries()) {
    const rows = i === model.layers.length - 1 ? wanted : null;
    if (recompute) {
      layers.push({ x1: x });
      x = streamBehind(model, layer, x, layout, storeLength, rows);
      continue;
    }
    const store = device.alloc(device.activations, storeLength);
    const inside: Inside = forwardLayer(model, layer, x, residual, layout, store, rows);
    const { kept, out } = inside;
    layers.push(kept);
    x = kept.x2;
    residual = out;
  }
  const R = wanted?.count ?? T;
  const xFinal = device.alloc("f32", R * D);
  const hidden = device.alloc(device.activations, R * D);
  const rstdFinal = device.alloc("f32", R);
  device.rmsNorm(x, residual, model.norm, hidden, rstdFinal, R, config.rms_norm_eps, xFinal);
  return { hidden, kept: { layout, ids, layers, storeLength, wanted, xFinal, rstdFinal } };
}

/** The stream behind a layer; everything inside it is given back. */
function streamBehind(
  model: Model,
  layer: Layer,
  x: Buffer,
  layout: TokenLayout,
  storeLength: number,
  wanted: Rows | null,
): Buffer {
  const { device, config } = model;
  const behind = device.alloc("f32", (wanted?.count ?? layout.tokens) * config.hidden_size);
  device.scope(() => {
    const store = device.alloc(device.activations, storeLength);
    const { kept, out } = forwardLayer(model, layer, x, null, layout, store, wanted);
    device.copy(kept.x2, behind);
    device.addTo(out, behind);
  });
  return behind;
}

function forwardLayer(
  { device, config, rotary }: Model,
  layer: Layer,
  x: Buffer,
  residual: Buffer | null,
  layout: TokenLayout,
  store: Buffer,
  wanted: Rows | null,
): Inside {
  const T = layout.tokens;
  const R = wanted?.count ?? T;
  const { hidden_size: D, intermediate_size: F, rms_norm_eps: eps } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const make = (width: number, rows = T) => device.alloc(device.activations, rows * width);
  const floats = (width: number, rows = T) => device.alloc("f32", rows * width);

  const x1 = residual ? floats(D) : x;
  const [h1, rstd1] = [make(D), floats(1)];
  device.rmsNorm(x, residual, layer.attentionNorm, h1, rstd1, T, eps, x1);
  const [qkv, q, headRstd] = [make((H + 2 * G) * d), make(H * d), floats(H + G)];
  device.linear(layer.qkv, h1, qkv, T);
  device.rotate(qkv, layer.headNorms, q, headRstd, store, layout, rotary, shape, layer.qkvBias);
  const [attended, lse] = [make(H * d), floats(H)];
  device.attention(q, store, attended, lse, layout, shape);

  const attendedWanted = wanted ? gathered(device, attended, wanted, H * d) : attended;
  const attentionOut = make(D, R);
  device.linear(layer.output, attendedWanted, attentionOut, R);
  const x1Wanted = wanted ? gathered(device, x1, wanted, D) : x1;
  const x2 = floats(D, R);
  const [h2, rstd2] = [make(D, R), floats(1, R)];
  device.rmsNorm(x1Wanted, attentionOut, layer.mlpNorm, h2, rstd2, R, eps, x2);
  const [gateUp, activated] = [make(2 * F, R), make(F, R)];
  device.linear(layer.gateUp, h2, gateUp, R);
  device.swiGlu(gateUp, activated, R, F);
  const out = make(D, R);
  device.linear(layer.down, activated, out, R);
  const stream = { x1, x2, h1, h2, rstd1, rstd2 };
  return { kept: { ...stream, qkv, q, headRstd, store, attended, attendedWanted, lse, gateUp, activated }, out };
}

/** Adds the gradient of every parameter, given that of the hidden states (which is overwritten). */
export function backward(model: Model, kept: Kept, dHidden: Buffer): void {
  const { device, config } = model;
  const { layout, wanted } = kept;
  device.scope(() => {
    let dx = device.alloc("f32", dHidden.length);
    device.fill(dx, 0);
    device.rmsNormBackward(kept.xFinal, model.norm, kept.rstdFinal, dHidden, dx, wanted?.count ?? layout.tokens);
    for (const [i, layer] of [...model.layers.entries()].reverse()) {
      const rows = i === model.layers.length - 1 ? wanted : null;
      const before = rows ? device.alloc("f32", layout.tokens * config.hidden_size) : dx;
      device.scope(() => backwardLayer(model, layer, insideOf(model, layer, kept, i, rows), layout, dx, before, rows));
      dx = before;
    }
    device.embedBackward(model.embedding, kept.ids, dx, layout.tokens);
  });
}

/** What was kept of a layer, or the same again. */
function insideOf(
  model: Model,
  layer: Layer,
  { layers, layout, storeLength }: Kept,
  i: number,
  wanted: Rows | null,
): KeptLayer {
  const kept = layers[i]!;
  if ("qkv" in kept) return kept;
  const store = model.device.alloc(model.device.activations, storeLength);
  return forwardLayer(model, layer, kept.x1, null, layout, store, wanted).kept;
}

/** From dx, the gradient of the stream behind the layer, that of the stream before it: in its place, or in `before` where dx has only the wanted rows. */
function backwardLayer(
  model: Model,
  layer: Layer,
  kept: KeptLayer,
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
  productBackward(model, layer.down, kept.activated, dx, dActivated, R);
  const dGateUp = make(2 * F, R);
  device.swiGluBackward(kept.gateUp, dActivated, dGateUp, R, F);
  const dh2 = make(D, R);
  productBackward(model, layer.gateUp, kept.h2, dGateUp, dh2, R);
  device.rmsNormBackward(kept.x2, layer.mlpNorm, kept.rstd2, dh2, dx, R);

  const dAttendedWanted = make(H * d, R);
  productBackward(model, layer.output, kept.attendedWanted, dx, dAttendedWanted, R);
  const dAttended = wanted ? make(H * d) : dAttendedWanted;
  if (wanted) {
    spread(device, dAttendedWanted, wanted, dAttended, H * d);
    spread(device, dx, wanted, before, D);
  }
  const dqkv = make((H + 2 * G) * d);
  device.fill(dqkv, 0);
  device.attentionBackward(kept.q, kept.store, kept.attended, dAttended, kept.lse, dqkv, layout, shape);
  device.rotateBackward(dqkv, kept.qkv, layer.headNorms, kept.headRstd, layout, rotary, shape, layer.qkvBias);
  const dh1 = wanted ? make(D) : dh2;
  productBackward(model, layer.qkv, kept.h1, dqkv, dh1, T);
  device.rmsNormBackward(kept.x1, layer.attentionNorm, kept.rstd1, dh1, before, T);
}

/** The gradient of a product's input, and of its weight or what adapts it. */
function productBackward(model: Model, weight: Weight, x: Buffer, dy: Buffer, dx: Buffer, rows: number): void {
  model.device.linearBackward(weight, x, dy, dx, rows);
  const adapter = model.lora?.adapters.get(weight);
  if (adapter) adapterBackward(model.device, adapter, x, dy, rows);
}

/** Hidden states only, of all (or the wanted) tokens: keys and values go into `stores`, one a layer, everything else is given back. */
export function infer(
  model: Model,
  ids: Buffer,
  layout: TokenLayout,
  stores: readonly Buffer[],
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
    let residual: Buffer | null = null; // what has not been added to the stream yet
    const project = (weight: Weight, from: Buffer) => {
      const isAdded = device.linearAdd?.(weight, from, x, rows) ?? false;
      if (!isAdded) device.linear(weight, from, added, rows);
      residual = isAdded ? null : added;
    };
    const isNormed = (scale: Scale, weight: Weight, out: Buffer, isGated: boolean) =>
      !residual && device.linearNormed?.(weight, x, scale, eps, out, rows, isGated);
    for (const [i, layer] of model.layers.entries()) {
      if (!isNormed(layer.attentionNorm, layer.qkv, qkv, false)) {
        device.rmsNorm(x, residual, layer.attentionNorm, h, rstd, T, eps);
        device.linear(layer.qkv, h, qkv, T);
      }
      const { headNorms, qkvBias } = layer;
      if (!device.rotateAttend?.(qkv, headNorms, stores[i]!, attended, layout, model.rotary, shape, qkvBias)) {
        device.rotate(qkv, headNorms, q, headRstd, stores[i]!, layout, model.rotary, shape, qkvBias);
        device.attention(q, stores[i]!, attended, null, layout, shape);
      }
      if (wanted && i === model.layers.length - 1) {
        [x, attended] = [gathered(device, x, wanted, D), gathered(device, attended, wanted, H * d)];
        rows = wanted.count;
      }
      project(layer.output, attended);
      if (!isNormed(layer.mlpNorm, layer.gateUp, activated, true)) {
        device.rmsNorm(x, residual, layer.mlpNorm, h, rstd, rows, eps);
        if (!device.linearSwiGlu?.(layer.gateUp, h, activated, rows)) {
          device.linear(layer.gateUp, h, gateUp, rows);
          device.swiGlu(gateUp, activated, rows, F);
        }
      }
      project(layer.down, activated);
    }
    device.rmsNorm(x, residual, model.norm, hidden, rstd, rows, eps);
  });
  return hidden;
}

/** The attention's shape. */
export function headShape(config: Model["config"]): HeadShape {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: headDim, rms_norm_eps: eps } = config;
  return { heads, kvHeads, headDim, eps };
}

/** Whether it pays to compute only the rows that are read behind the last attention: where a row is dear, not on a card with bf16. */
export function skipsRows({ activations }: Device): boolean {
  return activations === "f32";
}

/** The wanted rows of x. */
function gathered(device: Device, x: Buffer, { numbers, count }: Rows, width: number): Buffer {
  const out = device.alloc(x.dtype, count * width);
  device.gather(x, numbers, out, count, width);
  return out;
}

/** The wanted rows back in their places, zeros elsewhere. */
function spread(device: Device, x: Buffer, { numbers, count }: Rows, out: Buffer, width: number): void {
  device.fill(out, 0);
  device.scatterAdd(x, numbers, out, count, width);
}
