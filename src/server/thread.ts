// An environment thread: SQLite and the sessions that were given to it. It answers one message at a time, in order.
import { randomInt } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../errors.ts";
import type { DataSet } from "../questions/index.ts";
import { DatabaseShelf, loadSqlite } from "../sql/index.ts";
import { passCrash } from "./problems.ts";
import type { Answer, Ask, FromThread, ThreadSpec, ToThread } from "./protocol.ts";
import { answerHttp } from "./requests.ts";
import { openSession, type Session } from "./session.ts";

const port = parentPort!;
const say = (message: FromThread) => port.postMessage(message);
const { name, questions, files, doubleQuotedStrings, environment } = workerData as ThreadSpec;
const sessions = new Map<string, Session>();

await loadSqlite();
const read = (database: string) => files.get(database)!;
const databases = new DatabaseShelf({ names: [...files.keys()], read, doubleQuotedStrings });
const data: DataSet = { name, questions, databases, rejected: [] };

port.on("message", (message: ToThread) => {
  if (!("id" in message)) {
    sessions.get(message.session)?.close();
    sessions.delete(message.session);
    return;
  }
  const { id, session, expires, ask } = message;
  if (Date.now() > expires) {
    say({ id, refused: "late", message: "the server is busy: nothing was done; try again" });
    return;
  }
  if (ask.verb === "open") open(id, session);
  else {
    const found = sessions.get(session);
    if (!found) say({ id, refused: "lost", message: "the environment was lost" });
    else {
      try {
        say({ id, answer: answer(found, ask) });
      } catch (error) {
        passCrash(error); // ends the thread
        say({ id, refused: "failed", message: messageOf(error) });
      }
    }
  }
});
say({ ready: true });

function open(id: number, session: string): void {
  try {
    // Each session draws its questions by a seed of its own, unless the server was given one.
    const seed = environment.seed ?? randomInt(2 ** 31);
    sessions.set(session, openSession(session, data, { ...environment, seed }));
    say({ id, answer: { text: null, kind: "open" } });
  } catch (error) {
    say({ id, refused: "factory", message: messageOf(error) });
  }
}

function answer(session: Session, ask: Exclude<Ask, { verb: "open" }>): Answer {
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
