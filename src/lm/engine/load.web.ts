// Loads a model in a browser, from a URL or chosen files, with an engine in the calling thread. Call it in a worker: a
// step takes seconds, and the page's thread must stay free.

import { ModelLoadError, messageOf, OOMError } from "../../errors.ts";
import { createWebCpu } from "../devices/cpu/start.web.ts";
import type { Device } from "../devices/index.ts";
import { whyNoGpu } from "../devices/webgpu/find.web.ts";
import type { ModelConfig } from "../model/config.ts";
import { type ModelFolder, openModelFolder, type ReadModelFile, WEIGHTS_FILE } from "../model/formats/folder.ts";
import { loadWeights } from "../model/formats/load.ts";
import { createModel, parameterCount } from "../model/parameters.ts";
import { createTurnEncoder, type TurnEncoder } from "../model/text/chat-template.ts";
import type { Tokenizer } from "../model/text/tokenizer.ts";
import { checkCpuMemory } from "./estimate-memory.ts";
import type { LossTable } from "./learning/loss.ts";
import { LocalEngine } from "./local-engine.ts";
import { MAX_CACHED_TOKENS } from "./sampling/prefix-cache.ts";
import type { EngineFacts } from "./thread/protocol.ts";

export interface WebModelOptions {
  /** The model's name in errors. @default the URL, or "the model" */
  readonly name?: string;
  /** Names of the files in the folder; others are not requested. @default unknown: every possible file is requested */
  readonly files?: readonly string[] | undefined;
  /** Whether to allocate gradients for training. @default true */
  readonly trains?: boolean;
  /**
   * Where it runs: "webgpu" is any GPU that WebGPU reaches, "auto" none that only emulates one. If the GPU or the page
   * does not allow it, or the model does not fit, it is the CPU. @default "cpu"
   */
  readonly device?: WebDevice | undefined;
  /** Number of CPU threads, if the page is cross-origin isolated. @default the number of cores, at most 8 */
  readonly threads?: number | undefined;
  readonly simd?: "plain" | "relaxed" | undefined;
  /** Called with the bytes of weights received and their total (0: unknown). */
  readonly onProgress?: ((received: number, total: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Loss functions by name, besides cross_entropy. @default none */
  readonly losses?: LossTable;
}

export type WebDevice = "auto" | "cpu" | "webgpu";

export interface WebModel {
  readonly engine: LocalEngine;
  readonly tokenizer: Tokenizer;
  readonly turns: TurnEncoder;
  readonly config: ModelConfig;
  readonly facts: EngineFacts;
  /** Why it is not on a GPU; undefined if it is, or if the CPU was asked for. */
  readonly noGpu: string | undefined;
}

/** Loads a model folder in the Hugging Face layout, given its URL or a function that reads its files. */
export async function loadWebModel(
  from: string | URL | ReadModelFile,
  options: WebModelOptions = {},
): Promise<WebModel> {
  const { files, trains = true, device = "cpu", threads, simd, onProgress, signal } = options;
  const name = options.name ?? (typeof from === "function" ? "the model" : String(from));
  const read = typeof from === "function" ? from : fetching(from, { files, onProgress, signal });
  const folder = await openModelFolder(read, name);
  const onGpu = device === "cpu" ? undefined : await loadOnGpu(name, folder, options);
  if (typeof onGpu === "object") return onGpu;
  const noGpu = onGpu;
  try {
    checkCpuMemory(name, folder.config, { trains });
  } catch (error) {
    if (!(error instanceof OOMError) || noGpu === undefined) throw error;
    const { what, value, remedy } = error;
    throw new OOMError({ what, value, remedy: `${remedy}; no GPU is used: ${noGpu}` });
  }
  return { ...(await loadOn(await createWebCpu({ threads, simd }), folder, options)), noGpu };
}

/** Loads a model on the GPU, or says why that does not work. */
async function loadOnGpu(name: string, folder: ModelFolder, options: WebModelOptions): Promise<WebModel | string> {
  const noGpu = await whyNoGpu({ software: options.device === "webgpu" });
  if (noGpu !== undefined) return noGpu;
  try {
    const { openWebGpu, webGpuCacheTokens } = await import("./web-gpu.ts"); // loaded where there is a GPU
    const device = await openWebGpu(name, folder.config);
    const loaded = await loadOn(device, folder, options, webGpuCacheTokens(folder.config));
    return { ...loaded, noGpu: undefined };
  } catch (error) {
    if (error instanceof ModelLoadError) throw error; // of the model's files
    return messageOf(error);
  }
}

/** Loads a model on a device, which is closed if that fails. */
async function loadOn(
  device: Device,
  { config, tokenizer, chatTemplate, weights, generationConfig }: ModelFolder,
  { trains = true, losses = {} }: WebModelOptions,
  cacheTokens = MAX_CACHED_TOKENS,
): Promise<Omit<WebModel, "noGpu">> {
  try {
    const turns = createTurnEncoder(tokenizer, chatTemplate, { eosIds: generationConfig.eos_token_ids });
    const model = createModel(device, config, { trains });
    await loadWeights(model, weights);
    device.read(device.part(model.values, 0, 1)); // waits: a GPU says only now that memory was missing
    const { name: kind, variant, threads } = device;
    const parameters = parameterCount(model);
    const facts = { device: kind, variant, threads, parameters, trained: trains ? parameters : 0, cacheTokens };
    const engine = new LocalEngine(model, { losses, maxCachedTokens: cacheTokens });
    return { engine, tokenizer, turns, config, facts };
  } catch (error) {
    device.close();
    throw error;
  }
}

/** Returns a function that reads files below a URL. */
function fetching(
  base: string | URL,
  { files, onProgress, signal }: Pick<WebModelOptions, "files" | "onProgress" | "signal">,
) {
  const folder = new URL(`${String(base).replace(/\/*$/, "")}/`, globalThis.location?.href);
  return async (file: string): Promise<Uint8Array<ArrayBuffer> | null> => {
    if (files && !files.includes(file)) return null;
    const url = new URL(file, folder);
    const failed = (what: string, cause?: unknown) =>
      new ModelLoadError({ what, value: url.href, remedy: "check the address and the server", cause });
    try {
      const response = await fetch(url, signal ? { signal } : {});
      // Servers of single-page apps answer a request for a missing file with a page.
      if (response.status === 404 || response.headers.get("content-type")?.startsWith("text/html")) return null;
      if (!response.ok) throw failed(`the model's file cannot be fetched (${response.status})`);
      return await bodyOf(response, file === WEIGHTS_FILE ? onProgress : undefined);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof ModelLoadError) throw error;
      throw failed(`the model's file cannot be fetched (${messageOf(error)})`, error);
    }
  };
}

async function bodyOf(response: Response, onProgress: WebModelOptions["onProgress"]): Promise<Uint8Array<ArrayBuffer>> {
  if (!onProgress || !response.body) return new Uint8Array(await response.arrayBuffer());
  // The content-length of a compressed response is not the size of its content.
  const total = response.headers.has("content-encoding") ? 0 : Number(response.headers.get("content-length") ?? 0);
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let received = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    chunks.push(value);
    received += value.length;
    onProgress(received, total);
  }
  const bytes = new Uint8Array(received);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}
