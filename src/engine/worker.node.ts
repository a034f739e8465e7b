// The engine's own thread: loads the model, then serves the verbs. A step takes seconds, and the caller's thread must stay free.
import { parentPort, workerData } from "node:worker_threads";
import { startDevice } from "../devices/start.node.ts";
import { SqlEnvError } from "../errors.ts";
import { loadModelFolder, saveModelFolder } from "../model/folder.node.ts";
import { loadWeights, tensorsOf } from "../model/load.ts";
import { createModel, parameterCount } from "../model/params.ts";
import { LocalEngine } from "./local.ts";
import { checkCpuMemory, cudaLimits } from "./memory.ts";
import type { Call, EngineSpec, ErrorFields, FromEngine, ToEngine } from "./protocol.ts";
import { loadEngineState, saveEngineState } from "./state.node.ts";

const port = parentPort!;
const say = (message: FromEngine) => port.postMessage(message);

async function start(): Promise<void> {
  const { folder, trains, threads, simd, recompute, reference, device: choice, precision } = workerData as EngineSpec;
  const files = await loadModelFolder(folder);
  const device = startDevice({ device: choice, precision, threads, simd });
  const limits = "card" in device ? cudaLimits(folder, files.config, device, { trains, recompute }) : {};
  if (device.name === "cpu") checkCpuMemory(folder, files.config, { trains, recompute });
  const model = createModel(device, files.config, { trains });
  await loadWeights(model, files.weights);
  await files.weights.close();
  const engine = new LocalEngine(model, { recompute, reference, ...limits });
  const aborts = new Map<number, AbortController>();

  const serve = async ({ id, verb, take }: Call): Promise<unknown> => {
    switch (verb) {
      case "sample": {
        const abort = new AbortController();
        aborts.set(id, abort);
        try {
          const onToken = take.stream ? { onToken: (token: number) => say({ id, token }) } : {};
          return await engine.sample({ ...take, signal: abort.signal, ...onToken });
        } finally {
          aborts.delete(id);
        }
      }
      case "forwardBackward":
        return engine.forwardBackward(take.batch, take.options);
      case "optimStep":
        return engine.optimStep(take);
      case "logprobs":
        return engine.logprobs(take.batch, take.options);
      case "saveModel": {
        const { tokenizer, chatTemplate, config, generationConfig } = files;
        const whole = { config, tokenizerFiles: tokenizer.files, chatTemplate, generationConfig };
        await saveModelFolder(take.dir, { ...whole, tensors: tensorsOf(model), dtype: take.dtype, card: take.card });
        return null;
      }
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
    serve(message).then(
      (give) => {
        say({ id: message.id, give });
        if (message.verb === "close") port.close();
      },
      (error: unknown) => say({ id: message.id, error: fieldsOf(error) }),
    );
  });
  say({
    ready: { device: device.name, variant: device.variant, threads: device.threads, parameters: parameterCount(model) },
  });
}

function fieldsOf(error: unknown): ErrorFields {
  const known = error instanceof SqlEnvError ? error : undefined;
  const plain = error instanceof Error ? error : new Error(String(error));
  const { name, message, stack } = plain;
  return { name, message, stack, code: known?.code, what: known?.what, value: known?.value, remedy: known?.remedy };
}

start().catch((error: unknown) => {
  say({ failed: fieldsOf(error) });
  port.close();
});
