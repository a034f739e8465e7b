// The engine's side of a worker thread: loads the model, then answers calls. A step takes seconds, and the caller's
// thread must stay free. Functions cannot cross threads, so losses are registered here: worker.node.ts has only
// cross-entropy, rl/engine-worker.node.ts also has the policy losses.
import { parentPort, workerData } from "node:worker_threads";
import { SqlEnvError, UsageError } from "../../../errors.ts";
import type { Device } from "../../devices/index.ts";
import { type StartOptions, startDevice } from "../../devices/start.node.ts";
import { loadModelFolder, saveModelFolder } from "../../model/formats/folder.node.ts";
import type { ModelFolder } from "../../model/formats/folder.ts";
import { loadWeights, tensorsOf } from "../../model/formats/load.ts";
import { loadAdapter, readAdapterConfig, saveAdapter } from "../../model/formats/peft.node.ts";
import { addLora, foldLora } from "../../model/lora.ts";
import { createModel, type Model, parameterCount, trainedOf } from "../../model/parameters.ts";
import { checkDevice } from "../check-device.ts";
import { loadEngineState, saveEngineState } from "../checkpoint.node.ts";
import { checkCpuMemory, cpuCacheTokens, cudaLimits } from "../estimate-memory.ts";
import type { LossTable } from "../learning/loss.ts";
import { LocalEngine } from "../local-engine.ts";
import { cpuMemory } from "../machine-memory.node.ts";
import { MAX_CACHED_TOKENS } from "../sampling/prefix-cache.ts";
import type { Call, EngineSpec, ErrorFields, FromEngine, ToEngine } from "./protocol.ts";

const port = parentPort!;
/** Lets the thread end. Deno cannot close the port here; there the caller terminates the thread. */
const close = () => (port as { close?: () => void }).close?.();
const send = (message: FromEngine) => port.postMessage(message);

/** Runs an engine in this worker thread, with these losses besides cross_entropy. */
export function serveEngine({ losses = {} }: { readonly losses?: LossTable } = {}): void {
  start(losses).catch((error: unknown) => {
    send({ failed: fieldsOf(error) });
    close();
  });
}

/** Starts the device. A GPU that "auto" reached through WebGPU and that computes wrong numbers is left to the CPU. */
async function checkedDevice(options: StartOptions): Promise<ReturnType<typeof startDevice>> {
  const device = startDevice(options);
  if (device.name !== "webgpu") return device;
  try {
    await checkDevice(device);
    return device;
  } catch (error) {
    device.close();
    if (options.device === "webgpu") throw error;
    return startDevice({ ...options, device: "cpu" });
  }
}

async function start(losses: LossTable): Promise<void> {
  const spec = workerData as EngineSpec;
  const { folder, trains, threads, simd, recompute, reference, device: choice, precision, maxGpuMemory } = spec;
  const files = await loadModelFolder(folder);
  const device = await checkedDevice({ device: choice, precision, threads, simd, maxGpuMemory });
  const lora = trains ? spec.lora : undefined;
  const options = { trains, recompute, lora, reference };
  const limits: { readonly maxRows?: number; readonly maxCachedTokens?: number } =
    "gpu" in device
      ? cudaLimits(folder, files.config, device, options)
      : device.name === "webgpu" && maxGpuMemory !== undefined
        ? cudaLimits(folder, files.config, { gpu: { memory: maxGpuMemory }, precision: "fp32" }, options)
        : trains
          ? {}
          : { maxCachedTokens: cpuCacheTokens(files.config, cpuMemory()) };
  if (device.name === "cpu") checkCpuMemory(folder, files.config, options, cpuMemory());
  const model = await modelOf(spec, device, files);
  await files.weights.close();
  const engine = new LocalEngine(model, { recompute, reference, losses, ...limits });
  const aborts = new Map<number, AbortController>();
  let texts: readonly string[] = [];

  const serve = async ({ id, verb, take }: Call): Promise<unknown> => {
    switch (verb) {
      case "sample": {
        const abort = new AbortController();
        aborts.set(id, abort);
        try {
          const onToken = take.stream
            ? { onToken: (token: number, logprob: number) => send({ id, token, logprob }) }
            : {};
          const { stop: rule, ...request } = take;
          const stop = rule ? { stop: { rule, texts } } : {};
          return await engine.sample({ ...request, signal: abort.signal, ...onToken, ...stop });
        } finally {
          aborts.delete(id);
        }
      }
      case "texts":
        texts = take;
        return null;
      case "forwardBackward":
        return engine.forwardBackward(take.batch, take.options);
      case "optimStep":
        return engine.optimStep(take);
      case "logprobs":
        return engine.logprobs(take.batch, take.options);
      case "mixReference":
        await engine.mixReference(take);
        return null;
      case "saveModel": {
        const { tokenizer, chatTemplate, config, generationConfig } = files;
        const whole = { config, tokenizerFiles: tokenizer.files, chatTemplate, generationConfig };
        const dtype = take.dtype ?? (model.values.dtype === "bf16" ? "BF16" : "F32");
        await saveModelFolder(take.dir, { ...whole, tensors: tensorsOf(model), dtype, card: take.card });
        return null;
      }
      case "saveAdapter":
        if (!model.lora) throw new UsageError({ what: "there are no adapters to save", remedy: "use saveModel" });
        await saveAdapter(model, take.dir, take.base, take.card);
        return null;
      case "saveState":
        await saveEngineState(engine, take);
        return null;
      case "loadState":
        await loadEngineState(engine, take.dir, take);
        return null;
      case "memory":
        return device.memory;
      case "close":
        await engine.close();
        return null;
    }
  };

  port.on("message", (message: ToEngine) => {
    if ("abort" in message) {
      aborts.get(message.abort)?.abort();
      return;
    }
    serve(message)
      .then(
        (give) => {
          send({ id: message.id, give });
        },
        (error: unknown) => send({ id: message.id, error: fieldsOf(error) }),
      )
      .finally(() => {
        if (message.verb === "close") close();
      });
  });
  const parameters = parameterCount(model);
  const trained = trainedCount(model);
  const { name, variant, threads: used } = device;
  const { maxCachedTokens: cacheTokens = MAX_CACHED_TOKENS } = limits;
  send({ ready: { device: name, variant, threads: used, parameters, trained, cacheTokens } });
}

/** Loads the model on its device, with adapters if requested. */
async function modelOf({ trains, lora, adapter }: EngineSpec, device: Device, files: ModelFolder): Promise<Model> {
  const learnsAdapters = trains && lora !== undefined;
  // Frozen weights need no more precision than matmuls read.
  const weights = learnsAdapters && device.activations === "bf16" ? "bf16" : "f32";
  const plain = createModel(device, files.config, { trains: trains && !learnsAdapters, weights });
  await loadWeights(plain, files.weights);
  if (!learnsAdapters && adapter === undefined) return plain;
  const { names } = files.weights;
  const isBf16 = device.name === "cuda" && names.every((name) => files.weights.info(name).dtype === "BF16");
  const spec = lora && trains ? lora : readAdapterConfig(adapter!).spec;
  const adapted = addLora(plain, spec, { seed: lora?.seed ?? 0, ...(isBf16 && { base: "bf16" as const }) });
  if (adapter !== undefined) await loadAdapter(adapted, adapter);
  return learnsAdapters ? adapted : foldLora(adapted);
}

/** Number of trained parameters, without the padding of LoRA ranks. */
function trainedCount(model: Model): number {
  const { lora } = model;
  if (lora) return lora.modules.reduce((sum, { inputs, outputs }) => sum + lora.spec.r * (inputs + outputs), 0);
  return trainedOf(model) ? parameterCount(model) : 0;
}

function fieldsOf(error: unknown): ErrorFields {
  const known = error instanceof SqlEnvError ? error : undefined;
  const plain = error instanceof Error ? error : new Error(String(error));
  const { name, message, stack } = plain;
  return { name, message, stack, code: known?.code, what: known?.what, value: known?.value, remedy: known?.remedy };
}
