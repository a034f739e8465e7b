// A model's parameters on a device: one flat buffer of values, one of gradients, and named views of them. A layer's q,
// k and v are adjacent, as are gate and up, so that each group is one matmul; files use the Hugging Face names.

import { ModelLoadError } from "../../errors.ts";
import type { Buffer, Device, Scale, Weight } from "../devices/index.ts";
import { inverseFrequencies, type ModelConfig } from "./config.ts";
import { freeLora, type Lora } from "./lora.ts";

export interface Layer {
  readonly attentionNorm: Scale;
  /** [(H + 2G)·d, D]. */
  readonly qkv: Weight;
  /** [(H + 2G)·d], added after the matmul with `qkv`; only in Qwen2. */
  readonly qkvBias: Scale | null;
  /** Norms of each head, applied before rotary embedding; only in Qwen3. */
  readonly headNorms: { readonly q: Scale; readonly k: Scale } | null;
  readonly output: Weight;
  readonly mlpNorm: Scale;
  /** [2F, D]. */
  readonly gateUp: Weight;
  readonly down: Weight;
}

/** A tensor of a model file and its buffers. */
export interface TensorSlot {
  readonly name: string;
  readonly shape: readonly number[];
  readonly value: Buffer;
  readonly grad: Buffer | null;
}

export interface Model {
  readonly config: ModelConfig;
  readonly device: Device;
  readonly embedding: Weight;
  readonly layers: readonly Layer[];
  readonly norm: Scale;
  /** The same weight as `embedding` if the two are tied. */
  readonly head: Weight;
  readonly values: Buffer;
  readonly grads: Buffer | null;
  /** Norms and biases, which stay f32 even if the matrices are bf16. */
  readonly scales: Buffer | null;
  /** cos and sin of every position, [positions, d]. */
  readonly rotary: Buffer;
  readonly tensors: readonly TensorSlot[];
  /** Adapters that are trained instead of the parameters, which are then frozen. */
  readonly lora: Lora | null;
}

export interface ModelOptions {
  /** Whether to allocate gradients. */
  readonly trains: boolean;
  /** Storage type of matrices; bf16 only if they are frozen and the device computes with it. @default "f32" */
  readonly weights?: "f32" | "bf16";
}

/** What an optimizer updates: values, gradients, and the ranges whose values are `factor` times the parameters. */
export interface Trained {
  readonly values: Buffer;
  readonly grads: Buffer;
  readonly ranges: readonly { readonly from: number; readonly length: number; readonly factor: number }[];
}

/** What is trained: the adapters if there are any, else the parameters; null for a model that only samples. */
export function trainedOf({ values, grads, lora }: Model): Trained | null {
  if (lora) return lora.trained;
  return grads && { values, grads, ranges: [{ from: 0, length: values.length, factor: 1 }] };
}

/** Each part is padded to a multiple of this many elements, so that it starts on a vector boundary. */
const ALIGN = 16;

/** Creates a model whose values are all zero. */
export function createModel(device: Device, config: ModelConfig, { trains, weights = "f32" }: ModelOptions): Model {
  checkSizes(config);
  const { hidden_size: D, intermediate_size: F, head_dim: d, vocab_size: V } = config;
  const [H, G] = [config.num_attention_heads, config.num_key_value_heads];
  const plans: Plan[] = [];
  const reserve = (length: number, isScale = false): Plan => {
    const plan = { length, isSeparate: isScale && weights !== "f32" };
    plans.push(plan);
    return plan;
  };
  // The first pass lists the parts in order, the second assigns their offsets.
  const planned = {
    embedding: reserve(V * D),
    head: config.tie_word_embeddings ? null : reserve(V * D),
    layers: Array.from({ length: config.num_hidden_layers }, () => ({
      qkv: reserve((H + 2 * G) * d * D),
      output: reserve(D * H * d),
      gateUp: reserve(2 * F * D),
      down: reserve(D * F),
      attentionNorm: reserve(D, true),
      mlpNorm: reserve(D, true),
      qkvBias: config.qkv_bias ? reserve((H + 2 * G) * d, true) : null,
      q: config.qk_norm ? reserve(d, true) : null,
      k: config.qk_norm ? reserve(d, true) : null,
    })),
    norm: reserve(D, true),
  };
  const offsets = new Map<Plan, number>();
  let [total, separate] = [0, 0];
  for (const plan of plans) {
    offsets.set(plan, plan.isSeparate ? separate : total);
    const size = Math.ceil(plan.length / ALIGN) * ALIGN;
    if (plan.isSeparate) separate += size;
    else total += size;
  }
  const values = device.alloc(weights, total);
  const scales = separate > 0 ? device.alloc("f32", separate) : null;
  const grads = trains ? device.alloc("f32", total) : null;
  for (const buffer of [values, scales, grads]) if (buffer) device.fill(buffer, 0);

  const buffers = (plan: Plan) => ({
    value: device.part(plan.isSeparate ? scales! : values, offsets.get(plan)!, plan.length),
    grad: grads && device.part(grads, offsets.get(plan)!, plan.length),
  });
  const weight = (name: string, plan: Plan, rows: number, columns: number): Weight => ({
    name,
    rows,
    columns,
    ...buffers(plan),
  });
  const scale = (name: string, plan: Plan): Scale => ({ name, ...buffers(plan) });

  const embedding = weight("model.embed_tokens.weight", planned.embedding, V, D);
  const layers = planned.layers.map((plan, i): Layer => {
    const name = (part: string) => `model.layers.${i}.${part}.weight`;
    return {
      attentionNorm: scale(name("input_layernorm"), plan.attentionNorm),
      qkv: weight(name("self_attn.qkv"), plan.qkv, (H + 2 * G) * d, D),
      qkvBias: plan.qkvBias && scale(`model.layers.${i}.self_attn.qkv.bias`, plan.qkvBias),
      headNorms:
        plan.q && plan.k
          ? { q: scale(name("self_attn.q_norm"), plan.q), k: scale(name("self_attn.k_norm"), plan.k) }
          : null,
      output: weight(name("self_attn.o_proj"), plan.output, D, H * d),
      mlpNorm: scale(name("post_attention_layernorm"), plan.mlpNorm),
      gateUp: weight(name("mlp.gate_up"), plan.gateUp, 2 * F, D),
      down: weight(name("mlp.down_proj"), plan.down, D, F),
    };
  });
  const norm = scale("model.norm.weight", planned.norm);
  const head = planned.head ? weight("lm_head.weight", planned.head, V, D) : embedding;
  const parts = { embedding, layers, norm, head };
  return {
    config,
    device,
    ...parts,
    values,
    grads,
    scales,
    rotary: rotaryTable(device, config),
    tensors: slots(device, config, parts),
    lora: null,
  };
}

/** A part of the parameters that has no offset yet. */
interface Plan {
  readonly length: number;
  readonly isSeparate: boolean;
}

/** Checks sizes: kernels process rows in vectors of eight; only the vocabulary may have any size. */
function checkSizes(config: ModelConfig): void {
  for (const key of ["hidden_size", "intermediate_size", "head_dim"] as const) {
    if (config[key] % 8 === 0) continue;
    const remedy = "use a model whose sizes are";
    throw new ModelLoadError({ what: `${key} is not a multiple of 8`, value: config[key], remedy });
  }
}

/** Tells the device that the parameters have changed. */
export function parametersChanged(model: Model): void {
  for (const weight of weightsOf(model)) model.device.changed(weight);
}

/** Frees the model's memory. */
export function freeModel(model: Model): void {
  const { device, values, grads, scales, rotary, lora } = model;
  for (const weight of weightsOf(model)) device.forget(weight);
  if (lora) freeLora(device, lora);
  for (const buffer of [values, grads, scales, rotary]) if (buffer) device.free(buffer);
}

/** Every matrix; tied ones appear once. */
function weightsOf({ embedding, head, layers }: Model): Set<Weight> {
  return new Set([embedding, head, ...layers.flatMap(({ qkv, output, gateUp, down }) => [qkv, output, gateUp, down])]);
}

/** Number of parameters; tied ones count once. */
export function parameterCount({ tensors }: Pick<Model, "tensors">): number {
  return tensors.reduce((sum, { value }) => sum + value.length, 0);
}

type Parts = Pick<Model, "embedding" | "layers" | "norm" | "head">;

/** Every tensor by its name in a file. */
function slots(device: Device, config: ModelConfig, { embedding, layers, norm, head }: Parts): TensorSlot[] {
  const { head_dim: d, num_attention_heads: H, num_key_value_heads: G, intermediate_size: F } = config;
  const whole = ({ name, rows, columns, value, grad }: Weight): TensorSlot => ({
    name,
    shape: [rows, columns],
    value,
    grad,
  });
  const vector = ({ name, value, grad }: Scale): TensorSlot => ({ name, shape: [value.length], value, grad });
  const rowsOf = ({ columns, value, grad }: Weight, name: string, first: number, rows: number): TensorSlot => {
    const cut = (buffer: Buffer) => device.part(buffer, first * columns, rows * columns);
    return { name, shape: [rows, columns], value: cut(value), grad: grad && cut(grad) };
  };
  const entriesOf = ({ value, grad }: Scale, name: string, first: number, length: number): TensorSlot => {
    const cut = (buffer: Buffer) => device.part(buffer, first, length);
    return { name, shape: [length], value: cut(value), grad: grad && cut(grad) };
  };
  return [
    whole(embedding),
    ...layers.flatMap((layer, i) => {
      const at = `model.layers.${i}`;
      const name = (part: string) => `${at}.${part}.weight`;
      const projection = (part: string, first: number, rows: number): TensorSlot[] => [
        rowsOf(layer.qkv, name(`self_attn.${part}`), first, rows),
        ...(layer.qkvBias ? [entriesOf(layer.qkvBias, `${at}.self_attn.${part}.bias`, first, rows)] : []),
      ];
      return [
        vector(layer.attentionNorm),
        ...projection("q_proj", 0, H * d),
        ...projection("k_proj", H * d, G * d),
        ...projection("v_proj", (H + G) * d, G * d),
        ...(layer.headNorms ? [vector(layer.headNorms.q), vector(layer.headNorms.k)] : []),
        whole(layer.output),
        vector(layer.mlpNorm),
        rowsOf(layer.gateUp, name("mlp.gate_proj"), 0, F),
        rowsOf(layer.gateUp, name("mlp.up_proj"), F, F),
        whole(layer.down),
      ];
    }),
    vector(norm),
    ...(head === embedding ? [] : [whole(head)]),
  ];
}

/** cos and sin of position · frequency, computed in double precision. */
function rotaryTable(device: Device, config: ModelConfig): Buffer {
  const { head_dim: d } = config;
  const half = d / 2;
  const positions = windowOf(config) + SPARE_POSITIONS;
  const table = new Float32Array(positions * d);
  for (const [i, frequency] of inverseFrequencies(config).entries()) {
    for (let position = 0; position < positions; position++) {
      table[position * d + i] = Math.cos(position * frequency);
      table[position * d + half + i] = Math.sin(position * frequency);
    }
  }
  const buffer = device.alloc("f32", table.length);
  device.write(buffer, table);
  return buffer;
}

/** Maximum context, whatever the model allows: the rotary table for Qwen3's 40,960 positions alone would take 20 MB. */
export const MAX_POSITIONS = 8_192;

/** Maximum tokens in a context. */
export function windowOf({ max_position_embeddings }: Pick<ModelConfig, "max_position_embeddings">): number {
  return Math.min(max_position_embeddings, MAX_POSITIONS);
}

/**
 * Extra positions: finished rows of graph decoding keep running to the end of their KV block, whose capacity is a
 * multiple of this.
 */
const SPARE_POSITIONS = 8;
