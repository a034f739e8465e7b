// LoRA: the loaded weight W is frozen; the product of two thin matrices is added to it and trained.
//
// Sampling and training use the same merged weights, W + s·B·A with s = alpha / r, recomputed when A or B change. So
// sampling costs as much as without adapters, sampled and trained log-probs are equal, and only backward needs A and B:
// dB = s·dyᵀ·(x·Aᵀ), dA = s·(dy·B)ᵀ·x. Adapted weights keep a copy of W, from which the sum is computed. With B = 0 the
// sum equals W bit for bit, so the reference of the KL term needs no second model, only the initial adapters.
//
// B is stored as s·B; AdamW's rates for it are scaled by `factor`, so that A and B take their usual steps. q, k and v
// are one weight here, as are gate and up: their A's are stacked, and their B's form a block diagonal. Ranks are
// zero-padded to a multiple of eight; the gradients of the padding are zero.

import { UsageError } from "../../errors.ts";
import { random } from "../../random.ts";
import type { Buffer, Device, Weight } from "../devices/index.ts";
import type { ModelConfig } from "./config.ts";
import { checkWeights, type WeightSource } from "./formats/safetensors.ts";
import type { Layer, Model, Trained } from "./parameters.ts";

/** Modules that can be adapted, by their names in Hugging Face models. */
export const LORA_MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const;
export type LoraModule = (typeof LORA_MODULES)[number];

export interface LoraSpec {
  /** Rank. */
  readonly r: number;
  /** B·A is scaled by alpha / r. */
  readonly alpha: number;
  /** Modules to adapt in every layer. @default all seven */
  readonly targets?: readonly LoraModule[];
}

/** A and B of one module, and their buffers. */
export interface LoraTensors {
  /** For example `model.layers.0.self_attn.q_proj`. */
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  /** [R, inputs], where R is the padded rank. */
  readonly a: Buffer;
  /** s·B, as [outputs, R]. */
  readonly b: Buffer;
  readonly aGrad: Buffer;
  readonly bGrad: Buffer;
}

/** One module of a fused weight. */
interface Share {
  readonly tensors: LoraTensors;
  /** Indices of its blocks in the fused B, in units of R elements. */
  readonly blocks: Buffer;
}

/** The adapter of one weight. */
export interface Adapter {
  readonly weight: Weight;
  /** The loaded weight. */
  readonly base: Buffer;
  /** All A's stacked, [n·R, columns]; `frozenA` is the same without a gradient, for B·A. */
  readonly a: Weight;
  readonly frozenA: Weight;
  /** All B's side by side, [rows, n·R]. */
  readonly b: Weight;
  /** The modules of a fused weight, from whose B's its B is assembled; null for a single module. */
  readonly shares: readonly Share[] | null;
}

export interface Lora {
  readonly spec: Required<LoraSpec>;
  /** The padded rank. */
  readonly rank: number;
  readonly adapters: ReadonlyMap<Weight, Adapter>;
  readonly modules: readonly LoraTensors[];
  readonly trained: Trained;
  readonly buffers: readonly Buffer[];
}

/** The modules of a layer's weights, with name and number of rows. */
function modulesOf(
  layer: Layer,
  config: ModelConfig,
): { weight: Weight; parts: { module: LoraModule; at: string; rows: number }[] }[] {
  const { num_attention_heads: H, num_key_value_heads: G, head_dim: d, intermediate_size: F, hidden_size: D } = config;
  const part = (module: LoraModule, rows: number) => ({
    module,
    at: F_MODULES.has(module) ? `mlp.${module}` : `self_attn.${module}`,
    rows,
  });
  return [
    { weight: layer.qkv, parts: [part("q_proj", H * d), part("k_proj", G * d), part("v_proj", G * d)] },
    { weight: layer.output, parts: [part("o_proj", D)] },
    { weight: layer.gateUp, parts: [part("gate_proj", F), part("up_proj", F)] },
    { weight: layer.down, parts: [part("down_proj", D)] },
  ];
}

const F_MODULES: ReadonlySet<LoraModule> = new Set(["gate_proj", "up_proj", "down_proj"]);

const up8 = (n: number) => (n + 7) & ~7;

/** Number of trained values in these adapters, including padding. */
export function loraLength(config: ModelConfig, { r, targets = LORA_MODULES }: LoraSpec): number {
  const { num_attention_heads: H, num_key_value_heads: G, head_dim: d, intermediate_size: F, hidden_size: D } = config;
  const sizes: Record<LoraModule, number> = {
    q_proj: D + H * d,
    k_proj: D + G * d,
    v_proj: D + G * d,
    o_proj: H * d + D,
    gate_proj: D + F,
    up_proj: D + F,
    down_proj: F + D,
  };
  return config.num_hidden_layers * up8(r) * targets.reduce((sum, module) => sum + sizes[module], 0);
}

/** Number of parameters in adapted weights, which are copied; fused weights count as a whole. */
export function adaptedLength(config: ModelConfig, { targets = LORA_MODULES }: Pick<LoraSpec, "targets">): number {
  const { num_attention_heads: H, num_key_value_heads: G, head_dim: d, intermediate_size: F, hidden_size: D } = config;
  const has = (...modules: LoraModule[]) => modules.some((module) => targets.includes(module));
  const layer =
    (has("q_proj", "k_proj", "v_proj") ? (H + 2 * G) * d * D : 0) +
    (has("o_proj") ? D * H * d : 0) +
    (has("gate_proj", "up_proj") ? 2 * F * D : 0) +
    (has("down_proj") ? D * F : 0);
  return config.num_hidden_layers * layer;
}

/** Throws for invalid options. */
export function checkLora({ r, alpha, targets }: LoraSpec): void {
  if (!Number.isInteger(r) || r < 1) throw new UsageError({ what: "lora_r must be a whole number from 1", value: r });
  if (!(alpha > 0)) throw new UsageError({ what: "lora_alpha must be above 0", value: alpha });
  const unknown = targets?.find((name) => !(LORA_MODULES as readonly string[]).includes(name));
  if (unknown !== undefined || targets?.length === 0)
    throw new UsageError({
      what: "lora_target_modules has no such module",
      value: unknown ?? "[]",
      remedy: `choose among ${LORA_MODULES.join(", ")}`,
    });
}

export interface AddLoraOptions {
  /** Seed of the A's; B starts at 0, which leaves the model unchanged. @default 0 */
  readonly seed?: number | string;
  /** Storage type for the copies of adapted weights; bf16 only if lossless. @default that of the weights */
  readonly base?: "f32" | "bf16";
}

/** Adds adapters to the model's current weights, which share their memory. */
export function addLora(model: Model, spec: LoraSpec, { seed = 0, base }: AddLoraOptions = {}): Model {
  checkLora(spec);
  const { device, config } = model;
  const targets = LORA_MODULES.filter((module) => (spec.targets ?? LORA_MODULES).includes(module));
  const rank = up8(spec.r);
  const length = loraLength(config, { ...spec, targets });
  const buffers: Buffer[] = [];
  const alloc = (dtype: Buffer["dtype"], size: number): Buffer => {
    const buffer = device.alloc(dtype, size);
    buffers.push(buffer);
    return buffer;
  };
  const zeros = (size: number): Buffer => {
    const buffer = alloc("f32", size);
    device.fill(buffer, 0);
    return buffer;
  };
  const [values, grads] = [zeros(length), zeros(length)];
  // All A's come before all B's, because the optimizer uses different rates for them.
  const chosen = model.layers.flatMap((layer, i) =>
    modulesOf(layer, config).flatMap(({ weight, parts }) => {
      const own = parts.filter(({ module }) => targets.includes(module));
      return own.length === 0 ? [] : [{ weight, parts, own, at: `model.layers.${i}.` }];
    }),
  );
  const aLength = chosen.reduce((sum, { weight, own }) => sum + own.length * rank * weight.columns, 0);
  const widest = Math.max(
    ...chosen.map(({ weight, parts, own }) => (parts.length > 1 ? weight.rows * own.length * rank : 0)),
  );
  const scratch = widest > 0 ? zeros(widest) : null;
  const modules: LoraTensors[] = [];
  const adapters = new Map<Weight, Adapter>();
  let [aFrom, bFrom] = [0, aLength];
  for (const { weight, parts, own, at } of chosen) {
    const { rows, columns, name } = weight;
    const aStart = aFrom;
    const n = own.length;
    const first = modules.length;
    for (const part of own) {
      const size = { a: rank * columns, b: part.rows * rank };
      const cut = (from: number, count: number) =>
        [device.part(values, from, count), device.part(grads, from, count)] as const;
      const [a, aGrad] = cut(aFrom, size.a);
      const [b, bGrad] = cut(bFrom, size.b);
      modules.push({ name: at + part.at, inputs: columns, outputs: part.rows, a, b, aGrad, bGrad });
      aFrom += size.a;
      bFrom += size.b;
    }
    const ours = modules.slice(first);
    const a: Weight = {
      name: `${name}.lora_A`,
      rows: n * rank,
      columns,
      value: device.part(values, aStart, n * rank * columns),
      grad: device.part(grads, aStart, n * rank * columns),
    };
    const isWhole = parts.length === 1;
    const b: Weight = isWhole
      ? { name: `${name}.lora_B`, rows, columns: rank, value: ours[0]!.b, grad: ours[0]!.bGrad }
      : {
          name: `${name}.lora_B`,
          rows,
          columns: n * rank,
          value: zeros(rows * n * rank),
          grad: device.part(scratch!, 0, rows * n * rank),
        };
    const share = (tensors: LoraTensors, i: number): Share => {
      const before = parts.slice(0, parts.indexOf(own[i]!)).reduce((sum, part) => sum + part.rows, 0);
      const blocks = alloc("i32", tensors.outputs);
      device.write(
        blocks,
        Int32Array.from({ length: tensors.outputs }, (_, row) => (before + row) * n + i),
      );
      return { tensors, blocks };
    };
    const copy = alloc(base ?? (weight.value.dtype as "f32" | "bf16"), rows * columns);
    device.copy(weight.value, copy);
    adapters.set(weight, {
      weight,
      base: copy,
      a,
      frozenA: { ...a, grad: null },
      b,
      shares: isWhole ? null : ours.map(share),
    });
  }
  for (const { name, inputs, a } of modules) device.write(a, initialA(name, spec.r, inputs, seed));
  const factor = spec.alpha / spec.r;
  const ranges = [
    { from: 0, length: aLength, factor: 1 },
    { from: aLength, length: length - aLength, factor },
  ];
  const trained = { values, grads, ranges };
  return { ...model, lora: { spec: { ...spec, targets }, rank, adapters, modules, trained, buffers } };
}

/** PEFT's initialization: uniform in ±1/√inputs. */
function initialA(name: string, r: number, inputs: number, seed: number | string): Float32Array {
  const draw = random("lora", seed, name);
  const most = 1 / Math.sqrt(inputs);
  return Float32Array.from({ length: r * inputs }, () => most * (2 * draw.next() - 1));
}

/** Recomputes the merged weights after A or B has changed. */
export function mergeLora({ device, lora }: Model): void {
  for (const { weight, base, a, frozenA, b, shares } of lora?.adapters.values() ?? []) {
    if (shares) {
      device.fill(b.value, 0);
      for (const { tensors, blocks } of shares)
        device.scatterAdd(tensors.b, blocks, b.value, tensors.outputs, lora!.rank);
    }
    for (const changed of [a, frozenA, b]) device.changed(changed);
    assemble(device, weight, (sum) => {
      device.linearBackward({ weight: frozenA, x: sum, dy: b.value, dx: sum, rows: weight.rows });
      device.addTo(base, sum);
    });
  }
}

/** Computes a weight in f32, then stores it in its own type. */
function assemble(device: Device, weight: Weight, work: (sum: Buffer) => void): void {
  const { value } = weight;
  device.scope(() => {
    const sum = value.dtype === "f32" ? value : device.alloc("f32", value.length);
    work(sum);
    if (sum !== value) device.copy(sum, value);
  });
  device.changed(weight);
}

/** Adds the gradients of A and B, given a matmul's input and the gradient of its output. */
export function adapterBackward(device: Device, { a, b, shares }: Adapter, x: Buffer, dy: Buffer, rows: number): void {
  device.scope(() => {
    const [h, dh] = [a.rows, a.rows].map((width) => device.alloc(device.activations, rows * width)) as [Buffer, Buffer];
    device.linear(a, x, h, rows);
    if (shares) device.fill(b.grad!, 0);
    device.linearBackward({ weight: b, x: h, dy, dx: dh, rows });
    device.linearBackward({ weight: a, x, dy: dh, dx: null, rows });
    const rank = a.rows / (shares?.length ?? 1);
    for (const { tensors, blocks } of shares ?? []) {
      const own = device.alloc("f32", tensors.outputs * rank);
      device.gather(b.grad!, blocks, own, tensors.outputs, rank);
      device.addTo(own, tensors.bGrad);
    }
  });
}

/** Merges the adapters permanently and returns a plain model. */
export function foldLora(model: Model): Model {
  if (model.lora) freeLora(model.device, model.lora);
  return { ...model, lora: null };
}

/** Frees the adapters' memory. */
export function freeLora(device: Device, { adapters, buffers }: Lora): void {
  for (const { a, frozenA, b } of adapters.values()) for (const weight of [a, frozenA, b]) device.forget(weight);
  for (const buffer of buffers) device.free(buffer);
}

/** Yields every A and B by its name in PEFT files. */
export function* loraTensorsOf({
  device,
  lora,
}: Model): Generator<{ name: string; shape: readonly number[]; data: Float32Array }> {
  const { spec, rank } = lora!;
  for (const { name, inputs, outputs, a, b } of lora!.modules) {
    const at = `base_model.model.${name}`;
    const rows = device.read(a) as Float32Array;
    yield { name: `${at}.lora_A.weight`, shape: [spec.r, inputs], data: rows.slice(0, spec.r * inputs) };
    const wide = device.read(b) as Float32Array;
    const data = new Float32Array(outputs * spec.r);
    for (let row = 0; row < outputs; row++)
      for (let i = 0; i < spec.r; i++) data[row * spec.r + i] = (wide[row * rank + i]! * spec.r) / spec.alpha;
    yield { name: `${at}.lora_B.weight`, shape: [outputs, spec.r], data };
  }
}

/** Loads the adapters from PEFT tensors and merges them. */
export async function loadLora(
  model: Model,
  source: Pick<WeightSource, "names" | "info" | "read">,
  file = "the adapter",
): Promise<void> {
  const { device, lora } = model;
  const { spec, rank, modules } = lora!;
  const shapes = modules.flatMap(({ name, inputs, outputs }): [string, readonly number[]][] => [
    [`base_model.model.${name}.lora_A.weight`, [spec.r, inputs]],
    [`base_model.model.${name}.lora_B.weight`, [outputs, spec.r]],
  ]);
  checkWeights(source, new Map(shapes), file);
  for (const { name, outputs, a, b } of modules) {
    device.write(a, await source.read(`base_model.model.${name}.lora_A.weight`));
    const narrow = await source.read(`base_model.model.${name}.lora_B.weight`);
    const wide = new Float32Array(outputs * rank);
    for (let row = 0; row < outputs; row++)
      for (let i = 0; i < spec.r; i++) wide[row * rank + i] = (narrow[row * spec.r + i]! * spec.alpha) / spec.r;
    device.write(b, wide);
  }
  mergeLora(model);
}
