// Measures a server under load: many sessions at a fixed rate, maximum throughput, and a memory soak test.
import { type SocketMaker, SQLEnvClient } from "../../../gym/client/index.ts";
import type { DataSet, QuestionRecord } from "../../../gym/data/index.ts";
import { type SQLAction, SQLEnvironment } from "../../../gym/env/index.ts";
import { type Random, random } from "../../../random.ts";

export interface Latency {
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly max_ms: number;
}

export interface Load extends Latency {
  readonly sessions: number;
  readonly seconds: number;
  /** Target steps per second over all sessions; null at maximum throughput. */
  readonly offered_per_s: number | null;
  readonly steps: number;
  readonly steps_per_s: number;
  readonly errors: number;
  readonly first_error: string | null;
}

export interface LoadOptions {
  readonly sessions: number;
  readonly seconds: number;
  /** Steps per second and session; 0 for maximum throughput. */
  readonly rate: number;
  readonly seed?: string;
  /** Creates the sockets. @default the client's default */
  readonly socket?: SocketMaker;
  /** Called once every session is in the middle of an episode. */
  readonly onOpen?: () => Promise<void>;
}

type Turn = (question: QuestionRecord, r: Random) => SQLAction;

/**
 * A realistic mix: DESCRIBE and SAMPLE, queries with new text each time, and an answer that is right half of the time.
 */
function turnsOf(data: DataSet): readonly Turn[] {
  const table = (question: QuestionRecord, r: Random) => r.pick(data.databases.get(question.database_name).tables).name;
  const query: Turn = ({ gold_sql }, r) => ({ action_type: "QUERY", argument: `${gold_sql} -- ${r.int(0, 1e9)}` });
  return [
    (question, r) => ({ action_type: "DESCRIBE", argument: table(question, r) }),
    (question, r) => ({ action_type: "SAMPLE", argument: table(question, r) }),
    query,
    query,
    query,
    ({ gold_answer }, r) => ({ action_type: "ANSWER", argument: r.chance(0.5) ? gold_answer : "42" }),
  ];
}

/**
 * Keeps sessions open and steps each at its rate. Latency counts from when a step was due, even if an earlier step
 * delayed it.
 */
export async function loadServer(url: string, data: DataSet, options: LoadOptions): Promise<Load> {
  const { sessions, seconds, rate, seed = "load", socket, onOpen } = options;
  const turns = turnsOf(data);
  const clients = Array.from(
    { length: sessions },
    () => new SQLEnvClient(url, { retries: 5, ...(socket && { socket }) }),
  );
  const latencies: number[] = [];
  let [errors, firstError] = [0, null as string | null];
  const failed = (error: unknown) => {
    errors++;
    firstError ??= error instanceof Error ? error.message : String(error);
  };
  const draw = (r: Random) => r.pick(data.questions);
  const played = clients.map((_, i) => {
    const r = random("bench server", seed, i);
    return { r, question: draw(r), turn: i % turns.length };
  });
  for (let i = 0; i < sessions; i += 50) {
    const some = clients.slice(i, i + 50);
    await Promise.all(
      some.map((client, k) => client.reset({ question_id: played[i + k]!.question.question_id }).catch(failed)),
    );
  }
  await onOpen?.();
  const from = performance.now();
  const until = from + seconds * 1000;
  await Promise.all(
    clients.map(async (client, i) => {
      const state = played[i]!;
      const { r } = state;
      let due = from + (rate > 0 ? (r.next() * 1000) / rate : 0);
      while (due < until) {
        const wait = due - performance.now();
        if (rate > 0 && wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        const start = wait > 0 || rate === 0 ? performance.now() : due;
        try {
          await client.step(turns[state.turn]!(state.question, r));
          latencies.push(performance.now() - start);
          if (++state.turn === turns.length) {
            state.turn = 0;
            state.question = draw(r);
            await client.reset({ question_id: state.question.question_id });
          }
        } catch (error) {
          failed(error);
          state.turn = 0;
          await client.reset({ question_id: state.question.question_id }).catch(failed);
        }
        due = rate > 0 ? due + 1000 / rate : performance.now();
      }
    }),
  );
  const took = (performance.now() - from) / 1000;
  await Promise.all(clients.map((client) => client.close()));
  return {
    sessions,
    seconds: round(took),
    offered_per_s: rate > 0 ? sessions * rate : null,
    steps: latencies.length,
    steps_per_s: Math.round(latencies.length / took),
    ...latencyOf(latencies),
    errors,
    first_error: firstError,
  };
}

/** Runs the same steps in this process, one at a time, for comparison. */
export function stepInProcess(data: DataSet, steps: number): Latency {
  const turns = turnsOf(data);
  const env = new SQLEnvironment(data, { step_budget: 15 });
  const r = random("bench server", "in process");
  const latencies: number[] = [];
  while (latencies.length < steps) {
    const question = r.pick(data.questions);
    env.reset({ question_id: question.question_id });
    for (const turn of turns) {
      const action = turn(question, r);
      const from = performance.now();
      env.step(action);
      latencies.push(performance.now() - from);
    }
  }
  return latencyOf(latencies);
}

export interface Soak {
  readonly episodes: number;
  readonly seconds: number;
  readonly errors: number;
  /** The server's memory after each tenth of the episodes. */
  readonly bytes: readonly number[];
  /** Growth over the second half; the first half fills caches. */
  readonly growth_bytes: number;
}

/** Plays 64 episodes at a time; `measure` returns the server's memory in bytes. */
export async function soakServer(
  url: string,
  data: DataSet,
  episodes: number,
  measure: () => Promise<number>,
  onProgress: (done: number) => void = () => {},
): Promise<Soak> {
  const turns = turnsOf(data);
  const bytes: number[] = [];
  let [next, errors] = [0, 0];
  const from = performance.now();
  for (let tenth = 1; tenth <= 10; tenth++) {
    const end = Math.round((episodes * tenth) / 10);
    await Promise.all(
      Array.from({ length: 64 }, async (_, i) => {
        const client = new SQLEnvClient(url); // new clients for each tenth, so that sessions also come and go
        while (next < end) {
          const r = random("soak", next++);
          const question = r.pick(data.questions);
          try {
            await client.reset({ question_id: question.question_id });
            await client.step(turns[(i % 4) + 1]!(question, r));
            await client.step(turns.at(-1)!(question, r));
          } catch {
            errors++;
          }
        }
        await client.close();
      }),
    );
    bytes.push(await measure());
    onProgress(end);
  }
  return {
    episodes,
    seconds: round((performance.now() - from) / 1000),
    errors,
    bytes,
    growth_bytes: bytes[9]! - bytes[4]!,
  };
}

function latencyOf(latencies: readonly number[]): Latency {
  const sorted = Float64Array.from(latencies).sort();
  const at = (share: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1) };
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
