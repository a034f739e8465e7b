// The decoder, forward and backward, each step a kernel of the device. Names and shapes as in devices/device.ts; F is the width
// of the MLP. x is the residual stream: every sub-layer reads its norm and adds to it.
import type { Buffer, HeadShape, TokenLayout, Weight } from "../devices/index.ts";
import type { Layer, Model } from "./params.ts";

/** What a layer's backward pass needs of its forward pass. */
interface KeptLayer {
  /** The stream before attention, and before the MLP. */
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
  readonly lse: Buffer;
  readonly gateUp: Buffer;
  readonly activated: Buffer;
}

/** What `backward` needs; lives until the scope it was made in ends. */
export interface Kept {
  readonly layout: TokenLayout;
  readonly ids: Buffer;
  /** Each layer's inside, or only the stream before it where the inside is to be computed again. */
  readonly layers: readonly (KeptLayer | { readonly x1: Buffer })[];
  readonly storeLength: number;
  readonly xFinal: Buffer;
  readonly rstdFinal: Buffer;
}

export interface ForwardOptions {
  /** Keep only the stream between layers and compute the rest again on the way back: a fourth more time, a fraction of the memory. @default false */
  readonly recompute?: boolean;
}

/** Hidden states of all tokens after the final norm, [T, D], keeping what the backward pass needs. */
export function forward(
  model: Model,
  ids: Buffer,
  layout: TokenLayout,
  storeLength: number,
  { recompute = false }: ForwardOptions = {},
): { hidden: Buffer; kept: Kept } {
  const { device, config } = model;
  const T = layout.tokens;
  const D = config.hidden_size;
  let x = device.alloc("f32", T * D);
  device.embed(model.embedding, ids, x, T);
  let residual: Buffer | null = null;
  const layers: Kept["layers"][number][] = [];
  for (const layer of model.layers) {
    if (recompute) {
      layers.push({ x1: x });
      x = streamBehind(model, layer, x, layout, storeLength);
      continue;
    }
    const store = device.alloc(device.activations, storeLength);
    const { kept, out }: { kept: KeptLayer; out: Buffer } = forwardLayer(model, layer, x, residual, layout, store);
    layers.push(kept);
    x = kept.x2;
    residual = out;
  }
  const xFinal = device.alloc("f32", T * D);
  const hidden = device.alloc(device.activations, T * D);
  const rstdFinal = device.alloc("f32", T);
  device.rmsNorm(x, residual, model.norm, hidden, rstdFinal, T, config.rms_norm_eps, xFinal);
  return { hidden, kept: { layout, ids, layers, storeLength, xFinal, rstdFinal } };
}

/** The stream behind a layer; everything inside it is given back. */
function streamBehind(model: Model, layer: Layer, x: Buffer, layout: TokenLayout, storeLength: number): Buffer {
  const { device } = model;
  const behind = device.alloc("f32", x.length);
  device.scope(() => {
    const { kept, out } = forwardLayer(model, layer, x, null, layout, device.alloc(device.activations, storeLength));
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
): { kept: KeptLayer; out: Buffer } {
  const T = layout.tokens;
  const { hidden_size: D, intermediate_size: F, rms_norm_eps: eps } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const make = (width: number) => device.alloc(device.activations, T * width);
  const floats = (width: number) => device.alloc("f32", T * width);

  const x1 = residual ? floats(D) : x;
  const [h1, rstd1] = [make(D), floats(1)];
  device.rmsNorm(x, residual, layer.attentionNorm, h1, rstd1, T, eps, x1);
  const [qkv, q, headRstd] = [make((H + 2 * G) * d), make(H * d), floats(H + G)];
  device.linear(layer.qkv, h1, qkv, T);
  device.rotate(qkv, layer.headNorms, q, headRstd, store, layout, rotary, shape);
  const [attended, lse] = [make(H * d), floats(H)];
  device.attention(q, store, attended, lse, layout, shape);
  const attentionOut = make(D);
  device.linear(layer.output, attended, attentionOut, T);

  const x2 = floats(D);
  const [h2, rstd2] = [make(D), floats(1)];
  device.rmsNorm(x1, attentionOut, layer.mlpNorm, h2, rstd2, T, eps, x2);
  const [gateUp, activated] = [make(2 * F), make(F)];
  device.linear(layer.gateUp, h2, gateUp, T);
  device.swiGlu(gateUp, activated, T, F);
  const out = make(D);
  device.linear(layer.down, activated, out, T);
  const kept = { x1, x2, h1, h2, rstd1, rstd2, qkv, q, headRstd, store, attended, lse, gateUp, activated };
  return { kept, out };
}

/** Adds the gradient of every parameter, given that of the hidden states (which is overwritten). */
export function backward(model: Model, kept: Kept, dHidden: Buffer): void {
  const { device, config } = model;
  const T = kept.layout.tokens;
  device.scope(() => {
    const dx = device.alloc("f32", T * config.hidden_size);
    device.fill(dx, 0);
    device.rmsNormBackward(kept.xFinal, model.norm, kept.rstdFinal, dHidden, dx, T);
    for (const [i, layer] of [...model.layers.entries()].reverse()) {
      device.scope(() => backwardLayer(model, layer, insideOf(model, layer, kept, i), kept.layout, dx));
    }
    device.embedBackward(model.embedding, kept.ids, dx, T);
  });
}

/** What was kept of a layer, or the same again. */
function insideOf(model: Model, layer: Layer, { layers, layout, storeLength }: Kept, i: number): KeptLayer {
  const kept = layers[i]!;
  if ("qkv" in kept) return kept;
  return forwardLayer(model, layer, kept.x1, null, layout, model.device.alloc(model.device.activations, storeLength))
    .kept;
}

/** Turns dx, the gradient of the stream behind the layer, into that of the stream before it. */
function backwardLayer(
  { device, config, rotary }: Model,
  layer: Layer,
  kept: KeptLayer,
  layout: TokenLayout,
  dx: Buffer,
): void {
  const T = layout.tokens;
  const { hidden_size: D, intermediate_size: F } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const make = (width: number) => device.alloc(device.activations, T * width);

  const dActivated = make(F);
  device.linearBackward(layer.down, kept.activated, dx, dActivated, T);
  const dGateUp = make(2 * F);
  device.swiGluBackward(kept.gateUp, dActivated, dGateUp, T, F);
  const dh = make(D);
  device.linearBackward(layer.gateUp, kept.h2, dGateUp, dh, T);
  device.rmsNormBackward(kept.x2, layer.mlpNorm, kept.rstd2, dh, dx, T);

  const dAttended = make(H * d);
  device.linearBackward(layer.output, kept.attended, dx, dAttended, T);
  const dqkv = make((H + 2 * G) * d);
  device.fill(dqkv, 0);
  device.attentionBackward(kept.q, kept.store, kept.attended, dAttended, kept.lse, dqkv, layout, shape);
  device.rotateBackward(dqkv, kept.qkv, layer.headNorms, kept.headRstd, layout, rotary, shape);
  device.linearBackward(layer.qkv, kept.h1, dqkv, dh, T);
  device.rmsNormBackward(kept.x1, layer.attentionNorm, kept.rstd1, dh, dx, T);
}

/** Hidden states only, [T, D]: keys and values go into `stores`, one a layer, everything else is given back. */
export function infer(model: Model, ids: Buffer, layout: TokenLayout, stores: readonly Buffer[]): Buffer {
  const { device, config } = model;
  const T = layout.tokens;
  const { hidden_size: D, intermediate_size: F, rms_norm_eps: eps } = config;
  const shape = headShape(config);
  const { heads: H, kvHeads: G, headDim: d } = shape;
  const hidden = device.alloc(device.activations, T * D);
  device.scope(() => {
    const make = (width: number) => device.alloc(device.activations, T * width);
    const floats = (width: number) => device.alloc("f32", T * width);
    const [x, h, added, rstd] = [floats(D), make(D), make(D), floats(1)];
    const [qkv, q, attended] = [make((H + 2 * G) * d), make(H * d), make(H * d)];
    const headRstd = floats(H + G);
    const [gateUp, activated] = [make(2 * F), make(F)];
    device.embed(model.embedding, ids, x, T);
    let residual: Buffer | null = null; // what has not been added to the stream yet
    const project = (weight: Weight, from: Buffer) => {
      const isAdded = device.linearAdd?.(weight, from, x, T) ?? false;
      if (!isAdded) device.linear(weight, from, added, T);
      residual = isAdded ? null : added;
    };
    for (const [i, layer] of model.layers.entries()) {
      device.rmsNorm(x, residual, layer.attentionNorm, h, rstd, T, eps);
      device.linear(layer.qkv, h, qkv, T);
      device.rotate(qkv, layer.headNorms, q, headRstd, stores[i]!, layout, model.rotary, shape);
      device.attention(q, stores[i]!, attended, null, layout, shape);
      project(layer.output, attended);
      device.rmsNorm(x, residual, layer.mlpNorm, h, rstd, T, eps);
      if (!device.linearSwiGlu?.(layer.gateUp, h, activated, T)) {
        device.linear(layer.gateUp, h, gateUp, T);
        device.swiGlu(gateUp, activated, T, F);
      }
      project(layer.down, activated);
    }
    device.rmsNorm(x, residual, model.norm, hidden, rstd, T, eps);
  });
  return hidden;
}

/** The attention's shape. */
export function headShape(config: Model["config"]): HeadShape {
  const { num_attention_heads: heads, num_key_value_heads: kvHeads, head_dim: headDim, rms_norm_eps: eps } = config;
  return { heads, kvHeads, headDim, eps };
}
