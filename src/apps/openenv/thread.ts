// An environment thread: SQLite and its sessions. Answers one request at a time.
import { randomInt } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../../errors.ts";
import type { DataSet } from "../../gym/data/index.ts";
import { DatabasePool, limitStatementTime, loadSqlite, MAX_MILLISECONDS } from "../../gym/sql/index.ts";
import { answerHttp } from "./http-session.ts";
import { ALONE_MS, CONTENDED_MS } from "./limits.ts";
import { openSession, type Session } from "./session.ts";
import type { Answer, FromThread, SessionRequest, ThreadData, ToThread } from "./thread-protocol.ts";
import { rethrowCrash } from "./validation-errors.ts";

const port = parentPort!;
const send = (message: FromThread) => port.postMessage(message);
const { name, questions, files, doubleQuotedStrings, environment, textActions, others } = workerData as ThreadData;
const sessions = new Map<string, Session>();
let current: Session | undefined;

await loadSqlite();
const read = (database: string) => files.get(database)!;
const databases = new DatabasePool({ names: [...files.keys()], read, doubleQuotedStrings });
const data: DataSet = { name, questions, databases, rejected: [] };

// A reset runs gold queries: stopping them early would make questions unanswerable.
limitStatementTime(() => {
  if (current?.isResetting) return MAX_MILLISECONDS;
  return Atomics.load(others, 0) > 0 ? CONTENDED_MS : ALONE_MS;
});

port.on("message", (message: ToThread) => {
  if ("id" in message) {
    if (message.isAhead && Atomics.load(others, 0) > 0) return send({ id: message.id, returned: true });
    const from = performance.now();
    const outcome = answer(message.session, message.ask);
    send({ id: message.id, milliseconds: performance.now() - from, ...outcome });
  } else if (message.verb === "close") {
    sessions.get(message.session)?.close();
    sessions.delete(message.session);
  } else open(message.session);
});
send({ ready: true });

type Outcome = { readonly answer: Answer } | { readonly refused: "lost" | "failed" | "factory"; message: string };

function answer(id: string, ask: SessionRequest): Outcome {
  if (ask.verb === "open") return open(id);
  current = sessions.get(id);
  if (!current) return { refused: "lost", message: "the environment was lost" };
  try {
    return { answer: answerAs(current, ask) };
  } catch (error) {
    rethrowCrash(error); // ends the thread
    return { refused: "failed", message: messageOf(error) };
  }
}

function open(id: string): Outcome {
  try {
    // Each session has its own random seed, unless the server was given one.
    const seed = environment.seed ?? randomInt(2 ** 31);
    sessions.set(id, openSession(id, data, { ...environment, seed, textActions }));
    return { answer: { text: null, kind: "open" } };
  } catch (error) {
    return { refused: "factory", message: messageOf(error) };
  }
}

function answerAs(session: Session, ask: Exclude<SessionRequest, { verb: "open" }>): Answer {
  switch (ask.verb) {
    case "frame":
      return session.frame(ask.text);
    case "rpcFrame":
      return session.rpcFrame(ask.text);
    case "mcpFrame":
      return session.rpcFrame(ask.text, "mcp");
    case "reset":
    case "step":
    case "state":
      return { ...answerHttp(session, ask.verb, ask.body), kind: ask.verb };
  }
}
