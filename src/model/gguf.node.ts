// GGUF files on disk: one tensor at a time out, and the header back in.
import { closeSync, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ModelLoadError, messageOf } from "../errors.ts";
import { syncFolder } from "../io/atomic-write.node.ts";
import { ggufBytes, ggufData, ggufHeader, ggufNumbers, ggufTypeOf, padded } from "./gguf.ts";
import { type GgufHeader, parseGgufHeader } from "./gguf-header.ts";
import { forLlamaRotary, type GgufModel, ggufFacts, ggufName, ggufShapes } from "./gguf-model.ts";
import type { WeightSource } from "./safetensors.ts";

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

export interface GgufFile extends GgufHeader {
  /** A tensor's numbers. */
  read(name: string): Float32Array;
  close(): void;
}

const FIRST_CHUNK = 1 << 20;
const MAX_READ = 1 << 30; // bytes of one call; the system refuses 2 GiB

/** Opens a GGUF file whose tensors are f32, f16 or q8_0. Its header may be hostile: what is wrong is refused by name. */
export function openGguf(file: string): GgufFile {
  const handle = openSync(file, "r");
  try {
    const { size } = fstatSync(handle);
    let header: GgufHeader | undefined;
    for (let length = FIRST_CHUNK; !header; length *= 4) {
      const chunk = new Uint8Array(Math.min(length, size));
      readAll(handle, chunk, 0, file);
      header = parseGgufHeader(chunk, file, size);
    }
    const { facts, tensors } = header;
    return {
      facts,
      tensors,
      read: (name) => {
        const place = tensors.get(name);
        if (!place) throw new ModelLoadError({ what: `${file}: no such tensor`, value: name });
        const bytes = new Uint8Array(place.bytes);
        readAll(handle, bytes, place.begin, file);
        return ggufNumbers(bytes, place.type);
      },
      close: () => closeSync(handle),
    };
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

function readAll(handle: number, into: Uint8Array, position: number, file: string): void {
  for (let done = 0; done < into.length; ) {
    const read = readSync(handle, into, done, Math.min(MAX_READ, into.length - done), position + done);
    if (read === 0)
      throw new ModelLoadError({ what: `${file}: the file is cut off`, value: `byte ${position + done}` });
    done += read;
  }
}
