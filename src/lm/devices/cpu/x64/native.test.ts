// Tests machine code: it gives the bits of the WebAssembly kernels for all sizes and numbers of threads, and never
// accesses memory out of bounds.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tree } from "../../../../../test/devices/bench.ts";
import { everyKernel } from "../../../../../test/devices/every.ts";
import { cases } from "../../../../../test/helpers/cases.ts";
import { random } from "../../../../random.ts";
import { forestLayout } from "../../../model/layout.ts";
import type { HeadShape, Weight } from "../../device.ts";
import { type CpuDevice, createCpuDevice } from "../device.ts";
import { createCpu } from "../start.node.ts";
import { INSTRUCTION_SETS } from "./instruction-set.ts";
import { bindFromText, nativeCode } from "./native.node.ts";

const can = nativeCode() !== null;
for (const set of INSTRUCTION_SETS) {
  if (!nativeCode(set)) console.warn(`this machine cannot run our machine code for ${set}: its tests are skipped`);
}

describe.each(INSTRUCTION_SETS.filter((set) => nativeCode(set)))("machine code for %s", (set) => {
  let reference: CpuDevice;
  let devices: CpuDevice[];
  beforeAll(() => {
    reference = createCpu({ threads: 1, native: false });
    devices = [1, 2, 3].map((threads) => createCpu({ threads, native: set }));
  });
  afterAll(() => {
    for (const device of [reference, ...devices]) device.close();
  });

  test("a device says whether it is used, and its variant is the same", () => {
    expect(reference.native).toBe(false);
    expect(devices.map(({ native }) => native)).toEqual([true, true, true]);
    expect([reference, ...devices].map(({ instructionSet }) => instructionSet)).toEqual([null, set, set, set]);
    expect(devices[0]!.variant).toBe(reference.variant);
    const plain = createCpu({ threads: 1, simd: "plain" });
    expect(plain.native).toBe(false); // plain SIMD rounds twice and gives other bits
    plain.close();
  });

  test("matmuls and their gradients have the same bits as in WebAssembly", () => {
    const size = fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 1, max: 300 }));
    const run = (device: CpuDevice, rows: number, n: number, columns: number, add: boolean): string =>
      device.scope(() => {
        const r = random("products", rows, n, columns);
        const floats = (length: number) => {
          const buffer = device.alloc("f32", length);
          device.write(
            buffer,
            Float32Array.from({ length }, () => r.normal(0, 1)),
          );
          return buffer;
        };
        const grad = floats(n * columns);
        const weight: Weight = { name: "w", rows: n, columns, value: floats(n * columns), grad };
        const stride = device.outStride(weight);
        const [x, dy, dx, out] = [columns, stride, columns, stride].map((width) => floats(rows * width));
        device.linear(weight, x!, out!, rows);
        device.linearBackward({ weight, x: x!, dy: dy!, dx: dx!, rows, add });
        const text = [out!, dx!, grad].map((buffer) => bitsOf(device.read(buffer))).join();
        device.forget(weight);
        return text;
      });
    fc.assert(
      fc.property(size, size, size, fc.boolean(), (rows, n, columns, add) => {
        const width = 8 * Math.ceil(columns / 8); // as in models
        const expected = run(reference, rows, n, width, add);
        return devices.every((device) => run(device, rows, n, width, add) === expected);
      }),
      { numRuns: cases(20, 60) },
    );
  });

  test("attention and its gradients over trees have the same bits as in WebAssembly", () => {
    const trees = fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.nat(4)), { minLength: 1, maxLength: 5 });
    const shapes = fc.tuple(fc.constantFrom(1, 2, 5), fc.constantFrom(1, 2), fc.constantFrom(8, 24, 32));
    const run = (device: CpuDevice, lengths: readonly (readonly [number, number])[], shape: HeadShape): string =>
      device.scope(() => {
        const r = random("attention", ...lengths.flat());
        let root = 0; // spans of a tree are contiguous
        const parents = lengths.map(([length, back], i) => {
          if (back === 0 || i === 0) root = i;
          return [length, root === i ? null : root + (back % (i - root))] as const;
        });
        const { layout, kvLength } = forestLayout(device, tree(...parents), shape);
        const floats = (length: number) => {
          const buffer = device.alloc("f32", length);
          device.write(
            buffer,
            Float32Array.from({ length }, () => r.normal(0, 1.5)),
          );
          return buffer;
        };
        const { heads, kvHeads, headDim } = shape;
        const [q, dOut, out] = [0, 0, 0].map(() => floats(layout.tokens * heads * headDim));
        const [kvCache, lse] = [floats(kvLength), floats(layout.tokens * heads)];
        const dqkv = floats(layout.tokens * (heads + 2 * kvHeads) * headDim);
        device.attention({ q: q!, kvCache, out: out!, lse, layout, shape });
        device.attentionBackward({ q: q!, kvCache, out: out!, dOut: dOut!, lse, dqkv, layout, shape });
        return [out!, lse, dqkv].map((buffer) => bitsOf(device.read(buffer))).join();
      });
    const isSame = (lengths: readonly (readonly [number, number])[], [group, kvHeads, headDim]: number[]) => {
      const shape = { heads: group! * kvHeads!, kvHeads: kvHeads!, headDim: headDim!, eps: 1e-6 };
      const expected = run(reference, lengths, shape);
      return devices.every((device) => run(device, lengths, shape) === expected);
    };
    fc.assert(fc.property(trees, shapes, isSame), { numRuns: cases(20, 60) });
    // 40 spans, each continuing the previous: the last one's ranges overflow a command list.
    const chain = Array.from({ length: 40 }, (_, i) => [1 + (i % 3), Math.max(0, i - 1)] as const);
    expect(isSame([[3, 0], [2, 1], ...chain.slice(2)], [2, 2, 8])).toBe(true);
  });

  test("numbers at the limits of exp, infinities and NaN give the same as in WebAssembly", () => {
    const edges = [0, -0, 1e-40, 87.3, 87.33654, 87.34, 88.72283, 88.73, 103.9, 1e4, 3e38, Infinity];
    const values = Float32Array.from([...edges, ...edges.map((x) => -x), ...Array(8).fill(NaN)]);
    const [width, shape] = [values.length, { heads: 1, kvHeads: 1, headDim: 8, eps: 1e-6 }];
    const run = (device: CpuDevice): string[] =>
      device.scope(() => {
        const [h, a, dh] = [2, 1, 2].map((n) => device.alloc("f32", n * width));
        device.write(h!, Float32Array.from([...values, ...values.toReversed()]));
        device.swiGlu(h!, a!, 1, width);
        device.swiGluBackward(h!, a!, dh!, 1, width);
        // Each query sees one key, so the scores are the values above.
        const { layout, kvLength } = forestLayout(device, tree([width, null]), shape);
        const [q, out, lse] = [8, 8, 1].map((n) => device.alloc("f32", n * width));
        const kvCache = device.alloc("f32", kvLength);
        device.fill(q!, 0);
        device.fill(kvCache, 1);
        for (let i = 0; i < width; i++) device.write(device.part(q!, 8 * i, 1), values.subarray(i, i + 1));
        device.attention({ q: q!, kvCache, out: out!, lse: lse!, layout, shape });
        return [a!, dh!, out!, lse!].flatMap((buffer) =>
          Array.from(device.read(buffer), (x) => (x === 0 ? `${1 / x}` : `${x}`)),
        );
      });
    const expected = run(reference);
    expect(expected).toContain("NaN");
    for (const device of devices) expect(run(device)).toEqual(expected);
  });

  test("every kernel of the device has the same bits as without machine code", () => {
    const [without, ...others] = [reference, ...devices].map(everyKernel);
    for (const other of others) {
      const different = [...without!].filter(([name, values]) => bitsOf(values) !== bitsOf(other.get(name)!));
      expect(different.map(([name]) => name)).toEqual([]);
    }
  });

  test("a matmul outside of memory is an error, and the next one runs", () => {
    for (const device of devices) {
      device.scope(() => {
        const value = device.alloc("f32", 64);
        device.fill(value, 1);
        const weight: Weight = { name: "w", rows: 8, columns: 8, value, grad: null };
        const [x, out] = [device.alloc("f32", 8), device.alloc("f32", 8)];
        device.fill(x, 2);
        const outside = { dtype: "f32", length: 8, address: 2 ** 32 - 16 } as const;
        expect(() => device.linear(weight, outside, out, 1)).toThrow(/out of bounds|a thread failed/);
        expect(() => device.linear(weight, x, outside, 1)).toThrow(/out of bounds|a thread failed/);
        device.linear(weight, x, out, 1);
        expect([...device.read(out)]).toEqual(Array(8).fill(16));
        device.forget(weight);
      });
    }
  });

  test("an attention outside of memory is an error, and the next one runs", () => {
    const shape = { heads: 2, kvHeads: 1, headDim: 8, eps: 1e-6 };
    for (const device of devices) {
      device.scope(() => {
        const { layout, kvLength } = forestLayout(device, tree([5, null]), shape);
        const [q, out] = [device.alloc("f32", 80), device.alloc("f32", 80)];
        const kvCache = device.alloc("f32", kvLength);
        device.fill(q, 0);
        device.fill(kvCache, 3);
        const outside = { dtype: "f32", length: 80, address: 2 ** 32 - 64 } as const;
        const run = (from: typeof q, keys: typeof q, to: typeof q) => () =>
          device.attention({ q: from, kvCache: keys, out: to, lse: null, layout, shape });
        for (const wrong of [run(outside, kvCache, out), run(q, outside, out), run(q, kvCache, outside)])
          expect(wrong).toThrow(/unreachable|out of bounds|a thread failed/);
        run(q, kvCache, out)();
        expect([...device.read(out)]).toEqual(Array(80).fill(3));
      });
    }
  });

  test("a worker that cannot bind the code does its share in WebAssembly, to the same bits", () => {
    const native = nativeCode(set)!;
    for (const threads of [2, 3]) {
      const device = createCpuDevice({
        threads,
        native: (memory) => bindFromText(native, memory),
        startWorker(source, data) {
          const fails = `() => { throw new Error("no"); }`;
          const text = `${source}\nserve(require("node:worker_threads").workerData, ${fails});`;
          const worker = new Worker(text, { eval: true, workerData: data, execArgv: [] });
          return { end: () => void worker.terminate() };
        },
      });
      expect(device.native).toBe(true);
      const [want, got] = [everyKernel(reference), everyKernel(device)];
      const different = [...want].filter(([name, values]) => bitsOf(values) !== bitsOf(got.get(name)!));
      expect(different.map(([name]) => name)).toEqual([]);
      device.close();
    }
  });

  test("falls back to WebAssembly if binding fails or gives other bits", () => {
    const native = nativeCode(set)!;
    const broken = createCpuDevice({
      native() {
        throw new Error("no");
      },
    });
    const wrong = createCpuDevice({
      native(memory) {
        const bound = bindFromText(native, memory);
        return { ...bound, kernels: { ...bound.kernels, gemm: () => {} } };
      },
    });
    for (const device of [broken, wrong]) {
      expect(device.native).toBe(false);
      const [want, got] = [everyKernel(reference), everyKernel(device)];
      expect([...want].every(([name, values]) => bitsOf(values) === bitsOf(got.get(name)!))).toBe(true);
      device.close();
    }
  });

  test("the very end of memory is accessible", () => {
    const device = createCpu({ threads: 1, native: set });
    const columns = 4096;
    const value = device.alloc("f32", 8 * columns);
    device.fill(value, 1);
    const weight: Weight = { name: "w", rows: 8, columns, value, grad: null };
    const out = device.alloc("f32", 8 * 8);
    const first = device.alloc("f32", columns);
    device.fill(first, 1);
    device.linear(weight, first, out, 1); // packs the weight now
    for (let megabytes = 17; megabytes < 20; megabytes++) {
      device.alloc("f32", megabytes << 18); // more than the minimum growth, so that the memory ends exactly here
      for (const rows of [5, 6, 7]) {
        const x = device.alloc("f32", rows * columns);
        device.fill(x, 1);
        device.linear(weight, x, out, rows);
        expect(device.read(out)[8 * (rows - 1)]).toBe(columns);
      }
    }
    device.close();
  });

  test.each([1, 3])("memory that grew stays accessible, %i threads", (threads) => {
    const device = createCpu({ threads, native: set });
    const matmul = () =>
      device.scope(() => {
        const value = device.alloc("f32", 64);
        device.fill(value, 1);
        const weight: Weight = { name: "w", rows: 8, columns: 8, value, grad: null };
        const [x, out] = [device.alloc("f32", 8), device.alloc("f32", 8)];
        device.fill(x, 3);
        device.linear(weight, x, out, 1);
        device.forget(weight);
        return [...device.read(out)];
      });
    const shape = { heads: 1, kvHeads: 1, headDim: 8, eps: 1e-6 };
    const attention = () =>
      device.scope(() => {
        const { layout, kvLength } = forestLayout(device, tree([5, null]), shape);
        const [q, out, kvCache] = [40, 40, kvLength].map((length) => device.alloc("f32", length));
        device.fill(q!, 0);
        device.fill(kvCache!, 3);
        device.attention({ q: q!, kvCache: kvCache!, out: out!, lse: null, layout, shape });
        return [...device.read(out!)];
      });
    for (const megabytes of [0, 20, 100, 300]) {
      device.alloc("f32", megabytes << 18);
      expect(attention()).toEqual(Array(40).fill(3));
      device.alloc("f32", megabytes << 18);
      expect(matmul()).toEqual(Array(8).fill(24));
    }
    device.close();
  });
});

test("SQLENV_NATIVE disables machine code or chooses its instruction set", async () => {
  const start = new URL("../../../../../dist/lm/devices/cpu/start.node.js", import.meta.url);
  const script = `
    import { createCpu } from ${JSON.stringify(start.href)};
    const device = createCpu({ threads: 2 });
    console.log(device.native, device.instructionSet);`;
  const run = promisify(execFile);
  const ask = async (value: string) => {
    const env = { ...process.env, SQLENV_NATIVE: value };
    return (await run(process.execPath, ["--input-type=module", "--eval", script], { env, timeout: 30_000 })).stdout;
  };
  expect((await ask("0")).trim()).toBe("false null");
  expect((await ask("1")).trim()).toMatch(can ? /^true avx(2|512)$/ : /^false null$/);
  for (const set of INSTRUCTION_SETS) {
    if (nativeCode(set)) expect((await ask(set)).trim()).toBe(`true ${set}`);
  }
});

/** Formats bits as text, so that −0 and 0 differ and NaN equals itself. */
function bitsOf(values: Float32Array | Int32Array): string {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("base64");
}
