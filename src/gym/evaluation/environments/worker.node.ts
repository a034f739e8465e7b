// An environment thread: runs SQLite and the episodes assigned to it, one request at a time.
import { parentPort, workerData } from "node:worker_threads";
import { messageOf, SqlEnvError } from "../../../errors.ts";
import type { DataSet } from "../../data/index.ts";
import { SQLEnvironment, type SQLObservation } from "../../env/index.ts";
import { DatabasePool, loadSqlite } from "../../sql/index.ts";
import { diffObservation, type EnvironmentThreadData, type FromEnvironments, type ToEnvironments } from "./messages.ts";

const port = parentPort!;
const { name, questions, databases: names, doubleQuotedStrings, ahead } = workerData as EnvironmentThreadData;
const files = new Map<string, Uint8Array>();
const episodes = new Map<number, { readonly env: SQLEnvironment; observation: SQLObservation }>();

await loadSqlite();
const databases = new DatabasePool({ names, read: (database) => files.get(database)!, doubleQuotedStrings });
const data: DataSet = { name, questions, databases, rejected: [] };
const waiting = [...ahead].reverse();
const databaseOf = new Map(questions.map(({ question_id, database_name }) => [question_id, database_name]));

/** Runs one gold query in advance, then serves requests that have arrived before it runs the next. */
function runAhead(): void {
  const question_id = waiting.pop();
  if (question_id === undefined) return;
  if (files.has(databaseOf.get(question_id) ?? "")) {
    try {
      new SQLEnvironment(data).reset({ question_id });
    } catch (error) {
      passCrash(error); // other errors are reported when the question is asked
    }
  }
  setImmediate(runAhead);
}

port.on("message", (message: ToEnvironments) => {
  if ("database" in message) files.set(message.database, message.bytes);
  else if ("close" in message) episodes.delete(message.close);
  else {
    const start = performance.now();
    const answer = answerTo(message);
    const reply: FromEnvironments = { id: message.id, seconds: (performance.now() - start) / 1000, ...answer };
    port.postMessage(reply);
  }
});
port.postMessage({ ready: true } satisfies FromEnvironments);
setImmediate(runAhead);

function answerTo(message: Extract<ToEnvironments, { id: number }>) {
  try {
    if ("question_id" in message) {
      const env = new SQLEnvironment(data, message.options);
      const observation = env.reset({ question_id: message.question_id });
      episodes.set(message.episode, { env, observation });
      return { news: diffObservation(undefined, observation), outcome: env.outcome };
    }
    const episode = episodes.get(message.episode);
    if (!episode)
      throw new SqlEnvError("environment_lost", { what: "the environment's episode is not on this thread" });
    const observation = episode.env.step(message.action);
    const news = diffObservation(episode.observation, observation);
    episode.observation = observation;
    return { news, outcome: episode.env.outcome };
  } catch (error) {
    passCrash(error);
    return { error: { code: error instanceof SqlEnvError ? error.code : undefined, message: messageOf(error) } };
  }
}

/** Rethrows a crash of SQLite, which ends the thread; the pool starts another. */
function passCrash(error: unknown): void {
  if (error instanceof SqlEnvError && error.code === "sqlite_crashed") throw error;
}
