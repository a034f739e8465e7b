// GGUF files on disk: one tensor at a time out, and the header back in.
import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ModelLoadError, messageOf } from "../errors.ts";
import { sync, syncFolder, type WriteBytes, writeFully } from "../io/atomic-write.node.ts";
import { ggufBytes, ggufData, ggufHeader, ggufNumbers, ggufTypeOf, padded } from "./gguf.ts";
import { type GgufHeader, parseGgufHeader } from "./gguf-header.ts";
import { forLlamaRotary, type GgufModel, ggufFacts, ggufName, ggufShapes } from "./gguf-model.ts";
import type { WeightSource } from "./safetensors.ts";

/** Elements converted and written at a time: whole blocks, and far below the 2 GiB that one call to the system may write. */
const PIECE_ELEMENTS = 1 << 22;

export interface WriteGgufOptions {
  /** For tests of short writes. @default writeSync of node:fs */
  readonly write?: WriteBytes;
}

/** Writes a model where llama.cpp can load it; the file is synced and appears whole or not at all. Returns its size in bytes. */
export async function writeGguf(
  file: string,
  model: GgufModel,
  weights: Pick<WeightSource, "read">,
  { write }: WriteGgufOptions = {},
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
    const put = (data: Uint8Array) => {
      writeFully(out, data, write);
      bytes += data.length;
    };
    try {
      put(header);
      for (const { source, tensor } of tensors) {
        const data = forLlamaRotary(model.config, source, await weights.read(source));
        for (let at = 0; at < data.length; at += PIECE_ELEMENTS) {
          put(ggufData(data.subarray(at, at + PIECE_ELEMENTS), tensor.type));
        }
        put(new Uint8Array(padded(ggufBytes(tensor)) - ggufBytes(tensor)));
      }
      sync(out);
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
