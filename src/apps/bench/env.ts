// Measures the environment on one core: speed per action and in a realistic mix, and memory of open environments.

import type { DataSet } from "../../gym/data/index.ts";
import { type SQLAction, SQLEnvironment } from "../../gym/env/index.ts";
import { type Random, random } from "../../random.ts";
import { median } from "./median.ts";

export interface EnvBench {
  /** Median rates over the rounds. */
  readonly mixed: { readonly steps_per_s: number };
  readonly by_action: Record<"reset" | "describe" | "sample" | "query" | "answer", { readonly per_s: number }>;
  /** Memory growth in bytes for 1,000 environments in the middle of an episode. */
  readonly open_1000_bytes: number;
  readonly rounds: number;
}

const ROUNDS = 7;
const STEPS = 4_000; // per round: long enough to time, short enough to repeat

/** Measures on a data set's questions; `measureMemory` returns the bytes in use. */
export function benchEnv(data: DataSet, measureMemory: () => number): EnvBench {
  for (const question of data.questions) new SQLEnvironment(data).reset({ question_id: question.question_id }); // runs the gold queries, whose results are cached
  const rounds = Array.from({ length: ROUNDS }, (_, round) => {
    const r = random("bench env", round);
    return {
      mixed: rate(STEPS, mixedEpisodes(data, r)),
      reset: rate(STEPS, resets(data, r)),
      describe: rate(STEPS, single(data, r, describe)),
      sample: rate(STEPS, single(data, r, sample)),
      query: rate(STEPS, single(data, r, query)),
      answer: rate(STEPS, single(data, r, answer)),
    };
  });
  const middle = (pick: (round: (typeof rounds)[number]) => number) => median(rounds.map(pick));
  return {
    mixed: { steps_per_s: middle((round) => round.mixed) },
    by_action: {
      reset: { per_s: middle((round) => round.reset) },
      describe: { per_s: middle((round) => round.describe) },
      sample: { per_s: middle((round) => round.sample) },
      query: { per_s: middle((round) => round.query) },
      answer: { per_s: middle((round) => round.answer) },
    },
    open_1000_bytes: memoryOf(data, measureMemory),
    rounds: ROUNDS,
  };
}

type Make = (env: SQLEnvironment, r: Random) => SQLAction;

const anyTable = (env: SQLEnvironment, r: Random) => r.pick(env.database.tables).name;
const describe: Make = (env, r) => ({ action_type: "DESCRIBE", argument: anyTable(env, r) });
const sample: Make = (env, r) => ({ action_type: "SAMPLE", argument: anyTable(env, r) });
const answer: Make = (env, r) => ({ action_type: "ANSWER", argument: r.chance(0.5) ? env.reveal().gold_answer : "42" });
/** The gold query with a number in a comment, so that every text is new, like a model's. */
const query: Make = (env, r) => ({ action_type: "QUERY", argument: `${env.reveal().gold_sql} -- ${r.int(0, 1e9)}` });

/** Plays whole episodes: DESCRIBE, SAMPLE, three queries, an answer. Resets take time but do not count as steps. */
function mixedEpisodes(data: DataSet, r: Random): (steps: number) => void {
  const env = new SQLEnvironment(data);
  const turns: Make[] = [describe, sample, query, query, query, answer];
  return (steps) => {
    for (let i = 0; i < steps; i++) {
      if (i % turns.length === 0) env.reset({ question_id: r.pick(data.questions).question_id });
      env.step(turns[i % turns.length]!(env, r));
    }
  };
}

function resets(data: DataSet, r: Random): (steps: number) => void {
  const env = new SQLEnvironment(data);
  return (steps) => {
    for (let i = 0; i < steps; i++) env.reset({ question_id: r.pick(data.questions).question_id });
  };
}

/** Times one kind of action, each in a new episode that is reset before timing starts. */
function single(data: DataSet, r: Random, make: Make): (steps: number) => void {
  const prepared = Array.from({ length: STEPS }, () => {
    const env = new SQLEnvironment(data);
    env.reset({ question_id: r.pick(data.questions).question_id });
    return { env, action: make(env, r) };
  });
  return (steps) => {
    for (const { env, action } of prepared.slice(0, steps)) env.step(action);
  };
}

function rate(steps: number, run: (steps: number) => void): number {
  const start = performance.now();
  run(steps);
  return Math.round(steps / ((performance.now() - start) / 1000));
}

function memoryOf(data: DataSet, measureMemory: () => number): number {
  const r = random("bench memory");
  const before = measureMemory();
  const open = Array.from({ length: 1000 }, () => {
    const env = new SQLEnvironment(data);
    env.reset({ question_id: r.pick(data.questions).question_id });
    for (const make of [describe, sample, query]) env.step(make(env, r));
    return env;
  });
  const grown = Math.max(0, measureMemory() - before);
  for (const env of open) env.close();
  return grown;
}
