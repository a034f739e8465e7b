// GGUF files on disk: one tensor at a time out, and the header back in.
import { closeSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ModelLoadError, messageOf } from "../errors.ts";
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
import { syncFolder } from "./sync.node.ts";

/** Elements converted and written at a time: whole blocks, and far below the 2 GiB that one call to the system may write. */
const PIECE_ELEMENTS = 1 << 22;

/** Writes a part of the bytes at the file's position and returns how many were written; fewer than asked is not an error. */
export type WriteBytes = (file: number, bytes: Uint8Array) => number;

export interface WriteGgufOptions {
  /** For tests of short writes. @default writeSync of node:fs */
  readonly write?: WriteBytes;
}

/** Writes a model where llama.cpp can load it; the file is synced and appears whole or not at all. Returns its size in bytes. */
export async function writeGguf(
  file: string,
  model: GgufModel,
  weights: Pick<WeightSource, "read">,
  { write = writeSync }: WriteGgufOptions = {},
): Promise<number> {
  const tensors = ggufShapes(model.config).map(({ name, shape }) => ({
    source: name,
    tensor: { name: ggufName(name), shape, type: ggufTypeOf(shape, model.type) },
  }));
  const header = ggufHeader(
    ggufFacts(model),
    tensors.map(({ tensor }) => tensor),
  );
  const aside = `${file}.part`;
  try {
    const out = openSync(aside, "w");
    let bytes = 0;
    try {
      bytes += writeAll(out, header, write);
      for (const { source, tensor } of tensors) {
        const data = forLlamaRotary(model.config, source, await weights.read(source));
        for (let at = 0; at < data.length; at += PIECE_ELEMENTS) {
          bytes += writeAll(out, ggufData(data.subarray(at, at + PIECE_ELEMENTS), tensor.type), write);
        }
        bytes += writeAll(out, new Uint8Array(padded(ggufBytes(tensor)) - ggufBytes(tensor)), write);
      }
      fsyncSync(out);
    } finally {
      closeSync(out);
    }
    renameSync(aside, file);
    syncFolder(dirname(resolve(file)));
    return bytes;
  } catch (error) {
    rmSync(aside, { force: true });
    if (error instanceof ModelLoadError) throw error;
    const remedy = "check the folder and its free space";
    throw new ModelLoadError(
      { what: `the GGUF file was not written (${messageOf(error)})`, value: file, remedy, cause: error },
      "model_save",
    );
  }
}

/** Writes all of the bytes: a nearly full disk takes a part of them without an error. */
function writeAll(file: number, bytes: Uint8Array, write: WriteBytes): number {
  for (let done = 0; done < bytes.length; ) {
    const written = write(file, bytes.subarray(done));
    if (written <= 0) throw new Error("the file system takes no more bytes");
    done += written;
  }
  return bytes.length;
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
