// Attention for one CUDA device: compiles kernels per head shape, and holds plans per layout and the scratch memory of
// decoding.
import type { Buffer, Decoding, Dtype, HeadShape, TokenLayout } from "../device.ts";
import type { AttentionArgs, AttentionBackwardArgs } from "../device-args.ts";
import type { Pool } from "../pool.ts";
import {
  type AttentionKernels,
  type AttentionPlan,
  attentionBackward,
  attentionDecode,
  attentionForward,
  attentionKernels,
  attentionNext,
  attentionPlanLength,
  decodeScratch,
  decodeSplits,
  nextScratch,
  planAttention,
  sharingShape,
} from "./attention.ts";
import type { CudaDevice } from "./device.ts";
import type { KernelArg, KernelSource, Launch } from "./launch.ts";
import { fillSharing, sharingLength } from "./prefix-sharing.ts";

/** Number of counters for decode attention; launches that need more use another kernel. */
const DECODE_COUNTERS = 65_536;

export interface DeviceAttentionOptions {
  readonly device: Pick<CudaDevice, "gpu" | "activations" | "alloc" | "fill" | "scope">;
  readonly pool: Pool;
  readonly launch: Launch;
  /** Compiles and loads a kernel, once. */
  readonly load: (source: KernelSource) => void;
}

export class DeviceAttention {
  readonly #device: DeviceAttentionOptions["device"];
  readonly #pool: Pool;
  readonly #launch: Launch;
  readonly #load: (source: KernelSource) => void;
  readonly #kernels = new Map<string, AttentionKernels>();
  /** Plans by the address of their layout's spans; freed together with it. */
  readonly #plans = new Map<string, { plan: AttentionPlan; buffer: number }>();
  /** All 0 between launches. */
  readonly #counters: Buffer;
  readonly #partials = new Map<number, Buffer>();

  constructor({ device, pool, launch, load }: DeviceAttentionOptions) {
    this.#device = device;
    this.#pool = pool;
    this.#launch = launch;
    this.#load = load;
    this.#counters = device.alloc("i32", DECODE_COUNTERS);
    device.fill(this.#counters, 0);
  }

  /** Tables for reading a prefix shared by several rows once; empty for head shapes without such a kernel. */
  get sharing(): NonNullable<Decoding["sharing"]> {
    const { gpu, activations } = this.#device;
    const hasKernel = (shape: HeadShape) => this.#kernelsFor(shape, activations).next !== undefined;
    return {
      length: (rows, shape) => (hasKernel(shape) ? sharingLength(rows, sharingShape(shape, gpu.multiprocessors)) : 0),
      fill: (out, rows, spans, ranges, shape) => {
        if (!hasKernel(shape)) return;
        fillSharing(out, rows, spans, ranges, sharingShape(shape, gpu.multiprocessors));
      },
    };
  }

  forward({ q, kvCache, out, lse, layout, shape }: AttentionArgs): void {
    const kernels = this.#kernelsFor(shape, q.dtype);
    if (!lse && this.#decode(q, kvCache, out, layout, kernels)) return;
    this.#device.scope(() => {
      const lseOut = lse ?? this.#device.alloc("f32", layout.tokens * shape.heads);
      attentionForward(this.#launch, kernels, this.#planFor(layout, kernels), layout, { q, kvCache, out, lse: lseOut });
    });
  }

  backward({ layout, shape, ...io }: AttentionBackwardArgs): void {
    const kernels = this.#kernelsFor(shape, io.q.dtype);
    const plan = this.#planFor(layout, kernels);
    this.#device.scope(() => {
      const dots = this.#device.alloc("f32", layout.tokens * shape.heads);
      attentionBackward(this.#launch, kernels, plan, layout, { ...io, dots });
    });
  }

  /**
   * Rotary embedding and attention for one new token per row, reading shared prefixes once; false if there is no kernel
   * for it.
   */
  next(
    { qkv, kvCache, out, rotary }: Readonly<Record<"qkv" | "kvCache" | "out" | "rotary", Buffer>>,
    { tokens, sharing, ranges, positions }: TokenLayout,
    shape: HeadShape,
    vectors: KernelArg[],
  ): boolean {
    if (!sharing) return false;
    const kernels = this.#kernelsFor(shape, qkv.dtype);
    if (!kernels.next) return false;
    const { multiprocessors } = this.#device.gpu;
    const lengths = nextScratch(tokens, kernels.shape, multiprocessors);
    if (lengths.counters > DECODE_COUNTERS) return false;
    const scratch = { partials: this.#partialsOf(lengths.partials), counters: this.#counters };
    const io = { qkv, kvCache, out, ...scratch, work: sharing, ranges, positions, rotary };
    attentionNext(this.#launch, kernels, tokens, multiprocessors, shape.eps, io, vectors);
    return true;
  }

  /** Drops the plans of a layout whose spans were at this address; returns the addresses of their memory. */
  drop(address: number): number[] {
    const freed: number[] = [];
    for (const [key, { buffer }] of this.#plans) {
      if (!key.startsWith(`${address} `)) continue;
      this.#plans.delete(key);
      freed.push(buffer);
    }
    return freed;
  }

  #kernelsFor({ heads, kvHeads, headDim }: HeadShape, dtype: Dtype): AttentionKernels {
    const key = `${heads} ${kvHeads} ${headDim} ${dtype}`;
    let kernels = this.#kernels.get(key);
    if (!kernels) {
      const precision = dtype === "bf16" ? "bf16" : "f32";
      kernels = attentionKernels({ heads, kvHeads, headDim, precision }, this.#device.gpu);
      for (const source of kernels.sources) this.#load(source);
      this.#kernels.set(key, kernels);
    }
    return kernels;
  }

  /**
   * Attention for one new token per row, in inference; false if this kernel does not support the layout or the heads.
   */
  #decode(q: Buffer, kvCache: Buffer, out: Buffer, layout: TokenLayout, kernels: AttentionKernels): boolean {
    const rows = layout.tokens;
    if (rows !== layout.spanCount || kernels.decodeHeadsPerBlock === 0) return false;
    const splits = decodeSplits(rows, kernels.shape, this.#device.gpu.multiprocessors);
    const lengths = decodeScratch(rows, splits, kernels);
    if (lengths.counters > DECODE_COUNTERS) return false;
    this.#device.scope(() => {
      const partials = this.#device.alloc("f32", lengths.partials);
      const io = { q, kvCache, out, partials, counters: this.#counters };
      attentionDecode(this.#launch, kernels, rows, splits, layout, io);
    });
    return true;
  }

  /** Scratch shared by all layers of all graphs of one size. */
  #partialsOf(length: number): Buffer {
    let partials = this.#partials.get(length);
    if (!partials) {
      partials = { dtype: "f32", length, address: this.#pool.alloc(4 * length) };
      this.#partials.set(length, partials);
    }
    return partials;
  }

  #planFor(layout: TokenLayout, kernels: AttentionKernels): AttentionPlan {
    const key = `${layout.spans.address} ${kernels.suffix}`;
    const known = this.#plans.get(key);
    if (known) return known.plan;
    const buffer = this.#pool.alloc(4 * attentionPlanLength(layout, kernels));
    const plan = planAttention(this.#launch, kernels, layout, buffer);
    this.#plans.set(key, { plan, buffer });
    return plan;
  }
}
