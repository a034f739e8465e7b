// An environment thread: SQLite and the sessions that were given to it. It answers one request at a time.
import { randomInt } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { DatabasePool, limitStatementTime, loadSqlite, MAX_MILLISECONDS } from "../../gym/sql/index.ts";
import { answerHttp } from "./http-session.ts";
import { ALONE_MS, CONTENDED_MS } from "./limits.ts";
import { openSession, type Session } from "./session.ts";
import type { Answer, Ask, FromThread, ThreadData, ToThread } from "./thread-protocol.ts";
import { passCrash } from "./validation-errors.ts";

const port = parentPort!;
const say = (message: FromThread) => port.postMessage(message);
const { name, questions, files, doubleQuotedStrings, environment, others } = workerData as ThreadData;
const sessions = new Map<string, Session>();
let asked: Session | undefined;

await loadSqlite();
const read = (database: string) => files.get(database)!;
const databases = new DatabasePool({ names: [...files.keys()], read, doubleQuotedStrings });
const data: DataSet = { name, questions, databases, rejected: [] };

// Gold queries, which a reset runs, are the server's own: stopping them early would make questions unanswerable.
limitStatementTime(() => {
  if (asked?.isResetting) return MAX_MILLISECONDS;
  return Atomics.load(others, 0) > 0 ? CONTENDED_MS : ALONE_MS;
});

port.on("message", (message: ToThread) => {
  if ("id" in message) {
    if (message.isAhead && Atomics.load(others, 0) > 0) return say({ id: message.id, returned: true });
    const from = performance.now();
    const outcome = answer(message.session, message.ask);
    say({ id: message.id, milliseconds: performance.now() - from, ...outcome });
  } else if (message.verb === "close") {
    sessions.get(message.session)?.close();
    sessions.delete(message.session);
  } else open(message.session);
});
say({ ready: true });

type Outcome = { readonly answer: Answer } | { readonly refused: "lost" | "failed" | "factory"; message: string };

function answer(id: string, ask: Ask): Outcome {
  if (ask.verb === "open") return open(id);
  asked = sessions.get(id);
  if (!asked) return { refused: "lost", message: "the environment was lost" };
  try {
    return { answer: answerAs(asked, ask) };
  } catch (error) {
    passCrash(error); // ends the thread
    return { refused: "failed", message: messageOf(error) };
  }
}

function open(id: string): Outcome {
  try {
    // Each session draws its questions by a seed of its own, unless the server was given one.
    const seed = environment.seed ?? randomInt(2 ** 31);
    sessions.set(id, openSession(id, data, { ...environment, seed }));
    return { answer: { text: null, kind: "open" } };
  } catch (error) {
    return { refused: "factory", message: messageOf(error) };
  }
}

function answerAs(session: Session, ask: Exclude<Ask, { verb: "open" }>): Answer {
  switch (ask.verb) {
    case "frame":
      return session.frame(ask.text);
    case "rpcFrame":
      return session.rpcFrame(ask.text);
    case "reset":
    case "step":
    case "state":
      return { ...answerHttp(session, ask.verb, ask.body), kind: ask.verb };
  }
}
