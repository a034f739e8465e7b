// The worker: SQLite, the environment, the players, the model and its trainer, serving the calls of worker-protocol.ts.
import { messageOf, UsageError } from "../../../errors.ts";
import { EpisodeRunner } from "./episode-runner.ts";
import { ModelSlot } from "./model-slot.ts";
import type { OwnData } from "./own-data.ts";
import type { AskChoice, Call, Calls, FromWorker, OwnAnswer, ToWorker, WorkerEvent } from "./worker-protocol.ts";

// In cross-origin isolated pages SQLite starts a worker for the origin-private file system unless this API is missing.
Reflect.deleteProperty(globalThis, "FileSystemHandle");

const port = globalThis as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
const emit = (event: WorkerEvent) => port.postMessage(event);

const runner = new EpisodeRunner((choice) => slot.model.player(choice));
const slot = new ModelSlot(emit, () => runner.forgetPlayer());

/** Temperature of the samples that must agree with an answer. */
const SAMPLED = 0.7;

let own: OwnData | undefined;
let asking: AbortController | undefined;

function ownData(): OwnData {
  if (!own) throw new UsageError({ what: "no file is open", remedy: "choose a SQLite file or CSV files first" });
  return own;
}

async function ask(choice: AskChoice): Promise<OwnAnswer> {
  const data = ownData();
  const abort = new AbortController();
  asking = abort;
  try {
    return await slot.use(() => {
      const { model } = slot;
      const [player, sampler] = [model.player({ temperature: 0 }), model.player({ temperature: SAMPLED }, true)];
      return data.ask(choice, {
        player,
        sampler,
        rules: model.rules,
        step_budget: model.stepBudget,
        signal: abort.signal,
        emit,
      });
    });
  } finally {
    asking = undefined;
  }
}

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
  async openOwn(files) {
    const { OwnData } = await import("./own-data.ts");
    const opened = await OwnData.open(files);
    own?.close(); // only now: a file that cannot be used leaves the other one open
    own = opened;
    return own.facts;
  },
  browseOwn: ({ table, offset }) => ownData().browse(table, offset),
  ask,
  writeQuestions: () => ownData().write(),
  teach: (choice) => slot.use(() => slot.model.teach(ownData().data, choice)),
  stop() {
    slot.stop();
    asking?.abort(new Error("stopped"));
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
