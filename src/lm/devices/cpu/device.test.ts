// Tests the CPU device: the suite for all devices, equal bits for any number of threads, and its own features (memory,
// workers).
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Bench } from "../../../../test/devices/bench.ts";
import { everyKernel } from "../../../../test/devices/every.ts";
import { deviceSuite } from "../../../../test/devices/suite.ts";
import { cases, some } from "../../../../test/helpers/cases.ts";
import { SqlEnvError } from "../../../errors.ts";
import { random } from "../../../random.ts";
import { layoutOf, type NewTokens } from "../../model/layout.ts";
import type { Buffer, HeadShape } from "../device.ts";
import { type CpuDevice, createCpuDevice } from "./device.ts";
import { createCpu } from "./start.node.ts";

const TOLERANCES = { forward: 1e-5, backward: 2e-5, optimizer: 2e-6 };
const VARIANTS = ["plain", "relaxed"] as const;

/** The first two cover every SIMD variant and number of threads; the tests below compare threads bit by bit. */
const DEVICES = [
  { simd: "plain", threads: 1 },
  { simd: "relaxed", threads: 2 },
  { simd: "plain", threads: 2 },
  { simd: "relaxed", threads: 1 },
] as const;
for (const { simd, threads } of some(2, DEVICES)) {
  const name = `${simd} SIMD, ${threads} thread${threads > 1 ? "s" : ""}`;
  deviceSuite(name, () => createCpu({ simd, threads }), TOLERANCES);
}

function withDevice<T>(options: Parameters<typeof createCpu>[0], use: (device: CpuDevice) => T): T {
  const device = createCpu(options);
  try {
    return use(device);
  } finally {
    device.close();
  }
}

test.each(VARIANTS)("every kernel gives the same bits with 1, 2 and 4 threads: %s SIMD", (simd) => {
  const alone = withDevice({ simd, threads: 1 }, everyKernel);
  expect(alone.size).toBeGreaterThan(50);
  for (const threads of [2, 4]) {
    const together = withDevice({ simd, threads }, everyKernel);
    const different = [...alone].filter(([name, values]) => !Object.is(bitsOf(values), bitsOf(together.get(name)!)));
    expect(different.map(([name]) => name)).toEqual([]);
  }
});

test("plain and relaxed SIMD agree to 1e-4", () => {
  const [plain, relaxed] = VARIANTS.map((simd) => withDevice({ simd, threads: 1 }, everyKernel));
  for (const [name, values] of plain!) {
    const others = relaxed!.get(name)!;
    const largest = Math.max(...Array.from(values, Math.abs));
    const worst = Math.max(...Array.from(values, (x, i) => Math.abs(x - others[i]!)));
    expect(worst, name).toBeLessThanOrEqual(1e-4 * largest);
  }
  expect(withDevice({ simd: "plain", threads: 1 }, ({ variant }) => variant)).toBe("cpu-plain");
  expect(withDevice({ simd: "relaxed", threads: 2 }, ({ variant }) => variant)).toBe("cpu-relaxed");
});

describe("one thread", () => {
  let device: CpuDevice;
  beforeAll(() => {
    device = createCpuDevice({ simd: "plain" });
  });
  afterAll(() => device.close());

  test("a vocabulary too large for one buffer of logits gives the same bits as row by row", () => {
    const r = random("chunks");
    const [vocabulary, width, rows] = [16_001, 8, 300]; // 4.8 million logits
    device.scope(() => {
      const b = new Bench(device, TOLERANCES);
      const head = b.weight(vocabulary, width, r).on;
      const x = b.floats(b.normal(r, rows * width));
      const targets = b.ints(Array.from({ length: rows }, () => r.int(0, vocabulary - 1)));
      const make = (n: number) => ({ logp: b.empty(n), entropy: b.empty(n), lse: b.empty(n) });
      const all = make(rows);
      device.logProbs({ head, x, targets, temperature: 0.9, rows, out: all });
      const dLogp = b.floats(b.normal(r, rows));
      const dEntropy = b.floats(b.normal(r, rows));
      const dx = b.empty(rows * width);
      device.logProbsBackward({ head, x, targets, temperature: 0.9, rows, saved: all, dLogp, dEntropy, dx });
      for (const row of [0, 249, 250, 299]) {
        const one = make(1);
        const [xOne, target] = [device.part(x, row * width, width), device.part(targets, row, 1)];
        device.logProbs({ head, x: xOne, targets: target, temperature: 0.9, rows: 1, out: one });
        for (const key of ["logp", "entropy", "lse"] as const) {
          expect(device.read(one[key])[0]).toBe(device.read(all[key])[row]);
        }
        const dOne = b.empty(width);
        const back = { dLogp: device.part(dLogp, row, 1), dEntropy: device.part(dEntropy, row, 1), dx: dOne };
        device.logProbsBackward({ head, x: xOne, targets: target, temperature: 0.9, rows: 1, saved: one, ...back });
        expect(device.read(dOne)).toEqual(device.read(device.part(dx, row * width, width)));
      }
    });
  });

  test("a scope frees what was allocated inside, also when it throws; other buffers stay", () => {
    const outside = device.alloc("f32", 100);
    const { used } = device.memory;
    device.fill(outside, 3);
    const inside = device.scope(() => {
      device.scope(() => device.alloc("f32", 5_000));
      const buffer = device.alloc("f32", 10_000);
      expect(device.memory.used).toBeGreaterThanOrEqual(used + 40_000);
      return buffer;
    });
    expect(device.memory.used).toBe(used);
    expect(() =>
      device.scope(() => {
        device.alloc("f32", 10);
        throw new Error("midway");
      }),
    ).toThrow("midway");
    expect(device.memory.used).toBe(used);
    expect(device.alloc("f32", 10_000).address).toBe(inside.address);
    expect(device.read(outside).every((x) => x === 3)).toBe(true);
    expect(device.memory.peak).toBeGreaterThanOrEqual(used + 40_000);
  });

  test("more than 4 GiB is refused with the amount and a remedy, and the device stays usable", () => {
    const buffer = device.alloc("f32", 1_000);
    device.fill(buffer, 7);
    const { used } = device.memory;
    const ask = () => device.alloc("f32", 1.25 * 2 ** 30);
    expect(ask).toThrow(SqlEnvError);
    expect(ask).toThrow(/out of memory: 5\d\d\d MiB asked, 4096 MiB at most; lower the batch size/);
    expect(device.memory.used).toBe(used);
    device.write(buffer, Float32Array.of(1, 2));
    expect([...device.read(buffer)].slice(0, 3)).toEqual([1, 2, 7]);
    expect(device.sumSquares(buffer)).toBe(5 + 998 * 49);
  });
});

test("close ends every worker", async () => {
  const workers: Worker[] = [];
  const device = createCpuDevice({
    threads: 3,
    simd: "plain",
    startWorker: (source, data) => {
      const code = `${source}\nserve(require("node:worker_threads").workerData);`;
      const worker = new Worker(code, { eval: true, workerData: data });
      workers.push(worker);
      return { end: () => void worker.terminate() };
    },
  });
  expect([device.threads, workers.length]).toEqual([3, 2]);
  const buffer = device.alloc("f32", 64);
  device.fill(buffer, 2);
  expect(device.sumSquares(buffer)).toBe(256);
  const ends = workers.map((worker) => new Promise((resolve) => worker.once("exit", resolve)));
  device.close();
  await Promise.all(ends);
});

test.each(["device.close()", ""])("a process that used threads exits: %s", async (last) => {
  const start = new URL("../../../../dist/lm/devices/cpu/start.node.js", import.meta.url);
  const script = `
    import { createCpu } from ${JSON.stringify(start.href)};
    const device = createCpu({ threads: 2 });
    const buffer = device.alloc("f32", 40000);
    device.fill(buffer, 1);
    console.log(device.threads, device.sumSquares(buffer));
    ${last}`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], {
    timeout: 30_000,
  });
  expect(stdout.trim()).toBe("2 40000");
});

/** Formats bits as text, so that −0 and 0 differ and NaN equals itself. */
function bitsOf(values: Float32Array | Int32Array): string {
  return Buffer.from(values.buffer, values.byteOffset, values.byteLength).toString("base64");
}

test("a kernel that fails in any thread is an error, and the next one runs", () => {
  const device = createCpu({ threads: 2 });
  const x = device.alloc("f32", 64);
  const outside = { dtype: "f32", length: 1 << 20, address: 2 ** 32 - 2 ** 24 } as const;
  expect(() => device.addTo(outside, x)).toThrow(/out of bounds|a thread failed/);
  const [a, b] = [device.alloc("f32", 64), device.alloc("f32", 64)];
  device.fill(a, 1);
  device.fill(b, 2);
  device.addTo(a, b);
  expect(device.read(b)[63]).toBe(3);
  device.close();
});

describe("the next tokens of samples with a common prefix", () => {
  const shape: HeadShape = { heads: 6, kvHeads: 2, headDim: 16, eps: 1e-6 };
  const unit = 2 * shape.kvHeads * shape.headDim;
  const capacity = (tokens: number) => (tokens + 7) & ~7;

  /** Groups of samples whose prompts share a prefix, and a single one; the token counts of each. */
  const batches = fc.record({
    root: fc.integer({ min: 1, max: 60 }),
    groups: fc.array(
      fc.record({
        prompt: fc.integer({ min: 1, max: 50 }),
        rows: fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 9 }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    lonely: fc.integer({ min: 0, max: 40 }),
  });
  type Batch = typeof batches extends fc.Arbitrary<infer T> ? T : never;

  function diffObservation({ root, groups, lonely }: Batch): { news: NewTokens[]; stored: number } {
    let stored = 0;
    const blockFor = (tokens: number) => {
      const block = { block: stored, capacity: capacity(tokens), tokens, row: 0 };
      stored += block.capacity * unit;
      return block;
    };
    const first = blockFor(root);
    const news: NewTokens[] = groups.flatMap(({ prompt, rows }) => {
      const ancestors = [first, blockFor(prompt)];
      return rows.map((start) => ({ own: blockFor(start + 1), start, count: 1, ancestors }));
    });
    news.push({ own: blockFor(lonely + 1), start: lonely, count: 1, ancestors: [] });
    return { news, stored };
  }

  function attended(device: CpuDevice, batch: Batch, each: boolean): string {
    const { news, stored } = diffObservation(batch);
    const width = shape.heads * shape.headDim;
    return device.scope(() => {
      const r = random("begin alike", JSON.stringify(batch));
      const filled = (length: number) => {
        const buffer = device.alloc("f32", length);
        device.write(
          buffer,
          Float32Array.from({ length }, () => r.normal(0, 1)),
        );
        return buffer;
      };
      const [q, kvCache, out, lse] = [news.length * width, stored, news.length * width, news.length * shape.heads].map(
        filled,
      );
      if (!each)
        device.attention({
          q: q!,
          kvCache: kvCache!,
          out: out!,
          lse: lse!,
          layout: layoutOf(device, news, [0]),
          shape,
        });
      else {
        for (const [t, one] of news.entries()) {
          const rowOf = (buffer: Buffer, size: number) => device.part(buffer, t * size, size);
          const buffers = {
            q: rowOf(q!, width),
            kvCache: kvCache!,
            out: rowOf(out!, width),
            lse: rowOf(lse!, shape.heads),
          };
          device.attention({ ...buffers, layout: layoutOf(device, [one], [0]), shape });
        }
      }
      return [out!, lse!].map((buffer) => new Uint32Array(device.read(buffer).buffer).join()).join();
    });
  }

  test("computed together have the same bits as alone, with any number of threads, in machine code or not", () => {
    const devices = [1, 2, 3].flatMap((threads) => [true, false].map((native) => createCpu({ threads, native })));
    const plain = createCpu({ threads: 2, simd: "plain" });
    fc.assert(
      fc.property(batches, (batch) => {
        const want = attended(devices[1]!, batch, true);
        for (const device of devices) expect(attended(device, batch, false)).toBe(want);
        expect(attended(plain, batch, false)).toBe(attended(plain, batch, true));
      }),
      { numRuns: cases(20, 60) },
    );
    for (const device of [...devices, plain]) device.close();
  });
});

test.each([1, 2])("each kernel is observed with its time and the work of %i threads", (threads) => {
  const seen: string[] = [];
  const observe = (kernel: string, seconds: number, worked: number) => {
    expect(seconds).toBeGreaterThan(0);
    expect(worked).toBeGreaterThan(0);
    seen.push(kernel);
  };
  withDevice({ threads, observe }, (device) => {
    const [x, y] = [device.alloc("f32", 64), device.alloc("f32", 64)];
    device.addTo(x, y);
    device.swiGlu(x, y, 2, 16);
  });
  expect(seen).toEqual(["addTo", "swiGlu"]);
});
