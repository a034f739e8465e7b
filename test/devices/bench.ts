// Test bench: writes numbers to a device and compares the results.
import { expect } from "vitest";
import type { Buffer, Device, Dtype, Scale, Weight } from "../../src/lm/devices/index.ts";
import type { Span } from "../../src/lm/model/layout.ts";
import type { Random } from "../../src/random.ts";
import { centralDifference } from "./reference.ts";

/** Largest errors allowed, relative to the largest value compared. */
export interface Tolerances {
  readonly forward: number;
  readonly backward: number;
  readonly optimizer: number;
}

/** Spans by length and parent. */
export function tree(...spans: readonly (readonly [length: number, parent: number | null])[]): Span[] {
  return spans.map(([length, parent]) => ({ tokens: new Array<number>(length).fill(0), parent }));
}

export function angleOf(headDim: number): (position: number, i: number) => number {
  return (position, i) => position * 1000 ** ((-2 * i) / headDim);
}

export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** A scale or weight on the device, and its values on the host. */
interface Learned<T> {
  readonly on: T;
  readonly value: Float32Array;
  /** Its gradient before the kernel adds to it. */
  readonly grad: Float32Array;
}

/** A device under test. */
export class Bench {
  readonly #device: Device;
  readonly #tolerances: Tolerances;

  constructor(device: Device, tolerances: Tolerances) {
    this.#device = device;
    this.#tolerances = tolerances;
  }

  /** Runs one case in memory filled with NaN, so that reading uninitialized memory shows. */
  run(work: (bench: Bench) => void): void {
    this.#device.scope(() => this.empty(200_000));
    this.#device.scope(() => work(this));
  }

  normal(r: Random, length: number, deviation = 1): Float32Array<ArrayBuffer> {
    return Float32Array.from({ length }, () => r.normal(0, deviation));
  }

  floats(data: Float32Array, dtype: Dtype = "f32"): Buffer {
    const buffer = this.#device.alloc(dtype, data.length);
    this.#device.write(buffer, data);
    return buffer;
  }

  ints(data: readonly number[]): Buffer {
    const buffer = this.#device.alloc("i32", data.length);
    this.#device.write(buffer, Int32Array.from(data));
    return buffer;
  }

  /** For results: NaN until a kernel writes them. */
  empty(length: number, dtype: Dtype = "f32"): Buffer {
    const buffer = this.#device.alloc(dtype, length);
    this.#device.fill(buffer, Number.NaN);
    return buffer;
  }

  weight(rows: number, columns: number, r: Random): Learned<Weight> {
    const value = this.normal(r, rows * columns, 0.5);
    const grad = this.normal(r, rows * columns);
    const on = { name: "weight", rows, columns, value: this.floats(value), grad: this.floats(grad) };
    return { on, value, grad };
  }

  scale(length: number, r: Random): Learned<Scale> {
    const value = this.normal(r, length, 0.3).map((x) => 1 + x);
    const grad = this.normal(r, length);
    return { on: { name: "scale", value: this.floats(value), grad: this.floats(grad) }, value, grad };
  }

  rotary(positions: number, d: number, angle: (position: number, i: number) => number): Buffer {
    const half = d / 2;
    const table = Float32Array.from({ length: positions * d }, (_, at) => {
      const [position, i] = [Math.floor(at / d), at % d];
      return i < half ? Math.cos(angle(position, i)) : Math.sin(angle(position, i - half));
    });
    return this.floats(table);
  }

  /** Rows of `n` numbers, `stride` apart, with NaN between them. */
  rows(data: Float32Array, n: number, stride: number): Buffer {
    const rows = data.length / n;
    const spread = new Float32Array(rows * stride).fill(Number.NaN);
    for (let t = 0; t < rows; t++) spread.set(data.subarray(t * n, (t + 1) * n), t * stride);
    return this.floats(spread);
  }

  sample(
    logits: Float32Array,
    vocabulary: number,
    stride: number,
    cases: readonly { readonly temperature: number; readonly uniform: number }[],
  ): { tokens: ArrayLike<number>; logp: ArrayLike<number> } & { tokens: Iterable<number> } {
    const device = this.#device;
    const draw = {
      temperatures: this.floats(Float32Array.from(cases, ({ temperature }) => temperature)),
      uniforms: this.floats(Float32Array.from(cases, ({ uniform }) => uniform)),
    };
    const out = { tokens: device.alloc("i32", cases.length), logp: this.empty(cases.length) };
    device.sample({ logits: this.rows(logits, vocabulary, stride), vocabulary, stride, rows: cases.length, draw, out });
    return { tokens: device.read(out.tokens), logp: device.read(out.logp) };
  }

  /** Expects every number to be close to its expected value, relative to the largest (or to `scale` if larger). */
  near(got: Buffer, want: Float64Array, tolerance: number, scale = 0): void {
    const values = this.#device.read(got);
    expect(values.length).toBe(want.length);
    const largest = want.reduce((top, x) => Math.max(top, Math.abs(x)), scale);
    const wrong = want.findIndex((x, i) => !(Math.abs(values[i]! - x) <= tolerance * largest));
    if (wrong >= 0) expect.fail(`${values[wrong]} at ${wrong}, not ${want[wrong]} (largest ${largest})`);
  }

  nearRows(got: Buffer, stride: number, want: Float64Array, n: number, tolerance: number): void {
    for (let t = 0; t < want.length / n; t++) {
      this.near(this.#device.part(got, t * stride, n), want.subarray(t * n, (t + 1) * n), tolerance, 1);
    }
  }

  /** Is `got` (less what was there before) the gradient of f at x? Along random directions, and by some single numbers. */
  gradient(
    got: Buffer,
    x: ArrayLike<number>,
    f: (x: Float64Array) => number,
    r: Random,
    before?: Float32Array,
    scale = 0,
  ): void {
    const gradient = Float64Array.from(this.#device.read(got), (g, i) => g - (before?.[i] ?? 0));
    const tolerance = this.#tolerances.backward;
    const largest = gradient.reduce((top, g) => Math.max(top, Math.abs(g)), scale);
    const check = (direction: (i: number) => number, length: number, what: string) => {
      const slope = centralDifference(f, x, direction);
      const ours = gradient.reduce((sum, g, i) => sum + g * direction(i), 0);
      // Errors of single numbers add up at random along a direction.
      if (!(Math.abs(ours - slope) <= tolerance * largest * Math.sqrt(length)))
        expect.fail(`${what}: slope ${ours}, not ${slope} (largest ${largest})`);
    };
    for (let k = 0; k < 2; k++) {
      const signs = Float64Array.from(gradient, () => (r.chance(0.5) ? 1 : -1));
      check((i) => signs[i]!, gradient.length, "along a direction");
    }
    for (let k = 0; k < 4; k++) {
      const one = r.int(0, gradient.length - 1);
      check((i) => (i === one ? 1 : 0), 4, `at ${one}`);
    }
  }
}

/** ‖got − want‖ / ‖want‖; NaN anywhere gives NaN. */
export function distance(got: ArrayLike<number>, want: ArrayLike<number>): number {
  let [off, size] = [0, 0];
  for (let i = 0; i < want.length; i++) {
    off += (got[i]! - want[i]!) ** 2;
    size += want[i]! ** 2;
  }
  return got.length === want.length ? Math.sqrt(off / (size || 1)) : Number.NaN;
}
