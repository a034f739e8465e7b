// The worker: SQLite, the environment, the players, the model and its trainer, behind the calls of protocol.ts.
import { messageOf, UsageError } from "../../../errors.ts";
import type { Learner } from "./learner.ts";
import type { Call, Calls, FromWorker, News, ToWorker } from "./protocol.ts";
import { Room } from "./room.ts";

// In isolated pages SQLite would start a worker for the browser's private file system, unless there seems to be none.
Reflect.deleteProperty(globalThis, "FileSystemHandle");

const port = globalThis as unknown as {
  postMessage(message: FromWorker): void;
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
};
const tell = (news: News) => port.postMessage(news);

let learner: Learner | undefined;
const room = new Room((choice) => loaded().player(choice));

function loaded(): Learner {
  if (!learner) throw new UsageError({ what: "no model is loaded" });
  return learner;
}

type Serve = { readonly [C in Call]: (take: Calls[C]["take"]) => Calls[C]["give"] | Promise<Calls[C]["give"]> };

const serve: Serve = {
  open: (choice) => room.open(choice),
  reset: (which) => room.reset(which),
  act: (action) => room.act(action),
  move: (choice) => room.move(choice),
  reveal: () => room.reveal(),
  async load(from) {
    const { Learner } = await import("./learner.ts"); // who only plays need not wait for it
    await learner?.close();
    learner = undefined;
    learner = await Learner.load(from, tell);
    return learner.facts;
  },
  train: (choice) => loaded().train(room.data, choice),
  stop: () => {
    learner?.stop();
    return null;
  },
  weights: () => loaded().weights(),
  async read({ name, text }) {
    const { replaysOf } = await import("./replay.ts");
    return replaysOf(name, text);
  },
};

port.onmessage = async ({ data: { id, call, take } }) => {
  try {
    port.postMessage({ id, give: await (serve[call] as (take: unknown) => unknown)(take) });
  } catch (error) {
    port.postMessage({ id, error: messageOf(error) });
  }
};
