// The worker: SQLite, the environment, the players, the model and its trainer, serving the calls of worker-protocol.ts.
import { messageOf } from "../../../errors.ts";
import { EpisodeRunner } from "./episode-runner.ts";
import { ModelSlot } from "./model-slot.ts";
import type { Call, Calls, FromWorker, ToWorker, WorkerEvent } from "./worker-protocol.ts";

// In cross-origin isolated pages SQLite starts a worker for the origin-private file system unless this API is missing.
Reflect.deleteProperty(globalThis, "FileSystemHandle");

const port = globalThis as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
const emit = (event: WorkerEvent) => port.postMessage(event);

const runner = new EpisodeRunner((choice) => slot.model.player(choice));
const slot = new ModelSlot(emit, () => runner.forgetPlayer());

type Serve = { readonly [C in Call]: (params: Calls[C]["params"]) => Calls[C]["result"] | Promise<Calls[C]["result"]> };

const serve: Serve = {
  open: (choice) => runner.open(choice),
  reset: (which) => runner.reset(which),
  act: (action) => runner.act(action),
  playStep: (choice) => (choice.name === "model" ? slot.use(() => runner.playStep(choice)) : runner.playStep(choice)),
  reveal: () => runner.reveal(),
  browse: (which) => runner.browse(which),
  load: (choice) => slot.load(choice),
  train: (choice) => slot.use(() => slot.model.train(runner.data, choice)),
  stop() {
    slot.stop();
    return null;
  },
  weights: () => slot.model.weights(),
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
