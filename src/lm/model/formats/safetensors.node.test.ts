import { existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../../../test/helpers/data-files.ts";
import { ModelLoadError } from "../../../errors.ts";
import { openSafetensors, writeSafetensors } from "./safetensors.node.ts";
import { checkWeights, narrow, parseHeader, widen } from "./safetensors.ts";

/** Written by the reference implementation: a F32 [2, 2], b F16 [3], c BF16 [3]. */
const REFERENCE = Buffer.from(
  "yAAAAAAAAAB7Il9fbWV0YWRhdGFfXyI6eyJmb3JtYXQiOiJwdCJ9LCJhIjp7ImR0eXBlIjoiRjMyIiwic2hhcGUiOlsyLDJdLCJkYXRhX29mZnNldHMiOlswLDE2XX0sImMiOnsiZHR5cGUiOiJCRjE2Iiwic2hhcGUiOlszXSwiZGF0YV9vZmZzZXRzIjpbMTYsMjJdfSwiYiI6eyJkdHlwZSI6IkYxNiIsInNoYXBlIjpbM10sImRhdGFfb2Zmc2V0cyI6WzIyLDI4XX19IAAAwD8AAADAWdkAMwDgf0eAP0nASnEAPFW1AQA=",
  "base64",
);

/** Builds a file from a header and data. */
function fileOf(header: object | string, data: Uint8Array = new Uint8Array(0)): Buffer {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, data]);
}

function written(bytes: Uint8Array): string {
  const file = join(temporaryFolder(), "model.safetensors");
  writeFileSync(file, bytes);
  return file;
}

const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);
const f32 = (shape: number[], begin: number, end: number) => ({ dtype: "F32", shape, data_offsets: [begin, end] });

test("reads a file of the reference implementation", async () => {
  const source = await openSafetensors(written(REFERENCE));
  expect([...source.names].sort()).toEqual(["a", "b", "c"]);
  expect(source.metadata).toEqual({ format: "pt" });
  expect(source.info("a")).toEqual({ dtype: "F32", shape: [2, 2] });
  expect([...(await source.read("a"))]).toEqual([1.5, -2, Math.fround(3e-8), 65504]);
  expect([...(await source.read("b"))]).toEqual([1, -0.333251953125, 2 ** -24]);
  expect([...(await source.read("c"))]).toEqual([1, -3.140625, 1.0002555517425873e30]);
  await source.close();
});

test("tensors written in any order are read back, and the file follows the format", async () => {
  const dir = temporaryFolder();
  const file = join(dir, "model.safetensors");
  const shapes = new Map([
    ["x", [2, 3]],
    ["y", [1]],
    ["none", [0, 4]],
  ]);
  const x = Float32Array.of(1, -2, 3.5, 1e-30, 7, 0.1);
  async function* tensors() {
    yield { name: "y", data: Float32Array.of(5) };
    yield { name: "none", data: new Float32Array(0) };
    yield { name: "x", data: x };
  }
  await writeSafetensors(file, shapes, tensors());
  expect(readdirSync(dir)).toEqual(["model.safetensors"]);
  const bytes = readFileSync(file);
  const length = Number(bytes.readBigUInt64LE(0));
  expect(length % 8).toBe(0);
  expect(JSON.parse(bytes.toString("utf8", 8, 8 + length))).toEqual({
    __metadata__: { format: "pt" },
    x: f32([2, 3], 0, 24),
    y: f32([1], 24, 28),
    none: f32([0, 4], 28, 28),
  });
  const source = await openSafetensors(dir);
  expect(await source.read("x")).toEqual(x);
  expect(await source.read("none")).toEqual(new Float32Array(0));
  await source.close();
});

test("bf16 is rounded to the nearest, ties to even, as PyTorch does", () => {
  const values = Float32Array.of(
    1,
    1.00390625,
    1.01171875,
    1.003906369,
    -1.00390625,
    3.3895e38,
    1e-40,
    0.1,
    NaN,
    -Infinity,
  );
  const out = new Uint16Array(values.length);
  narrow(values, out);
  expect([...out.subarray(0, 8)]).toEqual([16256, 16256, 16258, 16257, 49024, 32639, 1, 15821]);
  const back = new Float32Array(values.length);
  widen(out, "BF16", back);
  expect([...back.subarray(8)]).toEqual([NaN, -Infinity]);
});

test("every finite 16-bit number survives widening and narrowing", () => {
  const all = Uint16Array.from({ length: 65_536 }, (_, i) => i);
  const wide = new Float32Array(all.length);
  widen(all, "BF16", wide);
  const back = new Uint16Array(all.length);
  narrow(wide, back);
  expect(all.filter((bits, i) => !Number.isNaN(wide[i]) && back[i] !== bits)).toEqual(new Uint16Array(0));
  widen(all, "F16", wide);
  const half = (bits: number) => {
    const [exponent, fraction] = [(bits >> 10) & 31, (bits & 1023) / 1024];
    return (bits & 0x8000 ? -1 : 1) * (exponent === 0 ? fraction * 2 ** -14 : (1 + fraction) * 2 ** (exponent - 15));
  };
  for (let bits = 0; bits < 65_536; bits += 7) if (((bits >> 10) & 31) < 31) expect(wide[bits]).toBe(half(bits));
  expect([wide[0x7c00], wide[0xfc00], wide[0x7e00]]).toEqual([Infinity, -Infinity, NaN]);
});

test("16-bit tensors longer than a chunk are read completely", async () => {
  const file = join(temporaryFolder(), "m.safetensors");
  const data = Float32Array.from({ length: (1 << 21) + 5 }, (_, i) => (i % 199) - 99);
  await writeSafetensors(file, new Map([["w", [data.length]]]), [{ name: "w", data }], { dtype: "BF16" });
  const source = await openSafetensors(file);
  const read = await source.read("w");
  expect(read.findIndex((value, i) => value !== data[i])).toBe(-1);
  await source.close();
});

test("shards are found by their index, and only in its folder", async () => {
  const dir = temporaryFolder();
  const shard = (name: string, value: number) => fileOf({ [name]: f32([1], 0, 4) }, floats(value));
  writeFiles(dir, {
    "model.safetensors.index.json": { metadata: {}, weight_map: { p: "a-1.safetensors", q: "a-2.safetensors" } },
    "a-1.safetensors": shard("p", 1),
    "a-2.safetensors": shard("q", 2),
  });
  const source = await openSafetensors(dir);
  expect(source.names).toEqual(["p", "q"]);
  expect([(await source.read("q"))[0], (await source.read("p"))[0]]).toEqual([2, 1]);
  await source.close();
  const index = (map: object) => writeFiles(dir, { "model.safetensors.index.json": { weight_map: map } });
  index({ p: "a-2.safetensors" });
  await expect(openSafetensors(dir)).rejects.toThrow(/a-2\.safetensors: tensor p, which .* says is here, is not/);
  index({ p: "a-3.safetensors" });
  await expect(openSafetensors(dir)).rejects.toThrow(/a-3\.safetensors: the file cannot be opened/);
  index({ p: "../a-1.safetensors" });
  await expect(openSafetensors(dir)).rejects.toThrow(/something else than a file beside it: \.\.\/a-1/);
});

test.each([
  ["an empty file", Buffer.alloc(0), /ends within its first eight bytes/],
  ["half a length", Buffer.alloc(4), /ends within its first eight bytes/],
  ["a huge header", Buffer.alloc(16, 255), /header would have a length outside/],
  ["a header past the end", fileOf({}).subarray(0, 9), /ends within its header/],
  ["a header that is no JSON", fileOf("{nonsense"), /header is not JSON/],
  ["a header that is a list", fileOf("[]"), /header is not an object/],
  ["metadata that is no map", fileOf({ __metadata__: { a: 1 } }), /__metadata__ is not a map of strings/],
  ["an unknown dtype", fileOf({ w: { dtype: "F3", shape: [1], data_offsets: [0, 4] } }), /w has an unknown dtype: F3/],
  ["an inherited dtype", fileOf({ w: { dtype: "valueOf", shape: [], data_offsets: [0, 4] } }), /unknown dtype/],
  [
    "a tensor named twice",
    fileOf(`{"w":${JSON.stringify(f32([1], 0, 4))},"\\u0077":${JSON.stringify(f32([1], 0, 4))}}`, floats(1)),
    /header has a key twice: w/,
  ],
  [
    "a field given twice",
    fileOf('{"w":{"dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,4]}}', floats(1)),
    /header has a key twice: shape/,
  ],
  ["a negative size", fileOf({ w: f32([-1], 0, 4) }, floats(1)), /tensor w is not described/],
  ["offsets of another size", fileOf({ w: f32([2], 0, 4) }, floats(1)), /tensor w of shape \[2\] .* does not fill/],
  ["a product beyond all numbers", fileOf({ w: f32([2 ** 40, 2 ** 40], 0, 0) }), /does not fill/],
  ["data cut off", fileOf({ w: f32([2], 0, 8) }, floats(1)), /the file is cut off: 4 of 8 bytes/],
  ["overlapping tensors", fileOf({ v: f32([2], 0, 8), w: f32([1], 4, 8) }, floats(1, 2)), /tensor w overlaps/],
  ["a hole", fileOf({ v: f32([1], 0, 4), w: f32([1], 8, 12) }, floats(1, 2, 3)), /before tensor w belong to none/],
  ["bytes after the end", fileOf({ w: f32([1], 0, 4) }, floats(1, 2)), /after the last tensor belong to none/],
])("%s is refused, naming the file", async (_, bytes, message) => {
  const file = written(bytes);
  const opening = openSafetensors(file);
  await expect(opening).rejects.toThrow(ModelLoadError);
  await expect(opening).rejects.toThrow(message);
  await expect(opening).rejects.toThrow(file);
});

test("any header is parsed or refused; nothing else happens", () => {
  const entry = fc.record(
    {
      dtype: fc.constantFrom("F32", "BF16", "BOOL", "x"),
      shape: fc.array(fc.nat(9)),
      data_offsets: fc.array(fc.nat(99)),
    },
    { requiredKeys: [] },
  );
  const header = fc.oneof(fc.dictionary(fc.string(), fc.oneof(entry, fc.json())), fc.json(), fc.string());
  fc.assert(
    fc.property(header, fc.nat(200), (json, size) => {
      const bytes = new TextEncoder().encode(typeof json === "string" ? json : JSON.stringify(json));
      try {
        const { tensors } = parseHeader(bytes, "f", 8 + bytes.length + size);
        const ends = [...tensors.values()].map(({ end }) => end);
        expect(Math.max(0, ...ends)).toBe(size);
      } catch (error) {
        expect(error).toBeInstanceOf(ModelLoadError);
      }
    }),
  );
});

test("missing files, folders without weights, and files cut while open say so", async () => {
  const dir = temporaryFolder();
  await expect(openSafetensors(join(dir, "no"))).rejects.toThrow(/no such file or folder/);
  await expect(openSafetensors(dir)).rejects.toThrow(/has neither model\.safetensors nor/);
  const file = written(fileOf({ w: f32([2], 0, 8) }, floats(1, 2)));
  const source = await openSafetensors(file);
  truncateSync(file, readFileSync(file).length - 1);
  await expect(source.read("w")).rejects.toThrow(/the file is cut off/);
  await expect(async () => source.read("v")).rejects.toThrow(/no such tensor: v/);
  await source.close();
});

test("NaN is refused with the tensor's name, reading and writing", async () => {
  const source = await openSafetensors(written(fileOf({ w: f32([2], 0, 8) }, floats(1, NaN))));
  await expect(source.read("w")).rejects.toThrow(/tensor w holds a number that is none, at 1: NaN/);
  await source.close();
  const dir = temporaryFolder();
  const shapes = new Map([["w", [2]]]);
  const write = (...data: { name: string; data: Float32Array }[]) =>
    writeSafetensors(join(dir, "m.safetensors"), shapes, data);
  const w = (...data: number[]) => ({ name: "w", data: Float32Array.from(data) });
  await expect(write(w(1, Infinity))).rejects.toThrow(/tensor w holds a number that is none/);
  await expect(write(w(1))).rejects.toThrow(/tensor w should have shape \[2\]: 1 numbers/);
  await expect(write()).rejects.toThrow(/tensor did not come: w/);
  await expect(write(w(1, 2), w(1, 2))).rejects.toThrow(/comes twice: w/);
  await expect(writeSafetensors(join(dir, "no", "m"), shapes, [w(1, 2)])).rejects.toMatchObject({ code: "model_save" });
  expect(existsSync(join(dir, "m.safetensors")) || readdirSync(dir).length > 0).toBe(false);
});

test("weights are checked against the configuration", () => {
  const shapes = new Map([["model.norm.weight", [4]]]);
  const check = (tensors: Record<string, { dtype: "F32" | "I8"; shape: number[] }>) => () =>
    checkWeights({ names: Object.keys(tensors), info: (name) => tensors[name]! }, shapes, "m");
  const norm = { dtype: "F32", shape: [4] } as const;
  expect(check({ "model.norm.weight": { ...norm, shape: [4] } })).not.toThrow();
  const tied = { "model.norm.weight": { ...norm, shape: [4] }, "lm_head.weight": { ...norm, shape: [9, 9] } };
  expect(check(tied)).not.toThrow();
  expect(check({})).toThrow(/is missing: model\.norm\.weight/);
  expect(check({ "model.norm.weight": { dtype: "F32", shape: [2, 2] } })).toThrow(/should have shape \[4\].*: \[2,2\]/);
  expect(check({ "model.norm.weight": { dtype: "I8", shape: [4] } })).toThrow(/dtype other than F32, F16, BF16: I8/);
  const bias = { "model.norm.weight": { ...norm, shape: [4] }, "model.layers.0.q_proj.bias": { ...norm, shape: [4] } };
  expect(check(bias)).toThrow(/does not have: model\.layers\.0\.q_proj\.bias/);
});
