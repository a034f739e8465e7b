// Reads and writes GGUF files on disk, one tensor at a time.
import { closeSync, fstatSync, openSync, readSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { ModelLoadError, messageOf } from "../../../errors.ts";
import { sync, syncFolder, type WriteBytes, writeFully } from "../../../io/atomic-write.node.ts";
import type { ModelFolder } from "./folder.ts";
import { ggufData, ggufHeader, ggufTypeOf, padded } from "./gguf.ts";
import { ROPE_FACTORS, ropeFactorsOf } from "./gguf-config.ts";
import { dequantize } from "./gguf-dequantize.ts";
import { type GgufFile, openGgufModel } from "./gguf-folder.ts";
import { type GgufHeader, type GgufPlace, parseGgufHeader } from "./gguf-header.ts";
import { forLlamaRotary, type GgufModel, ggufFacts, ggufName, ggufShapes } from "./gguf-model.ts";
import { GGML_TYPES, ggufBytes } from "./gguf-types.ts";
import type { WeightSource } from "./safetensors.ts";

/** Elements converted and written at a time: whole blocks, and far below the 2 GiB that one system call may write. */
const PIECE_ELEMENTS = 1 << 22;

export interface WriteGgufOptions {
  /** Replaced in tests of short writes. @default writeSync of node:fs */
  readonly write?: WriteBytes;
}

/** Writes a model as a synced file for llama.cpp, which appears only when complete. Returns its size in bytes. */
export async function writeGguf(
  file: string,
  model: GgufModel,
  weights: Pick<WeightSource, "read">,
  { write }: WriteGgufOptions = {},
): Promise<number> {
  const factors = ropeFactorsOf(model.config);
  const tensors = ggufShapes(model.config).map(({ name, shape }) => ({
    read: async () => forLlamaRotary(model.config, name, await weights.read(name)),
    tensor: { name: ggufName(name), shape, type: ggufTypeOf(shape, model.type) },
  }));
  if (factors) {
    const tensor = { name: ROPE_FACTORS, shape: [factors.length], type: "f32" as const };
    tensors.push({ read: async () => factors, tensor });
  }
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
      for (const { read, tensor } of tensors) {
        const data = await read();
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

const FIRST_CHUNK = 1 << 20;
const MAX_READ = 1 << 30; // maximum bytes per read call; the system refuses 2 GiB

/** Whether a path is a GGUF file, by its extension or its first bytes; Ollama's files have no extension. */
export function isGgufFile(path: string): boolean {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  if (/\.gguf$/i.test(path)) return true;
  const handle = opened(path);
  try {
    const first = new Uint8Array(4);
    return readSync(handle, first, 0, 4, 0) === 4 && new TextDecoder().decode(first) === "GGUF";
  } finally {
    closeSync(handle);
  }
}

/** Opens a model in a GGUF file: reads the header now, and tensors on demand, one at a time. */
export function loadGguf(path: string): ModelFolder {
  const file = openGguf(path);
  try {
    return openGgufModel(file, path);
  } catch (error) {
    file.close();
    throw error;
  }
}

/** Opens a GGUF file. Its header may be hostile; errors say what is wrong. */
export function openGguf(file: string): GgufFile {
  const handle = opened(file);
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
      read: (name, rows) => {
        const tensor = tensors.get(name);
        if (!tensor) throw new ModelLoadError({ what: `${file}: no such tensor`, value: name });
        return readNumbers(handle, tensor, rows, file);
      },
      close: () => closeSync(handle),
    };
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

function opened(file: string): number {
  try {
    return openSync(file, "r");
  } catch (error) {
    throw new ModelLoadError({ what: `${file}: the file cannot be opened`, value: messageOf(error), cause: error });
  }
}

/** Reads and converts numbers in pieces, so that little memory is needed besides the result. */
function readNumbers(
  handle: number,
  { shape, type, begin }: GgufPlace,
  rows: { readonly first: number; readonly count: number } | undefined,
  file: string,
): Float32Array<ArrayBuffer> {
  const { block, bytes } = GGML_TYPES[type];
  const columns = shape.length === 1 ? 1 : shape.at(-1)!;
  const all = shape.reduce((product, size) => product * size, 1);
  const [from, length] = rows ? [rows.first * columns, rows.count * columns] : [0, all];
  const out = new Float32Array(length);
  const piece = new Uint8Array((Math.min(length, PIECE_ELEMENTS) / block) * bytes);
  for (let at = 0; at < length; at += PIECE_ELEMENTS) {
    const count = Math.min(PIECE_ELEMENTS, length - at);
    const part = piece.subarray(0, (count / block) * bytes);
    readAll(handle, part, begin + ((from + at) / block) * bytes, file);
    dequantize(part, type, out.subarray(at, at + count));
  }
  return out;
}

function readAll(handle: number, into: Uint8Array, position: number, file: string): void {
  for (let done = 0; done < into.length; ) {
    const read = readSync(handle, into, done, Math.min(MAX_READ, into.length - done), position + done);
    if (read === 0)
      throw new ModelLoadError({ what: `${file}: the file is cut off`, value: `byte ${position + done}` });
    done += read;
  }
}
