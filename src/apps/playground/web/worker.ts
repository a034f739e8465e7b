// The worker: SQLite, the environment, the players, the model and its trainer, serving the calls of worker-protocol.ts.
import { messageOf, UsageError } from "../../../errors.ts";
import { EpisodeRunner } from "./episode-runner.ts";
import type { LoadedModel } from "./loaded-model.ts";
import type { Call, Calls, FromWorker, ToWorker, WorkerEvent } from "./worker-protocol.ts";

// In cross-origin isolated pages SQLite starts a worker for the origin-private file system unless this API is missing.
Reflect.deleteProperty(globalThis, "FileSystemHandle");

const port = globalThis as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
const emit = (event: WorkerEvent) => port.postMessage(event);

let model: LoadedModel | undefined;
const runner = new EpisodeRunner((choice) => loaded().player(choice));

function loaded(): LoadedModel {
  if (!model) throw new UsageError({ what: "no model is loaded" });
  return model;
}

type Serve = { readonly [C in Call]: (params: Calls[C]["params"]) => Calls[C]["result"] | Promise<Calls[C]["result"]> };

const serve: Serve = {
  open: (choice) => runner.open(choice),
  reset: (which) => runner.reset(which),
  act: (action) => runner.act(action),
  playStep: (choice) => runner.playStep(choice),
  reveal: () => runner.reveal(),
  browse: (which) => runner.browse(which),
  async load(from) {
    const { LoadedModel } = await import("./loaded-model.ts"); // loaded on demand: playing does not need it
    await model?.close();
    model = undefined;
    model = await LoadedModel.load(from, emit);
    return model.facts;
  },
  train: (choice) => loaded().train(runner.data, choice),
  stop: () => {
    model?.stop();
    return null;
  },
  weights: () => loaded().weights(),
  async read({ name, text }) {
    const { readReplays } = await import("./replay-file.ts");
    return readReplays(name, text);
  },
};

port.onmessage = async ({ data: { id, call, params } }) => {
  try {
    port.postMessage({ id, result: await (serve[call] as (params: unknown) => unknown)(params) });
  } catch (error) {
    port.postMessage({ id, error: messageOf(error) });
  }
};
