// Reads and writes safetensors files on disk, one tensor at a time; a written file appears only when complete.
import { existsSync, statSync } from "node:fs";
import { type FileHandle, open, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { z } from "zod";
import { ModelLoadError, messageOf } from "../../../errors.ts";
import { syncFolder } from "../../../io/atomic-write.node.ts";
import { duplicateKey } from "./duplicate-key.ts";
import { WEIGHTS_FILE, WEIGHTS_INDEX } from "./folder.ts";
import {
  elementCount,
  encodeHeader,
  firstNonFinite,
  headerLength,
  isFloatDtype,
  narrow,
  parseHeader,
  type SafetensorsHeader,
  type TensorRange,
  type WeightSource,
  widen,
} from "./safetensors.ts";

const CHUNK_ELEMENTS = 1 << 21; // 4 MiB of 16-bit numbers, so that widening needs little memory besides its result
const MAX_INDEX_BYTES = 100_000_000; // the same limit as for a file's header

const indexFile = z.looseObject({ weight_map: z.record(z.string(), z.string()) });

interface OpenFile {
  readonly path: string;
  readonly handle: FileHandle;
  readonly header: SafetensorsHeader;
}

/** Opens a .safetensors file, or a model folder's `model.safetensors` or shards. Reads only headers. */
export async function openSafetensors(dirOrFile: string): Promise<WeightSource> {
  const files: OpenFile[] = [];
  try {
    const tensors = new Map<string, { readonly file: OpenFile; readonly range: TensorRange }>();
    for (const [path, expected] of await filesOf(dirOrFile)) {
      const file = await openFile(path);
      files.push(file);
      for (const name of expected ?? file.header.tensors.keys()) {
        const range = file.header.tensors.get(name);
        if (!range) throw bad(path, `tensor ${name}, which ${WEIGHTS_INDEX} says is here, is not`);
        tensors.set(name, { file, range });
      }
    }
    const find = (name: string) => {
      const found = tensors.get(name);
      if (!found) throw bad(dirOrFile, "no such tensor", name);
      return found;
    };
    return {
      names: [...tensors.keys()],
      metadata: Object.assign({}, ...files.map(({ header }) => header.metadata)),
      info: (name) => {
        const { dtype, shape } = find(name).range;
        return { dtype, shape };
      },
      read: (name) => readTensor(find(name).file, name, find(name).range),
      close: () => closeAll(files),
    };
  } catch (error) {
    await closeAll(files);
    throw error;
  }
}

async function closeAll(files: OpenFile[]): Promise<void> {
  for (const { handle } of files.splice(0)) await handle.close();
}

/** The files to open, each with the tensors that an index assigns to it, if there is one. */
async function filesOf(dirOrFile: string): Promise<ReadonlyMap<string, ReadonlySet<string> | undefined>> {
  const stats = statSync(dirOrFile, { throwIfNoEntry: false });
  if (!stats) throw bad(dirOrFile, "no such file or folder");
  if (!stats.isDirectory()) {
    return dirOrFile.endsWith(".index.json") ? shardsOf(dirOrFile) : new Map([[dirOrFile, undefined]]);
  }
  const single = join(dirOrFile, WEIGHTS_FILE);
  if (existsSync(single)) return new Map([[single, undefined]]);
  const index = join(dirOrFile, WEIGHTS_INDEX);
  if (existsSync(index)) return shardsOf(index);
  throw new ModelLoadError({
    what: `the folder has neither ${WEIGHTS_FILE} nor ${WEIGHTS_INDEX}`,
    value: dirOrFile,
    remedy: "save the model's weights as safetensors (save_pretrained does)",
  });
}

async function shardsOf(index: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { size } = statSync(index);
  if (size > MAX_INDEX_BYTES) throw bad(index, `it has more than ${MAX_INDEX_BYTES} bytes`, size);
  const shards = new Map<string, Set<string>>();
  for (const [name, shard] of Object.entries(parseIndex(await readFile(index, "utf8"), index))) {
    const path = join(dirname(index), shard);
    shards.set(path, (shards.get(path) ?? new Set<string>()).add(name));
  }
  return shards;
}

/** Parses an index: which shard holds which tensor. Shards must be files in the same folder, not paths out of it. */
export function parseIndex(text: string, file: string): Readonly<Record<string, string>> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw bad(file, "it is not JSON", messageOf(error));
  }
  const twice = duplicateKey(text);
  if (twice !== undefined) throw bad(file, "it has a key twice", twice);
  const read = indexFile.safeParse(json);
  if (!read.success) throw bad(file, "it has no weight_map of names to files");
  const outside = Object.values(read.data.weight_map).find((shard) => !/^[\w.-]+\.safetensors$/.test(shard));
  if (outside !== undefined) throw bad(file, "its weight_map names something else than a file beside it", outside);
  return read.data.weight_map;
}

async function openFile(path: string): Promise<OpenFile> {
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (error) {
    throw bad(path, "the file cannot be opened", messageOf(error), error);
  }
  try {
    const { size } = await handle.stat();
    const first = new Uint8Array(Math.min(8, size));
    await readFully(handle, first, 0, path);
    const bytes = new Uint8Array(headerLength(first, path, size));
    await readFully(handle, bytes, 8, path);
    return { path, handle, header: parseHeader(bytes, path, size) };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function readFully(handle: FileHandle, into: Uint8Array, position: number, path: string): Promise<void> {
  let done = 0;
  while (done < into.length) {
    const { bytesRead } = await handle.read(into, done, into.length - done, position + done);
    if (bytesRead === 0) throw bad(path, "the file is cut off", `at byte ${position + done}`);
    done += bytesRead;
  }
}

async function readTensor(
  { handle, path, header }: OpenFile,
  name: string,
  range: TensorRange,
): Promise<Float32Array<ArrayBuffer>> {
  const { dtype, shape, begin } = range;
  if (!isFloatDtype(dtype)) throw bad(path, `tensor ${name} has a dtype other than F32, F16, BF16`, dtype);
  const values = new Float32Array(elementCount(shape));
  const start = header.dataStart + begin;
  if (dtype === "F32") {
    await readFully(handle, new Uint8Array(values.buffer), start, path);
  } else {
    const chunk = new Uint16Array(Math.min(values.length, CHUNK_ELEMENTS));
    for (let at = 0; at < values.length; at += chunk.length) {
      const part = chunk.subarray(0, Math.min(chunk.length, values.length - at));
      await readFully(handle, new Uint8Array(part.buffer, 0, part.byteLength), start + 2 * at, path);
      widen(part, dtype, values.subarray(at, at + part.length));
    }
  }
  const wrong = firstNonFinite(values);
  if (wrong >= 0) throw bad(path, `tensor ${name} holds a number that is none, at ${wrong}`, values[wrong]!);
  return values;
}

export interface NamedTensor {
  readonly name: string;
  readonly data: Float32Array;
}

export interface WriteOptions {
  /** @default "F32" */
  readonly dtype?: "F32" | "BF16";
  /** @default {format: "pt"}, which `transformers` requires */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Writes the tensors named in `shapes`, in any order. The file is synced and renamed when all are written. */
export async function writeSafetensors(
  file: string,
  shapes: ReadonlyMap<string, readonly number[]>,
  tensors: Iterable<NamedTensor> | AsyncIterable<NamedTensor>,
  { dtype = "F32", metadata = { format: "pt" } }: WriteOptions = {},
): Promise<void> {
  const { bytes, header } = encodeHeader(shapes, dtype, metadata);
  const aside = join(dirname(resolve(file)), `.${basename(file)}.part`);
  const missing = new Set(shapes.keys());
  try {
    const handle = await open(aside, "w");
    try {
      await writeFully(handle, bytes, 0);
      for await (const { name, data } of tensors) {
        const range = header.tensors.get(name);
        if (!range || !missing.delete(name)) throw unwritable(file, "tensor was not announced, or comes twice", name);
        if (data.length !== elementCount(range.shape)) {
          throw unwritable(file, `tensor ${name} should have shape [${range.shape}]`, `${data.length} numbers`);
        }
        const wrong = firstNonFinite(data);
        if (wrong >= 0) throw unwritable(file, `tensor ${name} holds a number that is none, at ${wrong}`, data[wrong]!);
        await writeTensor(handle, data, dtype, header.dataStart + range.begin);
      }
      if (missing.size > 0) throw unwritable(file, "tensor did not come", [...missing][0]!);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(aside, file);
    syncFolder(dirname(resolve(file)));
  } catch (error) {
    await rm(aside, { force: true });
    if (error instanceof ModelLoadError) throw error;
    throw unwritable(file, messageOf(error), undefined, "check the folder and its free space", error);
  }
}

async function writeTensor(handle: FileHandle, data: Float32Array, dtype: "F32" | "BF16", start: number) {
  const width = dtype === "F32" ? 4 : 2;
  const chunk = new Uint16Array(dtype === "F32" ? 0 : Math.min(data.length, CHUNK_ELEMENTS));
  for (let at = 0; at < data.length; at += CHUNK_ELEMENTS) {
    // Copies, because the array may be a view of shared memory, which the file system refuses.
    const part = data.slice(at, at + CHUNK_ELEMENTS);
    if (dtype === "BF16") narrow(part, chunk);
    const bytes = dtype === "F32" ? new Uint8Array(part.buffer) : new Uint8Array(chunk.buffer, 0, 2 * part.length);
    await writeFully(handle, bytes, start + width * at);
  }
}

async function writeFully(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let done = 0;
  while (done < bytes.length) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    if (bytesWritten === 0) throw new Error("the file system takes no more bytes");
    done += bytesWritten;
  }
}

function bad(file: string, what: string, value?: string | number, cause?: unknown): ModelLoadError {
  const remedy = "check the file, or fetch the model again";
  return new ModelLoadError({ what: `${file}: ${what}`, value, remedy, cause });
}

function unwritable(file: string, what: string, value?: string | number, remedy?: string, cause?: unknown) {
  return new ModelLoadError({ what: `${file} was not written: ${what}`, value, remedy, cause }, "model_save");
}
