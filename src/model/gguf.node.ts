// GGUF files on disk: one tensor at a time out, and the header back in.
import { closeSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import {
  GGML_TYPE,
  type GgmlType,
  type GgufTensor,
  ggufBytes,
  ggufData,
  ggufHeader,
  ggufNumbers,
  ggufTypeOf,
  padded,
} from "./gguf.ts";
import { forLlamaRotary, type GgufModel, ggufFacts, ggufName, ggufShapes } from "./gguf-model.ts";
import type { WeightSource } from "./safetensors.ts";

/** Writes a model where llama.cpp can load it; the file appears whole or not at all. Gives its bytes. */
export async function writeGguf(file: string, model: GgufModel, weights: Pick<WeightSource, "read">): Promise<number> {
  const tensors = ggufShapes(model.config).map(({ name, shape }) => ({
    source: name,
    tensor: { name: ggufName(name), shape, type: ggufTypeOf(shape, model.type) },
  }));
  const aside = `${file}.part`;
  const out = openSync(aside, "w");
  try {
    const header = ggufHeader(
      ggufFacts(model),
      tensors.map(({ tensor }) => tensor),
    );
    let bytes = writeSync(out, header);
    for (const { source, tensor } of tensors) {
      const data = forLlamaRotary(model.config, source, await weights.read(source));
      bytes += writeSync(out, ggufData(data, tensor.type));
      const gap = padded(ggufBytes(tensor)) - ggufBytes(tensor);
      if (gap > 0) bytes += writeSync(out, new Uint8Array(gap));
    }
    closeSync(out);
    renameSync(aside, file);
    return bytes;
  } catch (error) {
    closeSync(out);
    rmSync(aside, { force: true });
    throw error;
  }
}

export interface GgufFile {
  /** Facts by key; lists as lists. */
  readonly facts: ReadonlyMap<string, unknown>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  /** A tensor's numbers. */
  read(name: string): Float32Array;
  close(): void;
}

const HEADER_CHUNK = 1 << 24;

/** Opens a GGUF file of the types written here. */
export function openGguf(file: string): GgufFile {
  const handle = openSync(file, "r");
  let chunk = new Uint8Array(HEADER_CHUNK);
  chunk = chunk.subarray(0, readSync(handle, chunk, 0, chunk.length, 0));
  const view = new DataView(chunk.buffer, 0, chunk.length);
  let at = 0;
  const take = <T>(bytes: number, read: (offset: number) => T): T => {
    at += bytes;
    return read(at - bytes);
  };
  const u32 = () => take(4, (offset) => view.getUint32(offset, true));
  const u64 = () => Number(take(8, (offset) => view.getBigUint64(offset, true)));
  const text = (): string => {
    const length = u64();
    return take(length, (offset) => new TextDecoder().decode(chunk.slice(offset, offset + length)));
  };
  const value = (type: number): unknown => {
    if (type === 4) return u32();
    if (type === 5) return u32() | 0;
    if (type === 6) return take(4, (offset) => view.getFloat32(offset, true));
    if (type === 7) return take(1, (offset) => view.getUint8(offset) === 1);
    if (type === 8) return text();
    const inner = u32();
    return Array.from({ length: u64() }, () => value(inner));
  };
  at = 8;
  const [tensorCount, factCount] = [u64(), u64()];
  const facts = new Map(Array.from({ length: factCount }, () => [text(), value(u32())] as const));
  const names = Object.entries(GGML_TYPE) as [GgmlType, number][];
  const places = new Map<string, GgufTensor & { readonly offset: number }>();
  for (let i = 0; i < tensorCount; i++) {
    const name = text();
    const shape = Array.from({ length: u32() }, u64).reverse();
    const number = u32();
    const type = names.find(([, known]) => known === number)![0];
    places.set(name, { name, shape, type, offset: u64() });
  }
  const start = padded(at);
  return {
    facts,
    tensors: places,
    read: (name) => {
      const place = places.get(name)!;
      const bytes = new Uint8Array(ggufBytes(place));
      readSync(handle, bytes, 0, bytes.length, start + place.offset);
      return ggufNumbers(bytes, place.type);
    },
    close: () => closeSync(handle),
  };
}
